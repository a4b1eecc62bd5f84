"""Notebooks in a real kernel: the one of the docs from the first to the last cell, and what only a notebook can do."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LARGEST = 400_000  # bytes of a committed notebook


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a notebook's cells in a folder of its own; it comes back with their outputs."""
    for name, value in (
        ("BENCH_DATA", tmp_path / "data"),
        ("OMP_NUM_THREADS", 1),
        ("IPYTHONDIR", tmp_path / "ipython"),
    ):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))

    def run(notebook: Any) -> Any:
        client = NotebookClient(
            notebook, timeout=500, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
        )
        client.execute()
        return notebook

    return run


def shown(cell: Any) -> dict[str, str]:
    """What a cell shows, by kind; what it prints is `stdout` and `stderr`."""
    found: dict[str, str] = {}
    for output in cell.outputs:
        for kind, text in output.get("data", {output.get("name"): output.get("text", "")}).items():
            found[kind] = found.get(kind, "") + str(text)
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_of_the_docs_runs(path: Path, execute: Any, tmp_path: Path) -> None:
    committed = nbformat.read(path, as_version=4)
    assert path.stat().st_size < LARGEST
    for cell in committed.cells:
        assert cell.cell_type != "code" or cell.outputs, "run `python docs/run_notebooks.py` and commit"
    done = execute(nbformat.read(path, as_version=4))
    cells = [cell for cell in done.cells if cell.cell_type == "code"]
    assert r"\begin{tabular}" in shown(cells[-1])["stdout"]
    assert sum("image/png" in shown(cell) for cell in cells) == 2
    assert (tmp_path / "runs" / "ledger.jsonl").is_file()
    text = path.read_text(encoding="utf-8")
    assert not re.search(r'"(/|[A-Z]:)\\w+/', text) and "site-packages" not in text, "outputs name no place"


def test_a_class_of_a_cell_runs_in_workers_and_is_another_when_edited(execute: Any, tmp_path: Path) -> None:
    own = """
from dataclasses import dataclass
from augmenters import Unchanged

@dataclass(frozen=True)
class Own(Unchanged):
    by: float = 0.5

    def apply(self, graphs, drawn):
        return [graph.clone() for graph in super().apply(graphs, drawn)]
"""
    start = "import bench\nwords = dict(folds=2, repeats=1, epochs=2, jobs=1)"
    call = (
        "r = bench.run('synthetic:graphs=60', ['none', Own(by=2)], 2, **words)\nprint(len(r), *sorted(r.state.cells))"
    )
    # the trials of the last cell would take an hour: the cell is stopped when some of them are finished
    stop = """
import os, pathlib, signal, threading, time
def lines():
    return pathlib.Path("runs/ledger.jsonl").read_bytes().count(b'{"type":"trial"')
before = lines()
def stop():
    while lines() < before + 2:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=stop, daemon=True).start()
stopped = bench.run("synthetic:graphs=60", "none", 3, folds=10, repeats=1000, epochs=5, jobs=1)
print(stopped.interrupted, 2 <= len(stopped) < 100, lines() - before == len(stopped))
"""
    cells = [start, own, call, own + "# edited\n", call, own.replace("0.5", "0.7"), call, stop]
    notebook = execute(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells]))
    first, same, edited, end = (shown(notebook.cells[place]) for place in (2, 4, 6, 7))
    printed = [one["stdout"].split() for one in (first, same, edited)]
    assert [words[0] for words in printed] == ["4"] * 3
    assert printed[0] == printed[1], "a comment outside the class is no other class"
    assert printed[1] != printed[2]
    assert end["stdout"].split() == ["True"] * 3 and "finished in this run are kept" in end["stderr"]
    assert "4/4" in first["stderr"], "a bar, since it is a notebook"
    assert len(list((tmp_path / "runs" / "code").glob("Own_*.py"))) == 2
