from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.cli.commands.data import app
from bench.datasets.paths import data_root as find_data_root
from bench.registry import UserError

runner = CliRunner()


def test_the_data_root_is_given_or_from_the_environment_or_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "variable"))
    assert find_data_root(tmp_path / "given") == tmp_path / "given"
    assert find_data_root() == tmp_path / "variable"
    monkeypatch.setenv("BENCH_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert find_data_root().name == "augbench"
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        find_data_root(tmp_path / "file")


def test_status_of_an_empty_root_names_the_remedy(tmp_data_root: Path) -> None:
    result = runner.invoke(app, ["status"])
    assert result.exit_code == 0
    assert str(tmp_data_root) in result.output.replace("\n", "")
    assert result.output.count("missing") == 6 + 1
    assert "bench data fetch PROTEINS NCI1 DD IMDB-BINARY IMDB-MULTI REDDIT-MULTI-5K" in result.output
    assert not tmp_data_root.exists()


def test_status_shows_what_was_imported(tmp_path: Path, write_archive: Callable[..., Path]) -> None:
    root = tmp_path / "elsewhere"
    result = runner.invoke(app, ["import", str(write_archive()), "--data", str(root)])
    assert result.exit_code == 0 and "new        TINY: 40 graphs" in result.output
    result = runner.invoke(app, ["status", "--data", str(root)])
    (line,) = [line for line in result.output.splitlines() if line.startswith("TINY")]
    assert line.split() == ["TINY", "there", "40", "2", "yes", "stratified"]


def test_one_bad_item_does_not_stop_the_others(tmp_data_root: Path, write_archive: Callable[..., Path]) -> None:
    folder = write_archive().parent
    (folder / "BROKEN.zip").write_bytes(b"not a zip")
    result = runner.invoke(app, ["import", str(folder)])
    assert isinstance(result.exception, UserError)
    assert "1 of 2 could not be imported" in str(result.exception)
    assert "new        TINY" in result.output and "BROKEN.zip" in result.output
    assert (tmp_data_root / "tu" / "TINY").is_dir()


def test_one_item_fails_with_its_own_reason(tmp_path: Path, tmp_data_root: Path) -> None:
    result = runner.invoke(app, ["import", str(tmp_path / "absent.zip")])
    assert isinstance(result.exception, UserError) and "absent.zip does not exist" in str(result.exception)


def test_fetch_knows_its_names_before_it_connects(tmp_data_root: Path) -> None:
    result = runner.invoke(app, ["fetch", "digits", "protein"])
    assert isinstance(result.exception, UserError) and "Did you mean: PROTEINS" in str(result.exception)
    assert result.output == ""


def test_fetch_of_what_is_there_says_so(tiny_root: Path) -> None:
    result = runner.invoke(app, ["fetch", "TINY", "digits"])
    assert result.exit_code == 0
    assert result.output.splitlines() == ["unchanged  TINY: already there", "unchanged  digits: already there"]
