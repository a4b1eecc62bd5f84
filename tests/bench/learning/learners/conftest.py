"""Problems without a network, for learners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from bench.learning.learner import create_learner
from bench.learning.problem import Fitted, Problem
from bench.learning.reference import ReferenceEngine


def make_graph(n: int, edges: Sequence[tuple[int, int]], y: int = 0, labels: Sequence[int] | None = None) -> Data:
    both = [*edges, *((b, a) for a, b in edges)]
    index = torch.tensor(both, dtype=torch.long).t() if both else torch.empty(2, 0, dtype=torch.long)
    known = torch.tensor(labels if labels is not None else [0] * n)
    x = torch.nn.functional.one_hot(known, 3).float() if labels is not None else torch.ones(n, 1)
    return Data(x=x, edge_index=index.contiguous(), y=torch.tensor([y]), num_nodes=n)


def ring(n: int, y: int = 0, labels: Sequence[int] | None = None) -> Data:
    return make_graph(n, [(i, (i + 1) % n) for i in range(n)], y, labels)


def star(n: int, y: int = 0, labels: Sequence[int] | None = None) -> Data:
    return make_graph(n, [(0, i) for i in range(1, n)], y, labels)


@pytest.fixture
def graph() -> Callable[..., Data]:
    return make_graph


@pytest.fixture
def rings_and_stars() -> list[Data]:
    """Two classes of the same sizes, without labels."""
    return [make(n, y) for n in (5, 6, 7, 8) for y, make in enumerate((ring, star))]


@pytest.fixture
def learn(problem: Callable[..., Problem]) -> Callable[..., Fitted]:
    """Fit a learner by name on graphs."""

    def fit(spec: str, graphs: Sequence[Data], augmenter: str = "none", **changes: Any) -> Fitted:
        from dataclasses import replace

        bare = replace(problem(augmenter, graphs), backbone=None, readout=None, **changes)
        return create_learner(spec, ReferenceEngine()).fit(bare)

    return fit
