"""Small graphs to work out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch_geometric.data import Data

from augmenters.base import Context


def graph(n: int, pairs: Sequence[tuple[int, int]], label: int = 0, x: torch.Tensor | None = None) -> Data:
    """An undirected graph; features are the numbers of the nodes unless given."""
    both = torch.tensor([*pairs, *((j, i) for i, j in pairs)], dtype=torch.long).reshape(-1, 2).T
    features = torch.arange(n).float().view(-1, 1) if x is None else x
    return Data(x=features, edge_index=both, y=torch.tensor([label]), num_nodes=n)


def path(n: int, label: int = 0) -> Data:
    return graph(n, [(i, i + 1) for i in range(n - 1)], label)


def ring(n: int, label: int = 0) -> Data:
    return graph(n, [(i, (i + 1) % n) for i in range(n)], label)


def complete(n: int, label: int = 0) -> Data:
    return graph(n, [(i, j) for j in range(n) for i in range(j)], label)


def edges_of(one: Data) -> set[tuple[int, int]]:
    """Undirected edges; every one must be there in both directions, once each."""
    ways = list(map(tuple, one.edge_index.T.tolist()))
    assert len(set(ways)) == len(ways) and {(j, i) for i, j in ways} == set(ways)
    return {(i, j) for i, j in ways if i < j}


def context(classes: int = 2) -> Context:
    def classify(graphs: Sequence[Data], epochs: int) -> torch.Tensor:
        return torch.full((len(graphs), classes), 1 / classes)

    return Context(classes, classify, lambda key: np.random.default_rng([*key.encode()]))
