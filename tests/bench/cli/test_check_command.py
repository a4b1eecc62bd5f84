"""The command `bench check`: classes by their path, exit codes, and mistakes in one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.cli.app import app
from bench.registry import UserError

PLUGIN = Path(__file__).resolve().parents[2] / "plugin" / "hidenodes.py"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Write a package that can be imported but is not installed: the plug-in's file with some of its text replaced."""

    def write(package: str, old: str = "", new: str = "") -> None:
        (tmp_path / package).mkdir()
        text = PLUGIN.read_text(encoding="utf-8")
        assert old in text
        (tmp_path / package / "masks.py").write_text(text.replace(old, new) if old else text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)

    return write


def check(*words: str):
    return CliRunner().invoke(app, ["check", *words], env={"COLUMNS": "140"})


def test_a_class_is_checked_where_it_lies(mine):
    mine("whole")
    done = check("whole.masks:HideNodes:p=0.9")
    assert done.exit_code == 0, done.output
    assert re.search(r"whole.masks:HideNodes:p=0.9: \d+ hold, 3 do not apply", done.output)
    assert "broken" not in done.output


def test_what_is_broken_gives_exit_code_1_and_the_value(mine):
    mine("inplace", "graph.clone() for", "graph for")
    done = check("inplace.masks:HideNodes", "dropedge")
    assert done.exit_code == 1, done.output
    assert re.search(r"the input is untouched +broken +mixed sizes: graph \d+: x was", done.output)
    assert re.search(r"inplace.masks:HideNodes: \d+ broken", done.output)
    assert re.search(r"dropedge: \d+ hold", done.output)


def test_all_sums_up_and_shows_only_what_is_broken(mine, monkeypatch):
    from augmenters import AUGMENTERS
    from bench.learning import LEARNERS
    from models import READOUTS

    mine("unseeded", "rng.random", "__import__('numpy').random.random")
    entries = {name: AUGMENTERS.entry(name) for name in ("none", "dropnode")}
    monkeypatch.setattr(AUGMENTERS, "_entries", entries)
    monkeypatch.setattr(AUGMENTERS, "_discovered", True)
    AUGMENTERS.add("unseeded.masks:HideNodes", "unseeded.masks:HideNodes")  # a worker knows it by its path
    monkeypatch.setattr(READOUTS, "_entries", {"mean": READOUTS.entry("mean")})
    monkeypatch.setattr(LEARNERS, "_entries", {"gnn": LEARNERS.entry("gnn")})
    done = check("--all")
    assert done.exit_code == 1
    assert "numpy.random moved" in done.output
    assert done.output.count("works on: mixed sizes") == 1  # the whole report of one augmenter alone
    summary = [line.split(":")[0] for line in done.output.splitlines()[-5:]]
    assert summary == ["dropnode", "none", "unseeded.masks", "mean", "gnn"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs the names of plug-ins, or --all"),
        (["none", "--all"], "needs the names of plug-ins, or --all"),
        (["dropegde"], "Did you mean: dropedge"),
        (["dropedge:p=2"], "dropedge: p=2 is not valid"),
        (["no.such:Thing"], "cannot be loaded from no.such:Thing"),
        (["readout:meen"], "unknown readout 'meen'. Did you mean: mean"),
        (["learner:gnn:layers=2"], "gnn has no setting 'layers'"),
        (["collections.abc:Sequence"], "is not a subclass of augmenters.base:Augmenter"),
    ],
)
def test_a_mistake_is_one_line(words, message):
    done = check(*words)
    assert isinstance(done.exception, UserError)
    assert re.search(message, str(done.exception))
    assert "\n" not in str(done.exception)
