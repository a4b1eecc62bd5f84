"""A shared folder: complete, checked by the commands that its README names, and refused where it would do harm."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from torch_geometric.data import Data

import bench as augbench
from bench.registry import UserError
from bench.results.workspace import Workspace

Command = Callable[..., tuple[int, str, str]]
SMALL: dict[str, Any] = {"folds": 3, "repeats": 1, "epochs": 2, "executor": "serial"}


def test_a_colleague_checks_and_goes_on(
    bench: Command,
    workspace: Callable[[str], Path],
    some_graphs: Callable[..., list[Data]],
    tools: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every command of the README, by somebody who has the folder alone."""
    runs, data, folder = workspace("runs"), tmp_path / "data", tmp_path / "shared"
    graphs = [graph for seed in range(5) for graph in some_graphs(seed)]
    results = augbench.run(["synthetic:graphs=60", graphs], ["none", "dropedge"], 1, workspace=runs, data=data, **SMALL)
    assert bench("share", str(folder), str(runs), "--data", str(data), "--graphs")[0] == 0
    readme = (folder / "README.md").read_text()
    assert "4 cells, 12 finished trials of 12 planned" in readme and "`synthetic:graphs=60`: built in" in readme
    assert "in `data/`" in readme and "Left out" not in readme
    written = {path.name for path in folder.rglob("*") if path.is_file()}
    assert {"trials.parquet", "report.html", "environment.txt", "custom.tex", "custom-differences.md"} <= written
    assert re.search(r"^torch==", (folder / "environment.txt").read_text(), re.MULTILINE)

    away = tmp_path / "elsewhere"
    away.mkdir()
    folder = folder.rename(away / "shared")
    monkeypatch.chdir(folder)
    for line in re.search(r"```sh\n(.*?)```", readme, re.DOTALL)[1].splitlines():  # type: ignore[index]
        words = line.partition("#")[0].split()
        code, out, err = bench(*words[words.index("bench") + 1 :])
        assert code == 0, (line, out, err)
    assert "5 of 5 came out the same" in bench("verify", "--from", ".", "--sample", "5", "--data", "data")[1]
    assert (folder / "again" / "custom.tex").is_file()
    loaded = augbench.load(folder)
    assert loaded.cells.sort_index().equals(results.cells.sort_index())
    before = tools.trial_lines(folder / "runs")
    augbench.run("synthetic:graphs=60", ["none", "dropedge"], 1, workspace=folder / "runs", data=data, **SMALL)
    assert before == tools.trial_lines(folder / "runs") == 12, "merged, it is resumed"


def test_cells_that_were_trained_in_several_ways_have_a_table_each(workspace: Callable[[str], Path]) -> None:
    runs = workspace("runs")
    for settings in ({}, {"training.lr": 0.001}):
        augbench.run("synthetic:graphs=60", ["none", "dropedge"], 2, set=settings, workspace=runs, **SMALL)
    folder = runs.parent / "shared"
    shared = augbench.share(folder, runs)
    assert not shared.left_out
    tables = {path.name for path in (folder / "tables").iterdir()}
    for preset in ("standard+epochs=2", "standard+epochs=2,lr=0.001"):
        name = f"custom-{preset.replace(',', '-')}"
        assert {f"{name}.tex", f"{name}.md", f"{name}.csv", f"{name}-differences.md"} <= tables
        assert f"Training: {preset}" in (folder / "tables" / f"{name}.md").read_text()
    assert "lr=0.001" in (folder / "report.html").read_text()


def test_what_cannot_be_shared(workspace: Callable[[str], Path], tmp_path: Path, bench: Command) -> None:
    runs = workspace("runs")
    augbench.run("synthetic:graphs=60", "none", 1, workspace=runs, **{**SMALL, "folds": 1})
    with pytest.raises(UserError, match="is a workspace; name another folder"):
        augbench.share(runs, runs)
    shared = augbench.share(tmp_path / "shared", runs)
    assert "ask for them" not in (shared.folder / "README.md").read_text()
    code, _, err = bench("merge", str(shared.folder), str(runs))
    assert code == 2 and "is a shared folder; name a workspace" in err
    assert not Workspace(shared.folder).ledger.exists()
    with pytest.raises(UserError, match=r"unknown keyword of bench\.share 'graph'"):
        augbench.share(tmp_path / "other", runs, graph=True)  # type: ignore[call-arg]


def test_cells_that_do_not_agree_are_still_shared(workspace: Callable[[str], Path], tmp_path: Path) -> None:
    """No table can hold two kinds of features; the trials go out all the same, and the README says what is missing."""
    runs = workspace("runs")
    for features in ("constant", "degree"):
        words = {**SMALL, "folds": 1, "features": features}
        augbench.run("synthetic:graphs=60", "none", 1, workspace=runs, **words)
    shared = augbench.share(tmp_path / "shared", runs)
    assert shared.left_out and "## Left out" in (shared.folder / "README.md").read_text()
    assert len(augbench.load(shared.folder)) == 2
