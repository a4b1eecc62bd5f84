"""Finds nodes with equal embeddings by color refinement, so that they are computed once.

Two nodes with the same features and the same neighborhood up to depth l have the same embedding after l layers,
whatever the weights are, even in different graphs. Layer l therefore needs one row per class of such nodes. In
IMDB-BINARY with constant features, this leaves a fifth of the rows; in NCI1 about half; in DD nearly all, so nothing is
merged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from bench.learning.fast.graphs.joined import Joined
from bench.learning.fast.graphs.parts import Features
from bench.learning.fast.graphs.sameness import Neighborhoods, same_rows

WORTH_MERGING = 0.97  # above this share of distinct nodes, nothing is merged


@dataclass(frozen=True)
class Classes:
    """The class of each node, and a representative of each class."""

    of_node: np.ndarray
    stand_in: np.ndarray

    @property
    def count(self) -> int:
        return len(self.stand_in)

    def members(self) -> sp.csr_array:
        """Node x class, one where the node belongs to the class."""
        nodes = len(self.of_node)
        return sp.csr_array((np.ones(nodes), self.of_node, np.arange(nodes + 1)), shape=(nodes, self.count))


def each_alone(nodes: int) -> Classes:
    """Every node in a class of its own."""
    return Classes(np.arange(nodes), np.arange(nodes))


def refine(joined: Joined, layers: int, by_degree: bool) -> list[Classes]:
    """Classes before the first layer and after each layer; `by_degree` if messages depend on the sender's degree."""
    nodes = joined.nodes
    code, degrees = row_codes(joined.x), joined.degrees() if by_degree else None
    if degrees is not None:
        code = scramble(code) + degrees.view(np.uint64)
    found = [classes_of(code, lambda node, other: same_rows(joined.x, degrees, node, other))]
    factor = np.where(joined.edges.data == 1, 1, scramble(joined.edges.data.view(np.uint64)) | 1).astype(np.uint64)
    edges = sp.csr_array((factor, joined.edges.indices, joined.edges.indptr), shape=joined.edges.shape)
    missing = joined.missing.astype(np.uint64)
    full = joined.near_complete[joined.graph]
    neighborhoods = Neighborhoods(joined)
    for _ in range(layers):
        if found[-1].count > WORTH_MERGING * nodes:
            found.append(found[-1])
            continue
        before = found[-1].of_node
        code = scramble(before.astype(np.uint64))
        around = edges @ code - missing @ code
        # Sums wrap around; the sum of the whole graph without the node is what a complete neighborhood sends.
        totals = np.add.reduceat(code, joined.starts[:-1])[joined.graph] - code
        around = around + np.where(full, totals, np.uint64(0))
        found.append(classes_of(scramble(code) + around, partial(neighborhoods.same, before)))
    return found


def classes_of(code: np.ndarray, same: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Classes:
    """One class per distinct code, as far as its nodes are equal.

    A code is a hash: equal nodes have the same code, different nodes almost always different ones. Each node is
    therefore compared with the representative of its class, and a node that only shares the code gets a class of its
    own.
    """
    _, stand_in, of_node = np.unique(code, return_index=True, return_inverse=True)
    if len(stand_in) <= WORTH_MERGING * len(code):
        others = np.flatnonzero(stand_in[of_node] != np.arange(len(code)))
        alone = others[~same(others, stand_in[of_node[others]])]
        of_node[alone] = len(stand_in) + np.arange(len(alone))
        stand_in = np.concatenate([stand_in, alone])
    if len(stand_in) > WORTH_MERGING * len(code):
        return each_alone(len(code))
    return Classes(of_node, stand_in)


def row_codes(x: Features) -> np.ndarray:
    """A 64-bit code for each row of features, the same for dense and sparse matrices with the same numbers."""
    position = scramble(np.arange(1, x.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    if isinstance(x, sp.csr_array):
        bits = np.ascontiguousarray(x.data, dtype=np.float32).view(np.uint32).astype(np.uint64)
        zero = scramble(np.zeros(1, dtype=np.uint64))  # an array, which overflows without warnings
        code = scramble(bits * position[x.indices]) - zero
        every = sp.csr_array((code, x.indices, x.indptr), shape=x.shape) @ np.ones(x.shape[1], dtype=np.uint64)
        return np.asarray(every + np.uint64(x.shape[1]) * zero)
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return scramble(bits * position).sum(axis=1, dtype=np.uint64)


def scramble(code: np.ndarray) -> np.ndarray:
    """A fixed bijection of 64-bit words that looks random (the finalizer of splitmix64)."""
    code = (code + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    code = (code ^ (code >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return code ^ (code >> np.uint64(31))
