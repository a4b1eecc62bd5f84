"""Whether two nodes are equal for the next layer, decided by everything that the layer reads, not by a hash."""

from __future__ import annotations

from collections import Counter

import numpy as np
import scipy.sparse as sp

from bench.learning.fast.graphs.joined import Joined
from bench.learning.fast.graphs.parts import Features


def same_rows(x: Features, degrees: np.ndarray | None, nodes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each node has the same features, bit for bit, as its counterpart, and the same degree if that matters."""
    if isinstance(x, sp.csr_array):
        same = np.diff((x[nodes] != x[others]).indptr) == 0
    else:
        bits = np.ascontiguousarray(x).view(np.uint32)
        same = (bits[nodes] == bits[others]).all(axis=1)
    return same if degrees is None else same & (degrees[nodes] == degrees[others])


class Lists:
    """One sorted list of numbers per node."""

    def __init__(self, matrix: sp.csr_array, numbers: np.ndarray) -> None:
        """`numbers`: one for each entry of a node x node matrix."""
        self.starts, self.lengths = matrix.indptr[:-1].astype(np.int64), np.diff(matrix.indptr)
        span = int(numbers.max(initial=0)) + 1
        if len(self.starts) * span >= 2**63:
            numbers = np.unique(numbers, return_inverse=True)[1]
            span = int(numbers.max(initial=0)) + 1
        by_node = np.repeat(np.arange(len(self.starts)) * span, self.lengths)
        self.flat = np.sort(by_node + numbers) - by_node  # sorted as a whole; each node's list stays in its range

    def equal(self, nodes: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Whether each node's list equals that of its counterpart."""
        lengths = self.lengths[nodes]
        same = lengths == self.lengths[others]
        chosen = np.flatnonzero(same)
        lengths = lengths[chosen]
        ends = np.cumsum(lengths)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
        one, other = (self.flat[np.repeat(self.starts[part[chosen]], lengths) + within] for part in (nodes, others))
        same[np.repeat(chosen, lengths)[one != other]] = False
        return same

    def of(self, node: int) -> list[int]:
        start = int(self.starts[node])
        return self.flat[start : start + int(self.lengths[node])].tolist()


class Neighborhoods:
    """The neighbors of each node by class and edge weight, with multiplicity.

    A node of a near-complete graph is connected to all nodes of its graph except itself and those it lacks.
    """

    def __init__(self, joined: Joined) -> None:
        self.joined, self.full = joined, joined.near_complete[joined.graph]
        # Edges of near-complete graphs have weight 1, so that is always one of the weights.
        every = np.unique(np.append(joined.edges.data, 1.0), return_inverse=True)[1]
        self.weight, self.one = every[:-1], int(every[-1])

    def same(self, before: np.ndarray, nodes: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Whether each node has the class of its counterpart before the layer, and the same neighbors by class and
        weight.
        """
        joined, classes = self.joined, int(before.max(initial=0)) + 1
        heard = Lists(joined.edges, before[joined.edges.indices] + classes * self.weight)
        alike = before[nodes] == before[others]
        same = alike & heard.equal(nodes, others)
        if not joined.near_complete.any():
            return same
        lacked = Lists(joined.missing, before[joined.missing.indices])
        crowd = crowds(joined, before)[joined.graph]
        same &= (crowd[nodes] == crowd[others]) & lacked.equal(nodes, others)
        # Nodes of different graphs may lack exactly what distinguishes the graphs: compare these explicitly.
        for place in np.flatnonzero(alike & ~same & (self.full[nodes] | self.full[others])):
            one, other = (self.written_out(int(part[place]), before, heard, lacked) for part in (nodes, others))
            same[place] = one == other
        return same

    def written_out(self, node: int, before: np.ndarray, heard: Lists, lacked: Lists) -> Counter[int]:
        """How many neighbors of each class and weight a node has."""
        counts = Counter(heard.of(node))
        if self.full[node]:
            classes, graph = int(before.max(initial=0)) + 1, self.joined.graph[node]
            crowd = Counter(before[self.joined.starts[graph] : self.joined.starts[graph + 1]].tolist())
            crowd.subtract([int(before[node]), *lacked.of(node)])
            counts.update({number + classes * self.one: count for number, count in crowd.items() if count})
        return counts


def crowds(joined: Joined, before: np.ndarray) -> np.ndarray:
    """A number per graph: shared by near-complete graphs with the same class counts, -1 for others."""
    starts, numbers = joined.starts, dict[bytes, int]()
    found = np.full(len(joined.sizes), -1)
    for graph in np.flatnonzero(joined.near_complete):
        members = np.sort(before[starts[graph] : starts[graph + 1]])
        found[graph] = numbers.setdefault(members.tobytes(), len(numbers))
    return found
