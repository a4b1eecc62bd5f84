"""Disks that are full or read-only, ledgers that were cut: one clear line, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from bench.cli.commands.tables import figures, report, tables
from bench.cli.status import print_status
from bench.registry import UserError
from bench.results.ledger import Ledger, read_records
from bench.results.merge import merge_ledgers
from bench.results.records import TrialRecord
from bench.results.workspace import Workspace
from bench.tracking.cells import sync_mirror

Disk = Callable[..., Path]
ROOM = 12 * 1024  # bytes left on the full disk: the announcement and some trials


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """Disks of a few megabytes, in memory."""
    made: list[Path] = []

    def make(size: str = "4m") -> Path:
        place = tmp_path / f"disk{len(made)}"
        place.mkdir()
        if os.geteuid() != 0:
            pytest.skip("only root can mount a small disk; the limit on a file's size is tested for everyone")
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"this system lets nobody mount a small disk: {done.stderr.strip()}")
        made.append(place)
        return place

    yield make
    for place in made:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tools: ModuleType, mlflow_store: Path) -> Path:
    """A workspace in which nothing went wrong."""
    folder = tools.prepare(tmp_path_factory.mktemp("whole") / "runs", mlflow_store)
    assert tools.run(small(tools), folder)[0] == 0
    return Path(folder)


def small(tools: ModuleType) -> Any:
    return tools.grid(("none", "dropedge"), k=[2, 3], folds=5, repeats=2, epochs=2)


def fill(disk: Path, room: int) -> Path:
    """Take all room but some."""
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    ballast.write_bytes(bytes(free - room))
    return ballast


@pytest.mark.parametrize("store", ["elsewhere", "on the same disk"])
def test_a_run_on_a_disk_that_fills_up_ends_with_one_line_and_goes_on_when_there_is_room(
    small_disk: Disk, tools: ModuleType, whole: Path, mlflow_store: Path, tmp_path: Path, store: str
) -> None:
    disk = small_disk()
    folder = tools.prepare(disk / "runs", mlflow_store)
    other = {"tracking_uri": f"sqlite:///{tools.prepare(tmp_path / 'store', mlflow_store)}/mlflow.db"}
    options = other if store == "elsewhere" else {}
    ballast = fill(disk, ROOM)
    with pytest.raises(
        UserError, match="No space left on device; all trials before this one are kept; free some space"
    ):
        tools.run(small(tools), folder, **options)
    kept = tools.results(folder)
    assert 0 < len(kept) < len(tools.results(whole))
    ballast.unlink()
    code, out = tools.run(small(tools), folder, **options)
    assert code == 0 and f"{len(kept)} trials done already" in out
    assert tools.results(folder) == tools.results(whole)
    assert all(tools.results(whole)[key] == value for key, value in kept.items())


def test_a_new_workspace_on_a_full_disk_is_one_line_and_leaves_no_half_of_a_store(
    small_disk: Disk, tools: ModuleType
) -> None:
    disk = small_disk()
    fill(disk, ROOM)
    with pytest.raises(UserError, match=r"No space left .* free some space"):
        tools.run(small(tools), disk / "runs")
    assert not list((disk / "runs").glob("mlflow*"))


def test_tables_on_a_full_disk_leave_the_old_ones(small_disk: Disk, whole: Path) -> None:
    disk = small_disk()
    tables(workspace=whole, out=disk / "tables")
    before = {path.name: path.read_bytes() for path in (disk / "tables").iterdir()}
    fill(disk, 0)
    with pytest.raises(UserError, match="No space left on device; choose another --out"):
        tables(workspace=whole, out=disk / "tables", metric="macro_f1")
    after = {path.name: path.read_bytes() for path in (disk / "tables").iterdir()}
    assert after.keys() == before.keys() and all(after.values())


def test_a_limit_on_the_size_of_files_loses_nothing(tmp_path: Path) -> None:
    """What a quota does, for those who cannot mount; the limit holds for the whole process, hence a fork."""
    path = tmp_path / "ledger.jsonl"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            with Ledger(path) as ledger:
                for fold in range(100):
                    ledger.append(line(fold))
        except UserError as error:
            code = 7 if "File too large" in str(error) else 8
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    kept = [record.fold for record in read_records(path)]
    assert kept == list(range(len(kept))) and 5 < len(kept) < 20
    assert path.read_bytes().endswith(b"\n"), "the half of a line was taken back"


def test_nothing_is_written_behind_a_half_line_that_could_not_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.jsonl"
    write = os.write

    def refuse(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    with Ledger(path) as ledger:
        ledger.append(line(0))
        monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data)[:9]) and refuse())
        monkeypatch.setattr(os, "ftruncate", refuse)
        for _ in range(2):
            with pytest.raises(UserError, match="Input/output error; all trials before this one are kept"):
                ledger.append(line(1))
        monkeypatch.undo()
        ledger.append(line(2))
    assert [record.fold for record in read_records(path)] == [0, 2]


def line(fold: int) -> TrialRecord:
    return TrialRecord("c", fold, 0, "failed", "none")


def test_a_read_only_workspace_can_be_looked_at_and_says_what_cannot_be_written(
    small_disk: Disk, tools: ModuleType, whole: Path, tmp_path: Path
) -> None:
    disk = small_disk()
    subprocess.run(["cp", "-r", str(whole), str(disk / "runs")], check=True)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    folder = disk / "runs"
    with pytest.raises(UserError, match="is not writable; choose another --workspace"):
        tools.run(small(tools), folder)
    with pytest.raises(UserError, match="is not writable; choose another --workspace"):
        merge_ledgers([whole], Workspace(folder))
    for write in (tables, figures, report):
        with pytest.raises(UserError, match="Read-only file system; choose another --out"):
            write(workspace=folder)
    console = Console(width=200)
    with console.capture() as shown:
        print_status(folder, tmp_path, console)
    assert "40 done" in shown.get()
    tables(workspace=folder, out=tmp_path / "tables")
    assert (tmp_path / "tables" / "macros.tex").is_file()
    assert sync_mirror(Workspace(folder), None) == (0, 4)  # up to date: nothing to write
    assert tools.results(folder) == tools.results(whole)


@pytest.mark.parametrize("tail", [b'{"type":"tri', b"\0" * 700, b""], ids=["torn", "zeros", "cut at a line"])
def test_a_cut_ledger_keeps_its_whole_lines_and_the_run_completes_it(
    workspace: Callable[..., Path], tools: ModuleType, whole: Path, tail: bytes
) -> None:
    folder = workspace()
    lines = Workspace(whole).ledger.read_bytes().splitlines(keepends=True)
    Workspace(folder).ledger.write_bytes(b"".join(lines[:-7]) + tail)
    kept = tools.results(folder)
    assert len(kept) == 33
    code, out = tools.run(small(tools), folder)
    assert code == 0 and "33 trials done already" in out
    assert (f"an unfinished line of {len(tail)} bytes was cut" in out) == bool(tail)
    assert tools.results(folder) == tools.results(whole)


def test_a_dead_server_at_the_start_leaves_no_ledger(tools: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with pytest.raises(UserError, match="start that server, or leave --tracking-uri out"):
        tools.run(small(tools), folder, tracking_uri="http://127.0.0.1:9")
    assert list(folder.iterdir()) == []
