"""The tasks of docs/own-questions.md and docs/datasets.md, run as they are written."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from augmenters import AUGMENTERS
from bench.cli import app as cli
from bench.registry import Entry

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SHORT = ["--epochs", "3", "--executor", "serial"]  # the same commands, with fewer steps
Run = Callable[[str], str]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def commands(page: str) -> Iterator[str]:
    for block in blocks(page, "sh"):
        yield from (line.split(" #")[0].strip() for line in block.splitlines() if line.strip())


def write_tu_set(folder: Path, name: str, graphs: int = 40) -> None:
    """A small set in TU layout, under the name of one of the paper's."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    edges, nodes, labels = [], [], []
    for graph in range(graphs):
        first, size = len(nodes) + 1, int(rng.integers(5, 9))
        ends = range(size if graph % 2 else size - 1)
        edges += [f"{first + a}, {first + b}" for end in ends for a, b in ((end, (end + 1) % size),) * 1]
        edges += [f"{first + (end + 1) % size}, {first + end}" for end in ends]
        nodes += [str(graph + 1)] * size
        labels.append(str(graph % 2))
    kinds = {
        "A": edges,
        "graph_indicator": nodes,
        "graph_labels": labels,
        "node_labels": ["0", "1"] * (len(nodes) // 2),
    }
    kinds["node_labels"] += ["0"] * (len(nodes) - len(kinds["node_labels"]))
    for kind, lines in kinds.items():
        (folder / f"{name}_{kind}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """A folder with a data root, the augmenter of the docs installed, and the graphs of the docs saved."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.syspath_prepend(ROOT / "tests" / "plugin")
    plugin = Entry("hidenodes", "hidenodes:HideNodes", "from augbench-hidenodes", "0.3", "augbench-hidenodes")
    monkeypatch.setitem(AUGMENTERS.entries(), "hidenodes", plugin)
    exec(compile(blocks("datasets.md", "python")[0], "datasets.md", "exec"), {})

    def run(line: str) -> str:
        words = shlex.split(line)
        words += SHORT if words[1] == "run" else []
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capfd.readouterr()
        assert not end.value.code, f"{line}\n{err}"
        return out

    return run


def test_the_tasks_of_own_questions(newcomer: Run, tmp_path: Path) -> None:
    write_tu_set(tmp_path / "PROTEINS", "PROTEINS")
    newcomer("bench data import PROTEINS")
    (tmp_path / "question.toml").write_text(blocks("own-questions.md", "toml")[0], encoding="utf-8")
    tables = tmp_path / "runs" / "tables"
    for line in commands("own-questions.md"):
        newcomer(line + (" --set training.epochs=3" if line.endswith("question.toml") else ""))
        if line.startswith("bench tables --label"):
            assert "Trees" in (tables / "custom.md").read_text(encoding="utf-8")
    added = (tables / "10labelrate.md").read_text(encoding="utf-8")
    assert "lr=0.001" in added, "the last of the paper's tables is that with other settings"
    depth = (tables / "depth.md").read_text(encoding="utf-8")
    assert all(f"layers={layers}" in depth for layers in (2, 4, 6)) and "no augmentation" in depth
    assert len(list(tables.glob("dropped*"))) == len(list(tables.glob("depth*"))), "one table and its files"
    rows = [line.split("|")[1].strip() for line in (tables / "dropped.md").read_text().splitlines() if "|" in line]
    assert rows[2:] == ["0.1", "0.25", "0.4"], "the default stands in its place"
    same = (tables / "question.md").read_text(encoding="utf-8")
    assert "Trees" in same and "| dropped |" in same
    assert [row.split("|")[2:] for row in same.splitlines()[-9:] if "| 0." in row] == [
        row.split("|")[2:] for row in (tables / "dropped.md").read_text(encoding="utf-8").splitlines() if "| 0." in row
    ][: same.count("| 0.")]


def test_a_method_added_to_a_table_that_is_done(newcomer: Run, tmp_path: Path) -> None:
    write_tu_set(tmp_path / "PROTEINS", "PROTEINS")
    newcomer("bench data import PROTEINS")
    run = "bench run --grid 10labelrate -d PROTEINS -a none,dropedge --folds 2 --repeats 1"
    newcomer(run)
    out = newcomer(f"{run} --add hidenodes")
    assert "6/6" in out and "hidenodes" in out
    ledger = (tmp_path / "runs" / "ledger.jsonl").read_text(encoding="utf-8")
    assert ledger.count('"type":"trial"') == 6, "nothing was run twice"
    newcomer("bench tables 10labelrate --add hidenodes --label hidenodes=Hide")
    text = (tmp_path / "runs" / "tables" / "10labelrate.tex").read_text(encoding="utf-8")
    assert re.search(r"^\s*Hide\s*&", text, re.MULTILINE), "a row among the paper's"


def test_the_commands_of_the_page_on_data(newcomer: Run, tmp_path: Path) -> None:
    write_tu_set(tmp_path / "home" / "NAME", "NAME")
    every = np.arange(80).tolist()
    fold = {"test": every[60:], "model_selection": [{"train": every[:40], "validation": every[40:60]}]}
    (tmp_path / "mine_splits.json").write_text(json.dumps([fold]), encoding="utf-8")
    for line in commands("datasets.md"):
        out = newcomer(line.replace("~/data", str(tmp_path / "home")))
        if line.startswith("bench tables"):
            assert "custom-average_precision" in out
    for code in blocks("datasets.md", "python")[1:]:
        exec(compile(code, "datasets.md", "exec"), {})
