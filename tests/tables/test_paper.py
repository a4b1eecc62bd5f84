"""The stored numbers are the printed ones."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tables.paper import contradictions, numbers
from tables.specs import TABLES

ROOT = Path(__file__).parents[2]
CELL = re.compile(r"\$(\\mathbf|\\textbf)?\{?(\d+\.\d)\}?_\{\((\d+\.\d)\)\}\$")


@pytest.fixture(scope="module")
def source() -> str:
    path = Path(os.environ.get("BENCH_PAPER", ROOT.parent / "shared" / "paper" / "gdm.tex"))
    if not path.is_file():
        pytest.skip("the paper's LaTeX source is not here; name it with BENCH_PAPER")
    return path.read_text(encoding="utf-8")


def test_every_table_is_whole() -> None:
    held = defaultdict(list)
    for number in numbers():
        held[number.table].append(number.coordinate)
    assert {name: tuple(found) for name, found in held.items()} == {n: s.coordinates() for n, s in TABLES.items()}
    assert len(numbers()) == 256


def test_every_number_is_the_printed_one(source: str) -> None:
    stored = defaultdict(list)
    for number in numbers():
        stored[number.table].append((f"{number.mean:.1f}", f"{number.std:.1f}", number.bold))
    printed = {}
    for block in re.findall(r"\\begin\{table\}.*?\\end\{table\}", source, flags=re.DOTALL):
        label = re.search(r"\\label\{table:(\w+)\}", block)
        assert label is not None
        printed[label[1]] = [(mean, std, bool(bold)) for bold, mean, std in CELL.findall(block)]
    assert printed == dict(stored)


def test_row_and_column_names_are_the_printed_ones(source: str) -> None:
    for name, spec in TABLES.items():
        block = next(b for b in source.split(r"\begin{table}") if rf"\label{{table:{name}}}" in b)
        lines = [line for line in block.splitlines() if CELL.search(line)]
        assert [" ".join(line.partition("&")[0].split()) for line in lines] == [row.name for row in spec.rows]
        heads = re.findall(r"\\multicolumn\{\d\}\{c(?:\|\|)?\}\{([^}]+)\}", block)
        ours = [span for span, _ in spec.spans() if span] + [column.head for column in spec.columns]
        assert [head.replace(r"\&", "&") for head in heads] == ours


def test_double_values_are_exactly_those_that_the_numbers_show() -> None:
    values = defaultdict(set)
    for number in numbers():
        values[number.coordinate].add((number.mean, number.std))
    listed = {c.coordinate for c in contradictions() if c.kind == "two values"}
    assert listed == {place for place, found in values.items() if len(found) > 1}
    assert len(listed) == 5


def test_contradictions_cite_printed_numbers() -> None:
    printed = {(n.table, n.coordinate, n.mean, n.std) for n in numbers()}
    for found in contradictions():
        mean, std, other_mean, other_std = found.values
        assert (found.table, found.coordinate, mean, std) in printed
        assert (found.other_table, found.other, other_mean, other_std) in printed
        assert found.touches(found.other)


def test_gains_in_the_statements_are_the_tables_own() -> None:
    for found in contradictions():
        gain = re.search(r"best GDM is (\d+\.\d) above", found.statement)
        if gain:
            assert round(found.values[0] - found.values[2], 1) == float(gain[1])
            best = max(
                n.mean
                for n in numbers()
                if n.table == found.table
                and n.coordinate.augmenter in ("gdm-acc", "gdm-unc")
                and (n.coordinate.dataset, n.coordinate.k, n.coordinate.backbone)
                == (found.coordinate.dataset, found.coordinate.k, found.coordinate.backbone)
            )
            assert best == found.values[0]
