"""Temporary files: none stays after an error, and none of a process that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from augmenters import AUGMENTERS
from bench.datasets.notes import Note, write_note
from bench.plan.plugin_cache import Resolver
from bench.temporary import ABANDONED, replacing, scratch_folder, sweep


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "table.png"
    path.write_text("old")
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old" and part.suffix == ".png" and part.parent == tmp_path
    assert path.read_text() == "new" and names(tmp_path) == ["table.png"]
    with pytest.raises(RuntimeError), replacing(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "new" and names(tmp_path) == ["table.png"]


def test_what_another_process_has_put_there_may_stay(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for content in ("first", "second"):
        with replacing(path, unless_taken=True) as part:
            part.write_text(content)
    assert path.read_text() == "first" and names(tmp_path) == ["store.db"]


KILLED = """
import os, signal, sys
from pathlib import Path
from bench.temporary import replacing, scratch_folder
root = Path(sys.argv[1])
with scratch_folder("augbench", root) as folder, replacing(root / "file.txt") as part:
    (folder / "inside").write_text("x")
    part.write_text("half")
    print(folder, flush=True)
    if sys.argv[2] == "wait":
        input()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    words = [sys.executable, "-c", KILLED, str(tmp_path)]
    alive = subprocess.Popen([*words, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert alive.stdout is not None
    kept = Path(alive.stdout.readline().strip())
    assert subprocess.run([*words, "die"], stdout=subprocess.DEVNULL, check=False).returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 4, "two of each"
    with scratch_folder("augbench", tmp_path), replacing(tmp_path / "file.txt") as part:
        part.write_text("whole")
    left = names(tmp_path)
    assert len(left) == 3 and kept.is_dir() and "file.txt" in left, "what a living process uses stays"
    alive.communicate("go on\n")
    sweep(tmp_path, "augbench")
    sweep(tmp_path, ".file.txt")
    assert names(tmp_path) == ["file.txt"]


def test_files_of_others_stay(tmp_path: Path) -> None:
    """Of another name, of another machine as long as they are new, and whatever a link leads to."""
    (tmp_path / "augbench.txt").touch()
    (tmp_path / "augbench.0123abcd-notanumber-x").touch()
    foreign = tmp_path / "augbench.00000000-1-abcdef"
    foreign.mkdir()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").touch()
    sweep(tmp_path, "augbench")
    assert len(names(tmp_path)) == 4
    past = time.time() - ABANDONED - 60
    os.utime(foreign, (past, past))
    link = tmp_path / "augbench.00000000-2-abcdef"
    link.symlink_to(mine)
    os.utime(link, (past, past), follow_symlinks=False)
    sweep(tmp_path, "augbench")
    assert names(tmp_path) == ["augbench.0123abcd-notanumber-x", "augbench.txt", "mine"]
    assert (mine / "precious").exists()
    sweep(tmp_path / "absent", "augbench")


def no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("where", ["plugins", "note"])
def test_a_full_disk_leaves_nothing_of_the_caches(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(tmp_path / "plugins.json")
    resolver.resolve(AUGMENTERS, "none")
    state: Callable[[], None] = (
        resolver.save if where == "plugins" else lambda: write_note(Note({}, None, 0, ""), tmp_path)  # type: ignore[arg-type]
    )
    monkeypatch.setattr("os.replace", no_room)
    state()
    assert names(tmp_path) == []


def test_a_run_that_is_asked_to_end_takes_its_files_along(tmp_path: Path, tools: ModuleType) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    arguments = ["-d", "synthetic:graphs=60", "-a", "none", "-k", "2", "--jobs", "1", "--epochs", "2000"]
    run = tools.start(tmp_path / "runs", arguments, {"TMPDIR": str(scratch)})
    tools.wait_until(lambda: tools.trial_lines(tmp_path / "runs") >= 1, 120)
    before = set(names(Path("/dev/shm"))) if Path("/dev/shm").is_dir() else set()
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 128 + signal.SIGTERM
    assert [path for path in scratch.rglob("*") if path.is_file()] == []
    assert not [name for name in names(tmp_path / "runs") if name.startswith(".")]
    if before:
        assert not [name for name in set(names(Path("/dev/shm"))) - before if name.startswith("augbench")]
