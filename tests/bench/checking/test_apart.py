"""Checks in a worker process: whatever a plug-in does to it, the command goes on with the next one."""

from __future__ import annotations

import pytest

from bench import api
from bench.registry import UserError


def test_a_plugin_that_ends_its_process_or_never_returns_is_a_broken_property(misbehaving: str) -> None:
    """In the process of the command, `Dies` ended it without a word and `Loops` hung it."""
    names = [f"{misbehaving}:{name}" for name in ("Exits", "Dies", "Loops")]
    reports = {report.name.rpartition(":")[2]: report for report in api.check([*names, "none"], seconds=40)}
    assert "SystemExit: 3" in reports["Exits"].broken[0].detail
    assert "ended with exit code 9, 2 times in a row" in reports["Dies"].broken[0].detail
    assert "took longer than 40 s (--timeout)" in reports["Loops"].broken[0].detail
    assert not reports["none"].broken and reports["none"].count("holds") > 10


def test_a_plugin_that_cannot_be_made_is_a_mistake_as_before() -> None:
    with pytest.raises(UserError, match="cannot be made"):
        list(api.check(["augmenters.base:GraphAugmenter"], seconds=600))
