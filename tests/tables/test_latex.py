"""LaTeX: the paper's own layout, escaping, macros, and that it compiles."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest

from bench.registry import UserError
from bench.results.frame import from_records
from tables import compare, latex
from tables.grid import Grid, Request, fill
from tables.publishing import all_figures
from tables.selection import Index
from tables.specs import TABLES, Coordinate
from tables.style import COLUMN, save
from tables.wanted import specs_for
from tables.wording import KINDS, Shown, pooled_lines

HOSTILE = r"a_b&c%d#e$f{g}h\input~^i<b>'\"é漢"


@pytest.fixture(scope="module")
def index(fake: ModuleType) -> Index:
    """The whole paper with a gap, and a dataset and a method of hostile names."""

    def value(place: Coordinate, fold: int, repeat: int) -> float | None:
        return None if (place.dataset, fold) == ("NCI1", 2) else fake.accuracy(place, fold, repeat)

    odd = [Coordinate(HOSTILE, 2, name) for name in ("none", HOSTILE)]
    return Index(from_records(fake.ledger(value=value) + fake.ledger(odd)))


@pytest.fixture(scope="module")
def grids(index: Index) -> list[Grid]:
    return [fill(index, spec, Request(mark="ties")) for spec in specs_for(index, (), ["default"])]


def test_cells_are_written_as_in_the_paper() -> None:
    assert latex.number(Shown("59.3", "(6.8)")) == "$59.3_{(6.8)}$"
    assert latex.number(Shown("66.0", "(5.3)", bold=True)) == r"$\mathbf{66.0}_{(5.3)}$"
    assert latex.number(Shown("66.0", "(5.3)", underlined=True)) == r"$\underline{66.0}_{(5.3)}$"
    assert latex.number(Shown("66.0", "(5.3)", ("+", "29/30"))) == r"$66.0_{(5.3)}^{+\,29/30}$"
    assert latex.number(Shown("+6.7", "(±2.1)", ("*",))) == r"$+6.7_{(\pm 2.1)}^{*}$"
    assert latex.number(Shown("59.3", raised=("1/30",))) == "$59.3^{1/30}$"
    assert latex.number(Shown("--")) == "--"
    assert latex.number(Shown("--", raised=("0/30",))) == "--$^{0/30}$"


def test_layout_is_the_papers(fake: ModuleType) -> None:
    whole = Index(from_records(fake.ledger()))
    match = latex.table(fill(whole, TABLES["Match"], Request()))
    assert r"\begin{tabular}{l|llll||llll}" in match
    assert r"\resizebox{\textwidth}{!}{%" in match
    assert r" & \multicolumn{4}{c||}{D\&D} & \multicolumn{4}{c}{IMDB-Multi} \\" in match
    assert r"\multicolumn{1}{c||}{10} & \multicolumn{1}{c}{2}" in match
    assert r"\label{table:Match}" in match
    body = match[match.index(r"\begin{tabular}") : match.index(r"\end{tabular}")]
    assert body.count(r"\hline") == 5, "one above, one under the head, one after each group"
    first = latex.table(fill(whole, TABLES["10labelrate"], Request()))
    assert r"\begin{tabular}{l|llllll}" in first and r"\resizebox" not in first
    assert r"Dataset & \multicolumn{1}{c}{Proteins}" in first
    rows = [line.partition(" & ")[0] for line in first.splitlines() if re.search(r"_\{\(", line)]
    assert rows == [row.name for row in TABLES["10labelrate"].rows]


def test_a_narrow_table_is_not_blown_up(fake: ModuleType) -> None:
    index = Index(from_records(fake.ledger([Coordinate("digits", 2, name) for name in ("none", "dropedge")])))
    (spec,) = specs_for(index, (), ["default"])
    text = latex.table(fill(index, spec, Request()))
    assert r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%" in text


def test_each_number_of_a_table_is_the_entrys(grids: list[Grid]) -> None:
    for grid in grids[:5]:
        printed = re.findall(r"(\d+\.\d)\}*_\{\((\d+\.\d)\)\}", latex.table(grid))
        assert printed == [(f"{100 * e.value.mean:.1f}", f"{100 * e.value.std:.1f}") for e in grid.entries]


def test_booktabs_has_no_vertical_rule(grids: list[Grid]) -> None:
    text = latex.table(grids[1], style="booktabs")
    assert r"\toprule" in text and r"\cmidrule(lr){2-5}\cmidrule(lr){6-9}" in text and r"\bottomrule" in text
    assert "|" not in text and r"\hline" not in text


def test_foreign_text_is_escaped() -> None:
    text = latex.escape(HOSTILE)
    assert r"a\_b\&c\%d\#e\$f\{g\}h\textbackslash{}input" in text
    assert text.endswith("é[U+6F22]")
    assert latex.escape("a\nb\x00c") == "a b c"
    assert latex.escape(latex.Tex("$x$")) == "$x$"


def test_macros_are_letters_only_and_unique(grids: list[Grid]) -> None:
    names = re.findall(r"\\newcommand\{\\([^}]*)\}", latex.macros(grids))
    assert len(names) == len(set(names)) == 442
    assert all(re.fullmatch("[A-Za-z]+", name) for name in names)
    assert "augProteinsKOneZeroGdmAccWithoutLowGcnMean" not in names
    assert "augDdKOneZeroGdmAccWithoutLowGcnMean" in names


def test_macros_of_look_alikes_stay_apart(fake: ModuleType) -> None:
    places = [Coordinate("set", 1, name) for name in ("a-b", "a_b", "a.b")]
    index = Index(from_records(fake.ledger(places, folds=1, repeats=1)))
    text = latex.macros([fill(index, spec, Request()) for spec in specs_for(index, (), ["default"])])
    assert len(set(re.findall(r"\\newcommand\{\\([^}]*)\}", text))) == 3
    assert "mathbf" not in text


def test_unknown_style_kind_and_class(grids: list[Grid]) -> None:
    with pytest.raises(UserError, match=r"unknown style 'bookstab'\. Did you mean: booktabs"):
        latex.table(grids[0], style="bookstab")
    with pytest.raises(UserError, match="unknown kind of table"):
        latex.table(grids[0], kind="prices")
    with pytest.raises(UserError, match="unknown document class"):
        latex.standalone([], "", "report")


@pytest.mark.parametrize("document_class", latex.DOCUMENT_CLASSES)
def test_everything_compiles(index: Index, grids: list[Grid], tmp_path: Path, document_class: str) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    if (
        shutil.which("kpsewhich")
        and not subprocess.run(["kpsewhich", f"{document_class}.cls"], capture_output=True).stdout
    ):
        pytest.skip(f"the class {document_class} is not installed")
    style = {"llncs": "paper", "article": "booktabs"}[document_class]
    bodies = [latex.table(grid, kind, style) for grid in grids for kind in KINDS]
    bodies += [latex.pooled(grid, over) for grid in grids if (over := pooled_lines(grid))]
    bodies.append(compare.latex(compare.compare(index, Request())))
    drawn = list(islice(all_figures(index, Request(), ("gcn", "mean"), (), COLUMN), 4))
    for one in drawn:
        save(one.figure, tmp_path, one.name, ["pdf"])
    bodies.append(latex.figures({one.name: one.caption for one in drawn}))
    text = latex.standalone(bodies, latex.macros(grids), document_class)
    (tmp_path / "all.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "all.tex"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", env=os.environ)
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert (tmp_path / "all.pdf").stat().st_size > 20_000
    log = (tmp_path / "all.log").read_text(errors="replace")
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", log)]
    assert all(points < 5 for points in wide), wide
