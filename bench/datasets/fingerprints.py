"""A dataset's fingerprint without loading its graphs, so that a plan of many datasets is made in a moment."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench.datasets.loading import load_dataset, resolve_dataset
from bench.datasets.paths import tu_folder
from bench.datasets.tu import is_processed
from bench.sources import source_stamp

NOTE = "fingerprint.txt"  # beside PyG's processed files: it goes when they go


def fingerprint(spec: str, root: Path) -> str:
    """What `GraphSet.fingerprint` says of this dataset; noted beside the processed files of a TU set."""
    known = known_fingerprint(spec, root)
    if known is None:
        known = load_dataset(spec, root).fingerprint
        _write_note(spec, root, known)
    return known


def known_fingerprint(spec: str, root: Path) -> str | None:
    """The noted fingerprint, if the note is as new as the data and as the code that reads it."""
    folder = _folder(spec, root)
    if folder is None or not is_processed(folder):
        return None
    note, processed = folder / "processed" / NOTE, folder / "processed" / "pre_filter.pt"
    try:
        if note.stat().st_mtime_ns < processed.stat().st_mtime_ns:
            return None
        stamp, noted = note.read_text(encoding="utf-8").split()
    except (OSError, ValueError):  # not noted yet, or not by us
        return None
    return noted if stamp == source_stamp("bench.datasets") else None


def _folder(spec: str, root: Path) -> Path | None:
    """Where the set's files would lie; nothing for a dataset with settings or given by its path."""
    choice = resolve_dataset(spec, root)
    return tu_folder(root, choice.name) if choice.name == choice.label and ":" not in choice.name else None


def _write_note(spec: str, root: Path, fingerprint: str) -> None:
    """In one step; a data root that cannot be written to goes without a note, and only planning is slower."""
    folder = _folder(spec, root)
    if folder is None or not is_processed(folder):
        return
    try:
        handle, name = tempfile.mkstemp(dir=folder / "processed", prefix=".fingerprint")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{source_stamp('bench.datasets')} {fingerprint}\n")
        os.replace(name, folder / "processed" / NOTE)
    except OSError:
        return
