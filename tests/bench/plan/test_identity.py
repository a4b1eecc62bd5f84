"""What a cell's key holds: no number of other code, data, engine, device or settings may stand under it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from augmenters import AUGMENTERS
from bench.plan.identity import current_versions, plugin_version, stale_parts
from bench.plan.planner import Planner
from bench.protocol.training import preset
from bench.registry import UserError
from bench.sources import module_hash, module_stamp
from tables.specs import Coordinate

PLUGIN = """
from dataclasses import dataclass
from augmenters.controls import Unchanged
from {package}helper import P

@dataclass(frozen=True)
class Mine(Unchanged):
    p: float = P
"""
KEY = (
    "import sys; from pathlib import Path; from bench.plan.planner import Planner; "
    "from bench.protocol.training import preset; from tables.specs import Coordinate; "
    "planner = Planner(Path(sys.argv[1])); "
    "print(planner.cell(Coordinate('digits', 2, sys.argv[2]), preset('quick')).key); planner.resolver.save()"
)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a plug-in on the path: a module with a helper beside it, or a package with both in it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delitem(sys.modules, "helper", raising=False)  # of another test, in another folder

    def make(name: str = "mine_plugin", helper: str = "P = 0.5\n", package: bool = False) -> Path:
        folder = tmp_path / name if package else tmp_path
        folder.mkdir(exist_ok=True)
        (folder / "helper.py").write_text(helper)
        main = folder / ("__init__.py" if package else f"{name}.py")
        main.write_text(PLUGIN.format(package="." if package else ""))
        return main

    return make


def key_of(tmp_path: Path, spec: str) -> str:
    """The key that a fresh process gives."""
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    words = [sys.executable, "-c", KEY, str(tmp_path / "data"), spec]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("package", [False, True])
def test_edited_code_is_another_cell(write: Callable[..., Path], tmp_path: Path, package: bool) -> None:
    main = write(package=package)
    before = key_of(tmp_path, "mine_plugin:Mine")
    assert key_of(tmp_path, "mine_plugin:Mine") == before
    main.write_text(main.read_text() + "\n# another line\n")
    assert key_of(tmp_path, "mine_plugin:Mine") != before


def test_a_default_that_is_imported_is_noticed(write: Callable[..., Path], tmp_path: Path) -> None:
    write()
    before = key_of(tmp_path, "mine_plugin:Mine")
    write(helper="P = 0.25\n")
    assert key_of(tmp_path, "mine_plugin:Mine") != before
    assert key_of(tmp_path, "mine_plugin:Mine:p=0.5") != before  # other seeds: its label names what it differs in


def test_a_whole_number_as_the_default_of_a_float_is_one_key(write: Callable[..., Path], tmp_path: Path) -> None:
    write(helper="P = 1\n")
    assert key_of(tmp_path, "mine_plugin:Mine") == key_of(tmp_path, "mine_plugin:Mine:p=1")


def test_the_hash_follows_own_modules_and_no_others(write: Callable[..., Path], tmp_path: Path) -> None:
    write("one_plugin")
    before, stamp = module_hash("one_plugin"), module_stamp("one_plugin")
    (tmp_path / "unrelated.py").write_text("x = 1\n")
    assert (module_hash("one_plugin"), module_stamp("one_plugin")) == (before, stamp)
    write("one_plugin", helper="P = 0.75\n")
    assert module_hash("one_plugin") != before and module_stamp("one_plugin") != stamp
    assert module_hash("no_such_module_at_all") is None


def test_code_that_was_edited_after_its_import_is_refused(write: Callable[..., Path]) -> None:
    main = write("edited_plugin")
    plugin_version(AUGMENTERS, "edited_plugin:Mine")
    AUGMENTERS.load("edited_plugin:Mine")
    main.write_text(main.read_text() + "\nx = 1\n")
    with pytest.raises(UserError, match="changed after it was imported"):
        plugin_version(AUGMENTERS, "edited_plugin:Mine")


def test_a_plug_in_that_builds_on_a_built_in_has_its_version(write: Callable[..., Path]) -> None:
    write("built_plugin")
    assert "none=1" in str(plugin_version(AUGMENTERS, "built_plugin:Mine"))


def test_device_and_engine_are_in_the_key(tmp_path: Path) -> None:
    at, quick = Coordinate("digits", 2, "none"), preset("quick")
    fast, reference = Planner(tmp_path, "fast").cell(at, quick), Planner(tmp_path, "reference").cell(at, quick)
    cuda, other = (
        Planner(tmp_path, "fast", "cuda:0").cell(at, quick),
        Planner(tmp_path, "fast", "cuda:1").cell(at, quick),
    )
    assert len({fast.key, reference.key, cuda.key}) == 3 and cuda.key == other.key
    assert cuda.versions["engine"] == "reference"  # which is what runs there
    for changes, backbone, engine in (
        ({"select": "best-val"}, "gcn", "fast"),
        ({"batch": 32}, "gcn", "fast"),
        ({"batch": 32}, "gcn:dropout=0.5", "reference"),
    ):
        cell = Planner(tmp_path, "fast").cell(replace(at, backbone=backbone), quick.with_settings(changes))
        assert cell.versions["engine"] == engine


def test_labels_are_in_the_key_because_they_name_the_seeds(tmp_path: Path) -> None:
    cell = Planner(tmp_path).cell(Coordinate("digits", 2, "dropedge"), preset("quick"))
    other = replace(cell, augmenter=replace(cell.augmenter, label="dropedge:p=0.25"))
    assert cell.key != other.key


def test_a_changed_training_has_another_name() -> None:
    changed = preset("standard").with_settings({"lr": 0.1, "select": "best-val"})
    assert changed.preset == "standard+lr=0.1,select=best-val"
    assert changed.with_settings({"lr": 0.01, "select": "last"}).preset == "standard"
    assert changed.with_settings({"epochs": 30}).preset == "standard+epochs=30,lr=0.1,select=best-val"


def test_versions_that_moved_are_told(tmp_path: Path) -> None:
    cell = Planner(tmp_path).cell(Coordinate("digits", 2, "dropedge"), preset("quick"))
    assert stale_parts(cell) == {}
    old = replace(cell, versions={**cell.versions, "torch": "1.0", "augmenter": 0})
    assert stale_parts(old) == {"torch": ("1.0", cell.versions["torch"]), "augmenter": (0, 1)}
    gone = replace(cell, augmenter=replace(cell.augmenter, name="no-such-method"))
    assert "plug-ins" in stale_parts(gone)


def test_a_learner_without_a_network_has_its_library_in_the_key() -> None:
    names = {"learner": "gnn", "augmenter": "none", "backbone": None, "readout": None}
    assert "scikit-learn" in current_versions(names, "none", "cpu")
    names |= {"backbone": "gcn", "readout": "mean"}
    assert "scikit-learn" not in current_versions(names, "fast", "cpu")
