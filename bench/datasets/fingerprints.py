"""A dataset's fingerprint without loading its graphs, so that a plan of many datasets is made in a moment."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from bench.datasets.loading import load_dataset, resolve_dataset
from bench.datasets.notes import kept_note, write_note
from bench.datasets.paths import tu_folder


def fingerprint(spec: str, root: Path) -> str:
    """What `GraphSet.fingerprint` says of this dataset; noted beside the processed files of a TU set."""
    known = known_fingerprint(spec, root)
    if known is None:
        known = load_dataset(spec, root).fingerprint
        _keep(spec, root)
    return known


def known_fingerprint(spec: str, root: Path) -> str | None:
    """The noted fingerprint, if the text files say what they said then and the code that reads them is the same."""
    folder = _folder(spec, root)
    note = None if folder is None else kept_note(folder)
    return note.fingerprint if note is not None and note.code == _code() else None


def _folder(spec: str, root: Path) -> Path | None:
    """Where the set's files would lie; nothing for a dataset with settings or given by its path."""
    choice = resolve_dataset(spec, root)
    return tu_folder(root, choice.name) if choice.name == choice.label and ":" not in choice.name else None


def _keep(spec: str, root: Path) -> None:
    """Note the fingerprint of what is loaded, if the files have not changed since."""
    folder = _folder(spec, root)
    note = None if folder is None else kept_note(folder)
    if folder is None or note is None:
        return
    current = load_dataset(spec, root)  # loaded again if the files changed after the note was looked at
    write_note(replace(note, fingerprint=current.fingerprint, code=_code()), folder / "processed")


@lru_cache(maxsize=1)
def _code() -> str:
    """A hash of the code that reads and cleans graphs."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
