"""A file is whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tables.writing import whole_file


def test_what_is_complete_takes_the_name(tmp_path: Path) -> None:
    path = tmp_path / "table.tex"
    path.write_text("old")
    with whole_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
        assert part.suffix == ".tex"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table.tex"
    path.write_text("old")
    with pytest.raises(OSError, match="No space left"), whole_file(path) as part:
        part.write_text("ha")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
