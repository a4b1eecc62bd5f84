"""The aggregation matrix of graphs whose edges change in each epoch, built row by row without scipy's overhead.

The values are those of `node_matrix` in the same order, so sums are bit-identical.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from augmenters.joined import Rebuilt
from bench.learning.fast.graphs.aggregation import Kind, scales
from bench.learning.fast.ops.factored import SUMS_COST
from bench.learning.fast.ops.product import Bag, BothWays, Direction, Entries


def plain_edges(drawn: Rebuilt) -> bool:
    """Whether graphs are best stored by their edges: no self-loops, no duplicate edges, no gain from shared sums."""
    (first, second), sizes = drawn.edges, drawn.sizes
    if (first == second).any() or ((first[1:] == first[:-1]) & (second[1:] == second[:-1])).any():
        return False
    gains = 2 * drawn.counts - sizes * sizes - sizes
    return bool(sizes.all()) and int(gains[gains > 0].sum()) <= SUMS_COST


class RewiredMatrix:
    """The matrix of one epoch: `direct` for the first layer's input, `ways` with the bias for later layers."""

    def __init__(self, kind: Kind, drawn: Rebuilt) -> None:
        row, column = drawn.edges
        nodes = int(drawn.sizes.sum())
        every = np.arange(nodes)
        values = np.ones(len(row)) if drawn.weights is None else drawn.weights.astype(np.float64)
        degrees = np.bincount(row, values, nodes)
        if kind != "sage":  # each node is its own neighbor, in sorted position
            place = np.searchsorted(row * nodes + column, every * (nodes + 1))
            row, column = np.insert(row, place, every), np.insert(column, place, every)
            values = np.insert(values, place, 1.0)
        receive, send = scales(degrees, kind)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=nodes))])
        forward, backward = receive[row] * values * send[column], receive[column] * values * send[row]
        self.direct = sp.csr_array((forward, column, offsets), shape=(nodes, nodes))
        # After each row: the node's own position for sage's second weight, then that of the bias.
        behind = np.stack([every + nodes, np.full(nodes, 2 * nodes)] if kind == "sage" else [np.full(nodes, nodes)], 1)
        more = behind.shape[1]
        place = np.repeat(offsets[1:], more)
        ahead = Entries(
            np.insert(forward, place, 1.0),
            np.insert(column, place, behind.ravel()),
            offsets + more * np.arange(nodes + 1),
        )
        # The edges are symmetric: the transpose has the same positions, then one row per own position and the bias's.
        own = offsets[-1] + np.arange(1, nodes * (more - 1) + 1)
        turned = Entries(
            np.concatenate([backward, np.ones(nodes * more)]),
            np.concatenate([column, np.tile(every, more)]),
            np.concatenate([offsets, own, [offsets[-1] + nodes * more]]),
        )
        columns = int(behind[-1, -1]) + 1
        self.ways = BothWays(Direction(Bag(ahead), None, columns, 0), Direction(Bag(turned), None, nodes, 0))
