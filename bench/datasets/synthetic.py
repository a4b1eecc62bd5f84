"""Random graphs that differ only in structure: all have the same number of nodes and edges and no features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.random import Generator

from bench.datasets.base import Dataset, DatasetInfo
from bench.registry import UserError, Within
from bench.seeding import seed_from

if TYPE_CHECKING:
    from torch_geometric.data import Data

Edges = set[tuple[int, int]]
_REWIRED = 0.1  # share of a small world's edges that are rewired
_WITHIN = 0.85  # share of a block model's edges that are inside a block


class Synthetic(Dataset):
    """Four classes of random graphs: uniform, preferential attachment, small world, two blocks.

    Every graph has `nodes` nodes and exactly nodes x degree / 2 edges; nodes are numbered at random.
    """

    def __init__(
        self,
        graphs: Annotated[int, Within(40, 100_000)] = 400,
        nodes: Annotated[int, Within(8, 1000)] = 30,
        degree: Annotated[int, Within(2, 100)] = 4,
        seed: Annotated[int, Within(0)] = 0,
    ) -> None:
        if degree % 2 or degree > nodes // 4:
            raise UserError(
                f"synthetic: degree={degree} does not fit nodes={nodes}; "
                f"use an even degree of at most a quarter of the nodes (here {nodes // 4 // 2 * 2})"
            )
        self.graphs, self.nodes, self.degree, self.seed = graphs, nodes, degree, seed

    def info(self, root: Path) -> DatasetInfo:
        return DatasetInfo("synthetic", True, False, self.graphs, len(FAMILIES), weighted=False)

    def load(self, root: Path) -> Sequence[Data]:
        return [self._graph(number) for number in range(self.graphs)]

    def _graph(self, number: int) -> Data:
        import torch
        from torch_geometric.data import Data

        label = number % len(FAMILIES)
        name = list(FAMILIES)[label]
        rng = np.random.default_rng(seed_from("synthetic", self.seed, name, self.nodes, self.degree, number))
        edges = np.array(sorted(FAMILIES[name](self.nodes, self.degree, rng)))
        edges = rng.permutation(self.nodes)[edges]
        both = np.concatenate([edges, edges[:, ::-1]]).T
        return Data(edge_index=torch.tensor(both, dtype=torch.long), y=torch.tensor([label]), num_nodes=self.nodes)


def _edge(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def uniform(nodes: int, degree: int, rng: Generator) -> Edges:
    """Erdos-Renyi with a fixed number of edges: all edge sets of that size are equally likely."""
    rows, columns = np.triu_indices(nodes, 1)
    chosen = rng.choice(len(rows), nodes * degree // 2, replace=False)
    return set(zip(rows[chosen].tolist(), columns[chosen].tolist(), strict=True))


def preferential(nodes: int, degree: int, rng: Generator) -> Edges:
    """Barabasi-Albert: each new node connects to degree/2 others, with probability proportional to their degree.

    The edges that the first nodes could not have yet are added in the same way at the end.
    """
    each = degree // 2
    edges: Edges = {(a, b) for a in range(each + 1) for b in range(a + 1, each + 1)}
    ends = [node for edge in sorted(edges) for node in edge]
    for new in range(each + 1, nodes):
        friends: set[int] = set()
        while len(friends) < each:
            friends.add(ends[int(rng.integers(len(ends)))])
        for friend in sorted(friends):
            edges.add(_edge(friend, new))
            ends += [friend, new]
    while len(edges) < nodes * each:
        a, b = int(rng.integers(nodes)), ends[int(rng.integers(len(ends)))]
        if a != b and _edge(a, b) not in edges:
            edges.add(_edge(a, b))
            ends += [a, b]
    return edges


def small_world(nodes: int, degree: int, rng: Generator) -> Edges:
    """Watts-Strogatz: a ring lattice with some edges rewired."""
    ring = [(node, (node + step) % nodes) for step in range(1, degree // 2 + 1) for node in range(nodes)]
    edges: Edges = {_edge(a, b) for a, b in ring}
    for a, b in ring:
        if rng.random() < _REWIRED:
            free = [c for c in range(nodes) if c != a and _edge(a, c) not in edges]
            edges.remove(_edge(a, b))
            edges.add(_edge(a, free[int(rng.integers(len(free)))]))
    return edges


def two_blocks(nodes: int, degree: int, rng: Generator) -> Edges:
    """Stochastic block model of two halves with fixed numbers of edges inside and between them."""
    rows, columns = np.triu_indices(nodes, 1)
    inside = (rows < nodes // 2) == (columns < nodes // 2)
    total = nodes * degree // 2
    wanted = round(_WITHIN * total)
    chosen = np.concatenate(
        [
            rng.choice(np.flatnonzero(inside), wanted, replace=False),
            rng.choice(np.flatnonzero(~inside), total - wanted, replace=False),
        ]
    )
    return set(zip(rows[chosen].tolist(), columns[chosen].tolist(), strict=True))


FAMILIES: dict[str, Callable[[int, int, Generator], Edges]] = {
    "uniform": uniform,
    "preferential": preferential,
    "small-world": small_world,
    "two-blocks": two_blocks,
}
