"""Answers about combinations of plug-ins: kept on disk, so that planning again needs no torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from augmenters import AUGMENTERS
from bench.learning.fast import engine
from bench.learning.gnn import GNN
from bench.plan.plugin_cache import Resolver
from bench.registry import Scalar
from models import BACKBONES, READOUTS


def test_an_answer_is_asked_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plugins.json"
    first = Resolver(file)
    reason = first.refusal("gnn", "softedge", "gat", "mean")
    assert reason is not None and "does not read" in reason
    assert first.refusal("gnn", "softedge", "gcn", "mean") is None
    first.save()

    def never(*classes: object) -> None:
        raise AssertionError("the class was asked again")

    monkeypatch.setattr(GNN, "refuses", never)
    second = Resolver(file)
    assert second.refusal("gnn", "softedge", "gat", "mean") == reason
    assert second.refusal("gnn", "softedge", "gcn", "mean") is None
    with pytest.raises(AssertionError, match="asked again"):
        second.refusal("gnn", "none", "gat", "mean")


def test_an_answer_is_gone_when_a_source_file_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plugins.json"
    first = Resolver(file)
    first.refusal("gnn", "softedge", "gat", "mean")
    first.save()
    monkeypatch.setattr("bench.plan.plugin_cache.source_stamp", lambda *packages: "another")
    monkeypatch.setattr(GNN, "refuses", lambda *classes: "of another day")
    assert Resolver(file).refusal("gnn", "softedge", "gat", "mean") == "of another day"


def test_what_a_learner_without_a_network_lacks_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(GNN, "refuses", lambda *classes: asked.append(classes))
    assert Resolver(tmp_path / "plugins.json").refusal("gnn", "none", None, None) is None
    assert asked[0][1:] == (None, None)


def test_the_fast_engines_answer_is_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, asked = tmp_path / "plugins.json", []

    def obstacle(backbone: type, readout: type, augmenter: type, settings: Mapping[str, Scalar]) -> str:
        asked.append((backbone.__name__, readout.__name__, augmenter.__name__))
        return "not written out"

    monkeypatch.setattr(engine, "fast_obstacle", obstacle, raising=False)
    chosen = AUGMENTERS.resolve("dropedge"), BACKBONES.resolve("gcn"), READOUTS.resolve("max")
    first = Resolver(file)
    assert first.engine_obstacle(*chosen) == "not written out"
    first.save()
    assert Resolver(file).engine_obstacle(*chosen) == "not written out"
    assert asked == [("GCN", "MaxReadout", "DropEdge")]


def test_asking_again_needs_no_torch(tmp_path: Path, tools: ModuleType) -> None:
    code = (
        "import sys; from pathlib import Path; from bench.plan.plugin_cache import Resolver\n"
        "known = Resolver(Path(sys.argv[1])); print(known.refusal('gnn', 'softedge', 'gat', 'mean')); known.save()\n"
        "print('torch' in sys.modules)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "plugins.json")]
    outputs = [
        subprocess.run(words, capture_output=True, text=True, check=True, cwd=tools.ROOT).stdout.splitlines()
        for _ in range(2)
    ]
    assert outputs[0][0] == outputs[1][0] != "None"
    assert (outputs[0][1], outputs[1][1]) == ("True", "False")
