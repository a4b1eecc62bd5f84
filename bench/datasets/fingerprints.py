"""A dataset's fingerprint without loading its graphs, so that planning is fast even with many datasets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.datasets.loading import load_dataset, resolve_dataset
from bench.datasets.made_here import is_made_here, recalled, remember
from bench.datasets.notes import kept_note, reader_code, write_note
from bench.datasets.paths import tu_folder
from bench.datasets.stored import read_note, stored_names


def fingerprint(spec: str, root: Path) -> str:
    """`GraphSet.fingerprint` of this dataset; for TU datasets it is stored beside the processed files."""
    known = known_fingerprint(spec, root)
    if known is None:
        known = load_dataset(spec, root).fingerprint
        _keep(spec, root)
    return known


def known_fingerprint(spec: str, root: Path) -> str | None:
    """The stored fingerprint, if the text files and the code that reads them have not changed."""
    choice = resolve_dataset(spec, root)
    if is_made_here(choice):
        return recalled(choice, reader_code())
    stored = read_note(root, choice.label) if choice.label in stored_names(root) else None
    if stored is not None:
        return stored.fingerprint if stored.code == reader_code() else None
    folder = _folder(spec, root)
    note = None if folder is None else kept_note(folder)
    return note.fingerprint if note is not None and note.code == reader_code() else None


def _folder(spec: str, root: Path) -> Path | None:
    """The folder of the dataset's files; None for a dataset with settings or given by path."""
    choice = resolve_dataset(spec, root)
    return tu_folder(root, choice.name) if choice.name == choice.label and ":" not in choice.name else None


def _keep(spec: str, root: Path) -> None:
    """Store the fingerprint of a loaded dataset, if the files have not changed in the meantime."""
    choice = resolve_dataset(spec, root)
    if is_made_here(choice):
        remember(choice, reader_code(), load_dataset(spec, root).fingerprint)
        return
    folder = _folder(spec, root)
    note = None if folder is None else kept_note(folder)
    if folder is None or note is None:
        return
    current = load_dataset(spec, root)  # loaded again if the files changed after the note was read
    write_note(replace(note, fingerprint=current.fingerprint, code=reader_code()), folder / "processed")
