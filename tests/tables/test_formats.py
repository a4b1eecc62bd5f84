"""CSV, Markdown and the words they share."""

from __future__ import annotations

import io
from types import ModuleType

import pandas as pd
import pytest

from bench.results.frame import from_records
from tables import formats
from tables.grid import Request, fill
from tables.selection import Index
from tables.specs import TABLES, Column, Coordinate, Row, TableSpec
from tables.wording import seconds, signed


def test_csv_holds_every_number_unrounded(fake: ModuleType) -> None:
    index = Index(from_records(fake.ledger()))
    grid = fill(index, TABLES["GAE"], Request())
    frame = pd.read_csv(io.StringIO(formats.tidy(grid, index).to_csv(index=False)))
    assert len(frame) == 40
    assert frame["mean"].tolist() == pytest.approx([entry.value.mean for entry in grid.entries])
    line = frame[(frame["augmenter"] == "gdm-acc") & (frame["dataset"] == "PROTEINS") & (frame["k"] == 10)].iloc[0]
    entry = next(e for e in grid.entries if e.coordinate == Coordinate("PROTEINS", 10, "gdm-acc"))
    assert entry.difference is not None
    assert line["difference_low"] == pytest.approx(entry.difference.low)
    assert line["difference_p_holm"] == pytest.approx(entry.p_holm)
    assert (line["trials"], line["planned"], line["features"], line["splits"]) == (30, 30, "native", "CHEMICAL")


def test_markdown_has_caption_marks_and_notes(fake: ModuleType) -> None:
    def value(place: Coordinate, fold: int, repeat: int) -> float | None:
        return None if fold == 0 and place.augmenter == "gdm-unc" else 0.5 + 0.1 * (place.augmenter == "gdm-acc")

    rows = (Row("GCN", "none"), Row("A", "gdm-acc"), Row("U|x", "gdm-unc"))
    spec = TableSpec("t", "{measure} *here*.", (rows,), (Column("PROTEINS", 10, "10", "Proteins"),))
    grid = fill(Index(from_records(fake.ledger(spec.coordinates(), value=value))), spec, Request())
    text = formats.markdown(grid)
    assert text.startswith("Mean classification accuracy in percent")
    assert r"\*here\*" in text
    assert "| A | **60.0** (0.0) |" in text
    assert r"| U\|x | 50.0 (0.0) 27/30 |" in text
    assert "- n/N: only n of the N planned trials are finished." in text
    assert "| A | +10.0 (±0.0) \\* |" in formats.markdown(grid, "differences")
    assert "| GCN | ref. |" in formats.markdown(grid, "differences")


def test_markdown_is_inert() -> None:
    assert formats.escape("<script>|`x`\n[a](b)") == r"\<script\>\|\`x\` \[a\](b)"


def test_numbers_in_words() -> None:
    assert [seconds(x) for x in (0.123, 1.26, 99.94, 1234.5)] == ["0.12", "1.3", "99.9", "1234"]
    assert [signed(x) for x in (0.0672, -0.0123, -0.0001, 0.0)] == ["+6.7", "-1.2", "0.0", "0.0"]
