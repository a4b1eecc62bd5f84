"""The aggregation matrix of each backbone over nodes, in factored form."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

from bench.learning.fast.graphs.classes import Classes
from bench.learning.fast.graphs.joined import Joined
from bench.learning.fast.ops.factored import Factored

Kind = Literal["gcn", "gin", "sage"]


def node_matrix(joined: Joined, kind: Kind) -> Factored:
    """gcn: D^-1/2 (A + I) D^-1/2; gin: A + I; sage: the weighted mean over the neighbors."""
    degrees, nodes = joined.degrees(), joined.nodes
    full = joined.near_complete[joined.graph]
    # Near-complete graphs provide the sum of all their rows, including the node's own.
    loops = -full.astype(np.float64) if kind == "sage" else 1.0 - full
    diagonal = sp.dia_array((loops[None], [0]), shape=(nodes, nodes)).tocsr()
    matrix = sp.csr_array(joined.edges - joined.missing + diagonal)
    receive, send = scales(degrees, kind)
    return Factored(
        sp.csr_array(scaled(receive, matrix, send)),
        sp.csr_array((receive[full], (np.flatnonzero(full), sums_of(joined)[full])), shape=(nodes, sums(joined))),
        sp.csr_array((send[full], (sums_of(joined)[full], np.flatnonzero(full))), shape=(sums(joined), nodes)),
    )


def scales(degrees: np.ndarray, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    """The factors of the rows and columns of the adjacency matrix."""
    if kind == "gcn":
        with np.errstate(divide="ignore", invalid="ignore"):
            root = (degrees + 1) ** -0.5
        root[np.isinf(root)] = 0
        return root, root
    ones = np.ones(len(degrees))
    return (1 / np.maximum(degrees, np.finfo(np.float32).tiny) if kind == "sage" else ones), ones


def scaled(left: np.ndarray, matrix: sp.csr_array, right: np.ndarray) -> sp.csr_array:
    """diag(left) matrix diag(right)."""
    values = np.repeat(left, np.diff(matrix.indptr))
    values *= matrix.data
    values *= right[matrix.indices]
    return sp.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def sums(joined: Joined) -> int:
    return int(joined.near_complete.sum())


def sums_of(joined: Joined) -> np.ndarray:
    """The index of the shared sum of each node's graph, if it has one."""
    return (np.cumsum(joined.near_complete) - 1)[joined.graph]


def layer_matrix(nodes: Factored, kind: Kind, before: Classes, after: Classes) -> Factored:
    """Maps one row per class before a layer to one row per class after it (sage: a second block has the nodes' own
    rows).
    """
    members = before.members()
    alone = before.count == after.count == len(before.of_node)
    matrix = nodes if alone else nodes.merged(after.stand_in, members)
    return matrix.beside(sp.csr_array(members[after.stand_in])) if kind == "sage" else matrix
