"""A record beside PyG's processed files: the content of the text files they were made from, and the fingerprint.

A file whose size, times and inode match the record is assumed to be unchanged; any other file is hashed again, so that
the content decides. The times include the ctime, which ordinary programs cannot set: an edit is detected even if it
keeps the size and restores the modification time. Not detected: changes behind the file system's back (a disk image, a
clock that was set back) and, on Windows, which has no ctime, an edit that restores both size and time. Delete the
folder `processed` to parse everything again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.temporary import replacing

NOTE = "augbench.json"  # in `processed`, so it is deleted together with those files
DATA = "data.pt"  # the one processed file that is read
_FORMAT = 1
_SETTLED = 2_000_000_000  # nanoseconds; a file may change again with the same times just after a change
_PIECE = 2**20

Stamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class FileState:
    """The state of a file, and a hash of its content."""

    stamp: Stamp
    digest: str

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Take the state before reading, so that changes made meanwhile are noticed."""
        digest, stamp = hashlib.blake2b(digest_size=16), stamp_of(path)
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        return cls(stamp, digest.hexdigest())


@dataclass(frozen=True)
class Note:
    """What is known about a folder `processed`."""

    raw: Mapping[str, FileState]
    data: FileState
    at: int  # nanoseconds: when the files were inspected
    reader: str  # version of PyG that read the text
    fingerprint: str | None = None
    code: str | None = None  # code that computed the fingerprint

    def holds(self, folder: Path) -> Note | None:
        """This record, updated, if the files still match it."""
        if self.reader != reader_version():
            return None
        try:
            at = time.time_ns()
            found = raw_files(folder)
            if found.keys() != self.raw.keys():
                return None
            raw = {name: self._again(path, self.raw[name]) for name, path in found.items()}
            data = self._again(folder / "processed" / DATA, self.data)
        except OSError:
            return None
        if data.digest != self.data.digest or any(raw[name].digest != self.raw[name].digest for name in raw):
            return None
        same = data is self.data and all(raw[name] is self.raw[name] for name in raw)
        return self if same else replace(self, raw=raw, data=data, at=at)

    def _again(self, path: Path, known: FileState) -> FileState:
        return seen_again(path, known, self.at)


def stamp_of(path: Path) -> Stamp:
    """Size, times and inode of a file."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def settled(stamp: Stamp, at: int) -> bool:
    """Whether a file was old enough when inspected for its times to reveal any later change."""
    _, modified, changed, _ = stamp
    return max(modified, changed) < at - _SETTLED


def seen_again(path: Path, known: FileState, at: int) -> FileState:
    """The current state of a file: the known one if its times match, otherwise read again."""
    return known if settled(known.stamp, at) and stamp_of(path) == known.stamp else FileState.of(path)


def raw_files(folder: Path) -> dict[str, Path]:
    """The text files that PyG would read, by name."""
    return {path.name: path for path in sorted((folder / "raw").glob(f"{folder.name}_*.txt"))}


def raw_states(folder: Path) -> dict[str, FileState]:
    """The states of the text files; take them before PyG reads the files."""
    return {name: FileState.of(path) for name, path in raw_files(folder).items()}


def reader_version() -> str:
    """The version of PyG, without importing it."""
    try:
        return version("torch-geometric")
    except PackageNotFoundError:
        return "not installed"


@lru_cache(maxsize=1)
def reader_code() -> str:
    """A hash of the code that reads and cleans graphs."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def new_note(raw: Mapping[str, FileState], processed: Path, at: int) -> Note:
    """The record for files that were just made from this content."""
    return Note(raw, FileState.of(processed / DATA), at, reader_version())


def kept_note(folder: Path) -> Note | None:
    """The record of a dataset's folder, if its processed files exist and match its text files."""
    noted = _read(folder / "processed" / NOTE)
    if noted is None:
        return None
    current = noted.holds(folder)
    if current is not None and current is not noted:
        write_note(current, folder / "processed")
    return current


def write_note(note: Note, processed: Path) -> None:
    """Write the record atomically; if the data root is read-only, planning is only slower."""
    try:
        with replacing(processed / NOTE) as part:
            part.write_text(json.dumps({"format": _FORMAT, **asdict(note)}), encoding="utf-8")
    except OSError:
        return


def _read(path: Path) -> Note | None:
    """A record as it was written; an invalid one counts as missing."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts.pop("format") != _FORMAT:
            return None
        facts["raw"] = {name: noted_state(state) for name, state in facts["raw"].items()}
        facts["data"] = noted_state(facts["data"])
        note = Note(**facts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    texts = (note.fingerprint, note.code)
    sound = isinstance(note.at, int) and all(text is None or isinstance(text, str) for text in texts)
    return note if sound else None


def noted_state(facts: Mapping[str, Any]) -> FileState:
    """A file's state as it was written to JSON."""
    size, modified, changed, number = (int(value) for value in facts["stamp"])
    return FileState((size, modified, changed, number), str(facts["digest"]))
