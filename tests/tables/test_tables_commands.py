"""The commands as a user types them: files, errors in one line, no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from bench.cli.commands import tables as commands
from bench.registry import UserError
from bench.results.records import Record
from tables.specs import TABLES, Coordinate

app = typer.Typer()
for function in (commands.tables, commands.figures, commands.compare, commands.report):
    app.command(function.__name__)(function)


def run(*words: str | Path) -> str:
    ran = CliRunner().invoke(app, [str(word) for word in words])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    assert ran.exit_code == 0, ran.output
    return ran.output


def workspace(folder: Path, records: list[Record]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "ledger.jsonl").write_text("".join(json.dumps(record.to_json()) + "\n" for record in records))
    return folder


@pytest.fixture
def paper(fake: ModuleType, tmp_path: Path) -> Path:
    return workspace(tmp_path / "runs", fake.ledger(TABLES["GAE"].coordinates(), folds=3, repeats=2))


def test_tables_writes_every_format(paper: Path) -> None:
    output = run("tables", "GAE", "-w", paper, "--standalone", "--mark", "significance", "--style", "booktabs")
    assert "VGSAE Unc" in output
    names = {path.name for path in (paper / "tables").iterdir()}
    kinds = {
        f"GAE{kind}.{ending}"
        for kind in ("", "-differences", "-equivalence", "-overall", "-cost")
        for ending in ("tex", "md")
    }
    assert names == kinds | {"GAE.csv", "macros.tex", "standalone.tex", "main_exp.pdf"}
    assert r"\toprule" in (paper / "tables" / "GAE.tex").read_text()
    assert len(pd.read_csv(paper / "tables" / "GAE.csv")) == 40


def test_export_and_from_give_the_same_tables(paper: Path, tmp_path: Path) -> None:
    run("tables", "-w", paper, "--export", tmp_path / "x" / "all.parquet")
    run("tables", "--from", tmp_path / "x" / "all.parquet", "--out", tmp_path / "again")
    first, second = (sorted(folder.iterdir()) for folder in (paper / "tables", tmp_path / "again"))
    assert [path.name for path in first] == [path.name for path in second]
    for one, other in zip(first, second, strict=True):
        assert one.read_text() == other.read_text(), one.name


def test_two_features_need_a_choice_and_can_have_a_table_each(fake: ModuleType, tmp_path: Path) -> None:
    places = [Coordinate("IMDB-BINARY", 10, name) for name in ("none", "dropedge")]
    records = fake.ledger(places, folds=2, repeats=1) + fake.ledger(places, folds=2, repeats=1, features="degree")
    runs = workspace(tmp_path / "runs", records)
    with pytest.raises(UserError, match="choose one with --features constant"):
        run("tables", "10labelrate", "-w", runs)
    run("tables", "10labelrate", "-w", runs, "--features", "constant,degree")
    assert {"10labelrate-constant.tex", "10labelrate-degree.tex"} <= {p.name for p in (runs / "tables").iterdir()}
    assert "newcommand" in (runs / "tables" / "macros.tex").read_text()
    assert "the degree where" in (runs / "tables" / "10labelrate-degree.md").read_text()


def test_data_of_ones_own_gets_a_custom_table(fake: ModuleType, tmp_path: Path) -> None:
    places = [Coordinate(name, 10, a) for name in ("digits", "synthetic") for a in ("none", "dropedge", "duplicate")]
    runs = workspace(tmp_path / "runs", fake.ledger(places, folds=3, repeats=1))
    run("tables", "-w", runs)
    text = (runs / "tables" / "custom.tex").read_text()
    assert "digits" in text and "synthetic" in text and "not the published ones" in text
    run("figures", "-w", runs, "--formats", "svg")
    drawn = {p.name for p in (runs / "tables").glob("*.svg")}
    names = ("differences", "heat-map", "cost", "ranks", "critical-difference")
    assert drawn == {f"{name}-k10.svg" for name in names}, "a single label rate makes no line"
    run("report", "-w", runs)
    assert "No cell of the paper" in (runs / "report.html").read_text()
    with pytest.raises(UserError, match="no cell of the paper's tables"):
        run("compare", "-w", runs)


def test_tuned_stands_beside_default(fake: ModuleType, tmp_path: Path) -> None:
    places = TABLES["GAE"].coordinates()[:8]
    records = fake.ledger(places, folds=2, repeats=1) + fake.tuned(places, folds=2, repeats=1)
    runs = workspace(tmp_path / "runs", records)
    assert "GCN (tuned)" in run("tables", "GAE", "-w", runs, "--settings", "default,tuned")
    with pytest.raises(UserError, match="--settings default,tuned is not valid here"):
        run("compare", "-w", runs, "--settings", "default,tuned")


def test_compare_prints_and_writes(paper: Path) -> None:
    output = run("compare", "-w", paper)
    assert "compared numbers are within noise" in output and "The paper contradicts itself here" in output
    each = {f"compare-{name}.md" for name in ("10labelrate", "GAE", "Pool")}  # those with a finished trial
    assert {"compare.md", "compare.tex", *each} == {path.name for path in (paper / "tables").iterdir()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tables", "GEA"), "unknown table 'GEA'"),
        (("tables", "--metric", "auc"), "unknown metric 'auc'"),
        (("tables", "--style", "apa"), "unknown style 'apa'"),
        (("tables", "--where", "torch"), "--where torch cannot be read"),
        (("tables", "--where", "color=red"), "unknown property of cells 'color'"),
        (("tables", "--preset", "quick"), "no cell has the requested properties"),
        (("tables", "--settings", "tuned"), "there are no tuned cells yet"),
        (("tables", "--from", "nowhere.parquet"), "there is no workspace, ledger or archive nowhere.parquet"),
        (("tables", "GAE", "Pool", "--strict"), "table Pool has 32 cells without all their trials"),
        (("figures", "--formats", "gif"), "figures cannot be written as 'gif'"),
        (("figures", "--backbone", "gin"), "backbone gin"),
        (("figures", "--width", "page"), "unknown width of a figure 'page'"),
        (("compare", "main_exp"), "unknown table of the paper 'main_exp'"),
    ],
)
def test_mistakes_are_one_line(paper: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        run(*words, "-w", paper)
    assert "\n" not in str(caught.value)


def test_an_empty_workspace_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no ledger in .*; run `bench run` first"):
        run("tables", "-w", tmp_path)


def test_an_error_leaves_no_half_of_the_files(paper: Path) -> None:
    with pytest.raises(UserError):
        run("tables", "GAE", "Pool", "-w", paper, "--strict")
    assert not (paper / "tables").exists()


def test_a_folder_that_cannot_be_written(paper: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write to .*; choose another --out"):
        run("tables", "GAE", "-w", paper, "--out", paper / "ledger.jsonl" / "x")


def test_no_command_needs_torch(paper: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from bench.cli.commands import tables as t\n"
        f"w = Path({str(paper)!r})\n"
        "t.tables(['GAE'], workspace=w); t.figures(workspace=w); t.compare(workspace=w); t.report(workspace=w)\n"
        "print([name for name in ('torch', 'torch_geometric', 'mlflow', 'optuna') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
