"""A cache of compiled sums for one test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.learning.fast.ops.building import cache_folder
from bench.learning.fast.ops.compiled import compiled_or_reason


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache of the user, and nothing known yet in this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if "BENCH_CC" in os.environ:
        monkeypatch.delenv("BENCH_CC")
    compiled_or_reason.cache_clear()
    yield cache_folder()
    compiled_or_reason.cache_clear()
