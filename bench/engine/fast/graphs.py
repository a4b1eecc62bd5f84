"""A training set as one block-diagonal adjacency, near-complete graphs held by the pairs they lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bench.engine.fast.product import SUMS_COST

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


def join(graphs: Sequence[Data], whole: bool = False) -> Joined:
    """Put the graphs together; `whole` keeps every edge list as it is (attention needs each pair)."""
    sizes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    lists = [edge_list(graph) for graph in graphs]
    near_complete = np.zeros(len(graphs), dtype=bool) if whole else choose_near_complete(sizes, lists)
    kept: list[tuple[np.ndarray, ...]] = []
    lacking: list[tuple[np.ndarray, ...]] = []
    for start, size, (target, source, weight), flag in zip(starts, sizes, lists, near_complete, strict=False):
        if flag:
            absent = np.nonzero(~pairs(size, target, source, diagonal=True))
            lacking.append(placed(absent[0], absent[1], None, start))
        else:
            kept.append(placed(target, source, weight, start))
    return Joined(
        x=np.concatenate([graph.x.numpy() for graph in graphs]),
        graph=np.repeat(np.arange(len(graphs)), sizes),
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


def choose_near_complete(sizes: np.ndarray, lists: Sequence[EdgeList]) -> np.ndarray:
    """Which graphs are cheaper as `sum of all rows - the missing ones`: it costs 2n entries and the lacking pairs."""
    count = np.array([len(target) for target, _, _ in lists])
    gain = 2 * count - sizes * sizes - sizes
    flags = gain > 0
    for i in np.flatnonzero(flags).tolist():
        target, source, weight = lists[i]
        plain = weight is None or bool((weight == 1).all())
        flags[i] = plain and int(pairs(sizes[i], target, source).sum()) == count[i]  # no edge twice
    return flags if gain[flags].sum() > SUMS_COST else np.zeros_like(flags)


def pairs(size: int, target: np.ndarray, source: np.ndarray, diagonal: bool = False) -> np.ndarray:
    """The graph as a table of booleans."""
    table = np.zeros((size, size), dtype=bool)
    table[target, source] = True
    if diagonal:
        np.fill_diagonal(table, True)
    return table


def square(parts: Sequence[tuple[np.ndarray, ...]], size: int) -> sp.csr_array:
    """One sparse matrix of (row, column, value) lists; what stands twice is added."""
    if not parts:
        return sp.csr_array((size, size), dtype=np.float64)
    row, column, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sp.csr_array((value, (row, column)), shape=(size, size))
