"""A parsed and cleaned TU dataset as flat arrays beside PyG's processed files, mapped into memory instead of read.

`graphs.pt` contains only tensors, so no code can run when it is loaded. `graphs.json` records what it was made from:
PyG's parsed copy, the code that cleaned it, and the state of the file itself. If the state of the file differs from the
record, its content is checked again, as in `notes.py`; if the content differs, it is created anew.
"""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from bench.datasets.base import GraphSet
from bench.datasets.flat import FlatGraphs
from bench.datasets.notes import FileState, kept_note, noted_state, reader_code, seen_again
from bench.temporary import replacing

ARRAYS, FACTS = "graphs.pt", "graphs.json"
_FORMAT = 1
_UNREADABLE = (ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True)
class Facts:
    """The origin of the arrays, and what is known about the dataset."""

    source: str  # digest of PyG's parsed copy
    code: str
    fingerprint: str
    width: int
    state: FileState
    at: int  # nanoseconds: when the file was inspected


def kept_set(folder: Path, name: str) -> GraphSet | None:
    """The dataset of a folder, if it is stored there and still matches its text files."""
    facts, note = _facts(folder), kept_note(folder)
    if facts is None or note is None or (facts.source, facts.code) != (note.data.digest, reader_code()):
        return None
    path, now = folder / "processed" / ARRAYS, time.time_ns()
    try:
        found = seen_again(path, facts.state, facts.at)
        if found.digest != facts.state.digest:
            return None
        flat = _mapped(path, facts.width)
    except (*_UNREADABLE, pickle.UnpicklingError):
        return None
    if found is not facts.state:
        _write_facts(folder, replace(facts, state=found, at=now))
    return _as_set(name, flat, facts.fingerprint)


def keep_set(folder: Path, data: GraphSet) -> GraphSet:
    """Store a dataset beside its source files; returns the stored version, or the dataset itself if it cannot be
    stored.
    """
    import torch

    note = kept_note(folder)
    if note is None or not isinstance(data.graphs, FlatGraphs):
        return data
    flat, now = data.graphs, time.time_ns()
    path = folder / "processed" / ARRAYS
    try:
        with replacing(path) as part:
            torch.save(flat.tensors(), part)
            state = FileState.of(part)
    except OSError:  # with a read-only data root, every process parses for itself
        return data
    _write_facts(folder, Facts(note.data.digest, reader_code(), data.fingerprint, flat.width, state, now))
    return kept_set(folder, data.name) or data


def _mapped(path: Path, width: int) -> FlatGraphs:
    import torch

    tensors = torch.load(path, weights_only=True, mmap=True)
    if not isinstance(tensors, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise ValueError("no tensors by name")
    return FlatGraphs.read(tensors, width)


def _as_set(name: str, flat: FlatGraphs, fingerprint: str) -> GraphSet:
    labels = flat.labels.numpy().copy()
    labels.flags.writeable = False
    classes = len(np.unique(labels))
    return GraphSet(name, flat, labels, classes, flat.width > 0, fingerprint, flat.weights is not None)


def _write_facts(folder: Path, facts: Facts) -> None:
    try:
        with replacing(folder / "processed" / FACTS) as part:
            part.write_text(json.dumps({"format": _FORMAT, **asdict(facts)}), encoding="utf-8")
    except OSError:
        return


def _facts(folder: Path) -> Facts | None:
    """The record as it was written; an invalid one counts as missing."""
    try:
        raw = json.loads((folder / "processed" / FACTS).read_text(encoding="utf-8"))
        if raw.pop("format") != _FORMAT:
            return None
        raw["state"] = noted_state(raw["state"])
        facts = Facts(**raw)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    texts, numbers = (facts.source, facts.code, facts.fingerprint), (facts.width, facts.at)
    sound = all(type(text) is str for text in texts) and all(type(number) is int for number in numbers)
    return facts if sound else None
