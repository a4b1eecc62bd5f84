"""A training set as one block-diagonal adjacency, near-complete graphs held by the pairs they lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bench.learning.fast.ops.product import SUMS_COST

EdgeList = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # targets, sources, weights


class NotFast(Exception):
    """These graphs or this model are for the reference engine; the message says why."""


@dataclass(frozen=True)
class Joined:
    """Nodes of all graphs one below the other. A = edges + (all pairs of near-complete graphs) - missing."""

    x: np.ndarray
    graph: np.ndarray  # the graph of each node
    sizes: np.ndarray
    edges: sp.csr_array  # rows receive, columns send; weights as values
    missing: sp.csr_array  # pairs that a near-complete graph lacks, without the diagonal
    near_complete: np.ndarray  # one flag a graph

    @property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def degrees(self) -> np.ndarray:
        """Sum of the weights that reach each node, without a self loop."""
        full = np.where(self.near_complete[self.graph], self.sizes[self.graph] - 1, 0)
        return np.asarray(self.edges.sum(axis=1) + full - self.missing.sum(axis=1))


@dataclass(frozen=True)
class Part:
    """One graph as the engine keeps it: its edges, or the pairs that it lacks where those are cheaper."""

    x: np.ndarray
    target: np.ndarray
    source: np.ndarray
    weight: np.ndarray | None
    gain: int  # entries saved by the pairs that it lacks; 0: these are its edges

    @classmethod
    def of(cls, graph: Data, whole: bool = False) -> Part:
        """`whole` keeps the edge list as it is (attention needs each pair)."""
        target, source, weight = edge_list(graph)
        x, size, plain = graph.x.numpy(), int(graph.num_nodes), weight is None or bool((weight == 1).all())
        # `Sum of all rows - the missing ones` costs 2n entries and the lacking pairs.
        gain = 2 * len(target) - size * size - size
        if not whole and plain and gain > 0:
            table = pairs(size, target, source)
            if int(table.sum()) == len(target):  # no edge twice
                return cls(x, *others(table), None, gain)
        return cls(x, target.astype(np.int32), source.astype(np.int32), weight, 0)

    def edges(self) -> EdgeList:
        """The edges, however they are kept."""
        if not self.gain:
            return self.target, self.source, self.weight
        return *others(pairs(len(self.x), self.target, self.source)), None


def join(graphs: Sequence[Data], whole: bool = False) -> Joined:
    """Put graphs together."""
    return assemble([Part.of(graph, whole) for graph in graphs])


def assemble(parts: Sequence[Part]) -> Joined:
    """Put graphs together; where shared sums would gain too little over all, every graph by its edges."""
    sizes = np.array([len(part.x) for part in parts], dtype=np.int64)
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
        x=np.concatenate([part.x for part in parts]),
        graph=np.repeat(np.arange(len(parts)), sizes),
        sizes=sizes,
        edges=square(kept, int(starts[-1])),
        missing=square(lacking, int(starts[-1])),
        near_complete=near_complete,
    )


def placed(row: np.ndarray, column: np.ndarray, weight: np.ndarray | None, start: int) -> tuple[np.ndarray, ...]:
    """Entries at their place in the whole matrix, in as little memory as they need."""
    values = np.ones(len(row)) if weight is None else weight.astype(np.float64)
    return (row + start).astype(np.int32), (column + start).astype(np.int32), values


def edge_list(graph: Data) -> EdgeList:
    """Targets, sources and weights of a graph's edges."""
    if not graph.num_nodes:
        raise NotFast("a graph without nodes")
    if graph.x.dtype != torch.get_default_dtype():
        raise NotFast(f"node features of type {graph.x.dtype}")
    source, target = graph.edge_index.numpy()
    if (source == target).any():
        raise NotFast("a self loop among the edges")
    weight = graph.get("edge_weight")
    if weight is not None and (weight.dim() != 1 or weight.dtype != graph.x.dtype):
        raise NotFast("edge weights that are not one number an edge of the features' type")
    return target, source, None if weight is None else weight.numpy()


def pairs(size: int, target: np.ndarray, source: np.ndarray) -> np.ndarray:
    """The graph as a table of booleans."""
    table = np.zeros((size, size), dtype=bool)
    table[target, source] = True
    return table


def others(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of different nodes that a table does not have (its diagonal is written over)."""
    np.fill_diagonal(table, True)
    absent = np.nonzero(~table)
    return absent[0].astype(np.int32), absent[1].astype(np.int32)


def square(parts: Sequence[tuple[np.ndarray, ...]], size: int) -> sp.csr_array:
    """One sparse matrix of (row, column, value) lists; what stands twice is added."""
    if not parts:
        return sp.csr_array((size, size), dtype=np.float64)
    row, column, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sp.csr_array((value, (row, column)), shape=(size, size))
