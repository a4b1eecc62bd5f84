"""The text files of a TU dataset: which ones are used, and whether they are consistent."""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.datasets.paths import tu_file
from bench.registry import UserError

# Continuous attributes and edge labels are not part of the protocol, so they are not kept.
REQUIRED = ("A", "graph_indicator", "graph_labels")
USED = (*REQUIRED, "node_labels")
_WIDEST_ONE_HOT = 10_000  # a larger range of node labels is a mistake
_LARGEST_ONE_HOT = 2**30  # numbers in all one-hot node labels; the paper's largest dataset has 30 million

Table = npt.NDArray[np.int64]


def is_complete(raw: Path, name: str) -> bool:
    """Whether the files that a classification dataset needs exist."""
    return all(tu_file(raw, name, kind).is_file() for kind in REQUIRED)


def normalized(content: bytes) -> bytes:
    """The same lines with the line endings that PyG expects: it drops a last line without a newline."""
    return content.replace(b"\r\n", b"\n").rstrip() + b"\n"


def validate(raw: Path, name: str) -> None:
    """Raise an error unless the files contain whole numbers that are consistent."""
    missing = [kind for kind in REQUIRED if not tu_file(raw, name, kind).is_file()]
    if missing:
        names = ", ".join(f"{name}_{kind}.txt" for kind in missing)
        raise UserError(
            f"{name}: {names} missing; every classification dataset in TU layout has them; get a complete copy"
        )
    indicator = _read(raw, name, "graph_indicator", columns=1)[:, 0]
    labels = _read(raw, name, "graph_labels", columns=1)[:, 0]
    edges = _read(raw, name, "A", columns=2)
    # Neighbors are compared, not subtracted: 64-bit integers can overflow and then look small.
    before, after = indicator[:-1], indicator[1:]
    if indicator[0] != 1 or np.any((after != before) & (after != before + 1)):
        raise _error(name, "graph_indicator", "it must count graphs from 1 without gaps, in order")
    graphs = int(indicator[-1])
    if len(labels) != graphs:
        raise _error(name, "graph_labels", f"it has {len(labels)} labels for {graphs} graphs")
    if len(np.unique(labels)) < 2:
        raise _error(name, "graph_labels", "all graphs have the same class")
    if edges.min() < 1 or edges.max() > len(indicator):
        raise _error(name, "A", f"an edge names a node outside 1..{len(indicator)}")
    crossing = int(np.count_nonzero(indicator[edges[:, 0] - 1] != indicator[edges[:, 1] - 1]))
    if crossing:
        raise _error(name, "A", f"{crossing} edges join nodes of different graphs")
    if tu_file(raw, name, "node_labels").is_file():
        nodes = _read(raw, name, "node_labels", columns=None)
        if len(nodes) != len(indicator):
            raise _error(name, "node_labels", f"it has {len(nodes)} lines for {len(indicator)} nodes")
        columns = zip(nodes.max(axis=0).tolist(), nodes.min(axis=0).tolist(), strict=True)
        width = sum(high - low + 1 for high, low in columns)
        if width > _WIDEST_ONE_HOT:
            raise _error(name, "node_labels", f"the labels span more than {_WIDEST_ONE_HOT} values")
        if width * len(nodes) > _LARGEST_ONE_HOT:
            raise _error(name, "node_labels", f"{len(nodes)} nodes with {width} labels do not fit in memory as one-hot")


def summary(raw: Path, name: str) -> tuple[int, int]:
    """The number of graphs and classes, from the smallest file."""
    labels = _read(raw, name, "graph_labels", columns=1)
    return len(labels), len(np.unique(labels))


def digest(raw: Path, name: str) -> str:
    """sha256 of the content of the files, independent of whitespace and of the order of the edges."""
    found = hashlib.sha256()
    for kind in USED:
        if tu_file(raw, name, kind).is_file():
            table = _read(raw, name, kind, columns=None)
            table = np.unique(table, axis=0) if kind == "A" else table
            found.update(f"{kind} {table.shape} ".encode() + table.astype("<i8").tobytes())
    return found.hexdigest()


def _read(raw: Path, name: str, kind: str, columns: int | None) -> Table:
    path = tu_file(raw, name, kind)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _error(name, kind, f"it is not UTF-8 text ({error.reason} at byte {error.start})") from error
    if not text.strip():
        raise _error(name, kind, "it is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns about empty files and fractions
            table: npt.NDArray[Any] = np.loadtxt(
                io.StringIO(text), dtype=np.int64, delimiter=",", comments=None, ndmin=2
            )
    except (ValueError, OverflowError, UserWarning, DeprecationWarning) as error:
        raise _error(name, kind, f"it is not a table of whole numbers ({str(error).rstrip('.')})") from error
    if columns is not None and table.shape[1] != columns:
        raise _error(name, kind, f"it has {table.shape[1]} columns instead of {columns}")
    if text.count("\n") + (not text.endswith("\n")) != len(table):
        raise _error(name, kind, "it has empty lines")
    return table


def _error(name: str, kind: str, reason: str) -> UserError:
    return UserError(f"{name}_{kind}.txt: {reason}; the files are damaged or not in TU layout, get another copy")
