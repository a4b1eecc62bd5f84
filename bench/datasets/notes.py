"""The note beside PyG's processed files: the content of the text files they were made from, and the fingerprint.

A file whose size, times and number (inode) are as noted is taken to be the same; any other is hashed again, so the
content decides. The time of the last change of status (ctime) is among them, which no ordinary program can set: an
edit is noticed even if it keeps the size and puts the old time back. What is not noticed: a change behind the file
system's back (a disk image, a clock that was set back), and on Windows, which has no ctime, an edit that restores both
size and time. Delete the folder `processed` to have everything read again.
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

NOTE = "augbench.json"  # in `processed`: it goes when those files go
DATA = "data.pt"  # the one processed file that is read
_FORMAT = 1
_SETTLED = 2_000_000_000  # nanoseconds; a file changed just before the note may change again with the same times
_PIECE = 2**20

Stamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class FileState:
    """What a file looked like, and a hash of what it said."""

    stamp: Stamp
    digest: str

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Looked at before it is read: what is written meanwhile then shows as a change."""
        digest, stamp = hashlib.blake2b(digest_size=16), stamp_of(path)
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        return cls(stamp, digest.hexdigest())


@dataclass(frozen=True)
class Note:
    """What is known of a folder `processed`."""

    raw: Mapping[str, FileState]
    data: FileState
    at: int  # nanoseconds: when the files were looked at
    reader: str  # the version of PyG that read the text
    fingerprint: str | None = None
    code: str | None = None  # the code that made the fingerprint

    def holds(self, folder: Path) -> Note | None:
        """This note, brought up to date, if the files still say what it says they do."""
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
    """Size, times and number of a file."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def settled(stamp: Stamp, at: int) -> bool:
    """Whether a file had been left alone for long enough when it was looked at, for its times to tell of any change."""
    _, modified, changed, _ = stamp
    return max(modified, changed) < at - _SETTLED


def seen_again(path: Path, known: FileState, at: int) -> FileState:
    """What a file looks like now: what was known at that time (nanoseconds), or if its times differ, read again."""
    return known if settled(known.stamp, at) and stamp_of(path) == known.stamp else FileState.of(path)


def raw_files(folder: Path) -> dict[str, Path]:
    """The text files that PyG would read, by name."""
    return {path.name: path for path in sorted((folder / "raw").glob(f"{folder.name}_*.txt"))}


def raw_states(folder: Path) -> dict[str, FileState]:
    """What the text files say; to be taken before PyG reads them."""
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
    """The note about files that were just made from this content."""
    return Note(raw, FileState.of(processed / DATA), at, reader_version())


def kept_note(folder: Path) -> Note | None:
    """The note of a set's folder, if its processed files are there and belong to its text files."""
    noted = _read(folder / "processed" / NOTE)
    if noted is None:
        return None
    current = noted.holds(folder)
    if current is not None and current is not noted:
        write_note(current, folder / "processed")
    return current


def is_outdated(folder: Path) -> bool:
    """Whether a set's files were noted and say something else by now."""
    noted = _read(folder / "processed" / NOTE)
    return noted is not None and bool(raw_files(folder)) and noted.holds(folder) is None


def write_note(note: Note, processed: Path) -> None:
    """In one step; a data root that cannot be written to goes without, and only planning is slower."""
    try:
        with replacing(processed / NOTE) as part:
            part.write_text(json.dumps({"format": _FORMAT, **asdict(note)}), encoding="utf-8")
    except OSError:
        return


def _read(path: Path) -> Note | None:
    """A note as it was written; anything else is as good as none."""
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
