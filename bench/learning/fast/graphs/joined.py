"""A training set as one block-diagonal adjacency matrix; near-complete graphs are stored by their missing pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from torch_geometric.data import Data

from bench.learning.fast.graphs.parts import Features, Part, parts_of
from bench.learning.fast.ops.factored import SUMS_COST


@dataclass(frozen=True)
class Joined:
    """The nodes of all graphs. A = edges + (all pairs of near-complete graphs) - missing."""

    x: Features
    graph: np.ndarray  # the graph of each node
    sizes: np.ndarray
    edges: sp.csr_array  # rows receive, columns send; values are weights
    missing: sp.csr_array  # pairs that a near-complete graph lacks, without the diagonal
    near_complete: np.ndarray  # one flag per graph

    @property
    def nodes(self) -> int:
        return self.x.shape[0]

    @property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def degrees(self) -> np.ndarray:
        """The sum of the weights of each node's edges, without self-loops."""
        full = np.where(self.near_complete[self.graph], self.sizes[self.graph] - 1, 0)
        return np.asarray(self.edges.sum(axis=1) + full - self.missing.sum(axis=1))


def join(graphs: Sequence[Data], whole: bool = False) -> Joined:
    """Join graphs."""
    return assemble(parts_of(graphs, whole))


def assemble(parts: Sequence[Part]) -> Joined:
    """Join graphs; if shared sums would save too little overall, all graphs are stored by their edges."""
    sizes = np.array([part.x.shape[0] for part in parts], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    gains = np.array([part.gain for part in parts])
    near_complete = (gains > 0) & (gains.sum() > SUMS_COST)
    kept: list[tuple[np.ndarray, ...]] = []
    lacking: list[tuple[np.ndarray, ...]] = []
    for start, part, flag in zip(starts, parts, near_complete, strict=False):
        if flag:
            lacking.append(placed(part.target, part.source, None, start))
        else:
            kept.append(placed(*part.edges(), start))
    return Joined(
        x=stacked([part.x for part in parts]),
        graph=np.repeat(np.arange(len(parts)), sizes),
        sizes=sizes,
        edges=square(kept, int(starts[-1])),
        missing=square(lacking, int(starts[-1])),
        near_complete=near_complete,
    )


def stacked(rows: Sequence[Features]) -> Features:
    """Features of several graphs, concatenated: a table, or sparse if one of them is."""
    if not any(isinstance(part, sp.csr_array) for part in rows):
        return np.concatenate(rows)
    return sp.csr_array(sp.vstack([sp.csr_array(part) for part in rows], format="csr"))


def placed(row: np.ndarray, column: np.ndarray, weight: np.ndarray | None, start: int) -> tuple[np.ndarray, ...]:
    """Entries at their positions in the whole matrix, as compactly as possible."""
    values = np.ones(len(row)) if weight is None else weight.astype(np.float64)
    return (row + start).astype(np.int32), (column + start).astype(np.int32), values


def square(parts: Sequence[tuple[np.ndarray, ...]], size: int) -> sp.csr_array:
    """A sparse matrix from lists of (row, column, value); duplicates are added."""
    if not parts:
        return sp.csr_array((size, size), dtype=np.float64)
    row, column, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sp.csr_array((value, (row, column)), shape=(size, size))
