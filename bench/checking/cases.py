"""The graphs that every augmenter is tested on: generated ones with one peculiarity each, and the built-in datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from bench.datasets import load_dataset
from bench.seeding import seed_from

Answer = Literal["mixed", "right", "wrong", "uncertain"]
WIDTH = 3  # number of node features of the generated graphs


@dataclass(frozen=True)
class Case:
    """Labeled graphs, and the predictions of a fake classifier that the augmenter may train on them."""

    name: str
    graphs: tuple[Data, ...]
    num_classes: int
    answer: Answer = "mixed"

    def classify(self, graphs: Sequence[Data], epochs: int) -> Tensor:
        """Class probabilities without training; in `mixed`, some are right and some wrong, all equally confident."""
        steps = torch.linspace(0.05, 0.95, len(graphs))
        certainty = {
            "mixed": steps,
            "right": 0.6 + 0.4 * steps,
            "wrong": 0.2 * steps / self.num_classes,
            "uncertain": torch.full((len(graphs),), 1 / self.num_classes),
        }[self.answer]
        truth = torch.nn.functional.one_hot(torch.cat([graph.y for graph in graphs]), self.num_classes)
        rest = (1 - certainty) / max(self.num_classes - 1, 1)
        return torch.where(truth.bool(), certainty.unsqueeze(1), rest.unsqueeze(1))


def graph_cases() -> list[Case]:
    """The cases that differ in their graphs, for plug-ins that train no classifier."""
    return [case for case in cases() if case.answer == "mixed"]


def graph_of(nodes: int, pairs: np.ndarray, label: int, rng: Generator) -> Data:
    """An undirected graph with these edges and one-hot node features."""
    both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64)
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    kinds = torch.from_numpy(rng.integers(WIDTH, size=nodes))
    return Data(
        x=torch.nn.functional.one_hot(kinds, WIDTH).float(),
        edge_index=torch.from_numpy(both.T.copy()),
        y=torch.tensor([label]),
        num_nodes=nodes,
    )


def all_pairs(nodes: int) -> np.ndarray:
    """All pairs of nodes, one per row."""
    return np.stack(np.triu_indices(nodes, 1), axis=1)


def random_graph(nodes: int, share: float, label: int, rng: Generator) -> Data:
    """A uniform random graph with this share of all pairs as edges, at least one."""
    pairs = all_pairs(nodes)
    chosen = rng.permutation(len(pairs))[: max(1, round(share * len(pairs)))]
    return graph_of(nodes, pairs[np.sort(chosen)], label, rng)


def weighted_graph(nodes: int, label: int, rng: Generator) -> Data:
    """A random graph with edge weights from 0.1 to 2, equal in both directions."""
    graph = random_graph(nodes, 0.4, label, rng)
    low, high = graph.edge_index.min(dim=0).values, graph.edge_index.max(dim=0).values
    table = torch.from_numpy(rng.uniform(0.1, 2.0, size=(nodes, nodes))).float()
    graph.edge_weight = table[low, high]
    return graph


def with_isolated_nodes(nodes: int, label: int, rng: Generator) -> Data:
    """A random graph whose last third of nodes is isolated."""
    inner = random_graph(nodes - nodes // 3, 0.4, label, rng)
    return graph_of(nodes, inner.edge_index.T.numpy()[inner.edge_index[0] < inner.edge_index[1]], label, rng)


def first_of_each_class(dataset: str, count: int) -> list[Data]:
    """The first graphs of every class of a built-in dataset, with a constant feature if it has none."""
    data = load_dataset(dataset, Path())
    chosen = []
    for label in range(data.num_classes):
        for place in np.flatnonzero(data.labels == label)[:count]:
            graph = data.graphs[place].clone()
            graph.x = torch.ones(int(graph.num_nodes or 0), 1) if graph.x is None else graph.x
            chosen.append(graph)
    return chosen


def _each(make: Callable[[int, int, Generator], Data], sizes: Sequence[int], name: str) -> tuple[Data, ...]:
    """Graphs of these sizes in two classes, from the case's own random stream."""
    rng = np.random.default_rng(seed_from("check", name))
    return tuple(make(size, place % 2, rng) for place, size in enumerate(sizes))


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
    """All cases; the first is the simplest."""
    sizes = (9, 14, 5, 20, 3, 11)
    no_pairs = np.empty((0, 2), dtype=np.int64)
    makers: dict[str, tuple[Callable[[int, int, Generator], Data], Sequence[int]]] = {
        "mixed sizes": (lambda n, y, rng: random_graph(n, 0.3, y, rng), sizes),
        "weighted graphs": (weighted_graph, sizes),
        "complete graphs": (lambda n, y, rng: graph_of(n, all_pairs(n), y, rng), (8, 8, 12, 12, 3, 2)),
        "graphs without edges": (lambda n, y, rng: graph_of(n, no_pairs, y, rng), (4, 4, 7, 2)),
        "graphs of one node": (lambda n, y, rng: graph_of(n, no_pairs, y, rng), (1, 1, 1, 1)),
        "isolated nodes": (with_isolated_nodes, (9, 9, 6, 12)),
        "one per class": (lambda n, y, rng: random_graph(n, 0.3, y, rng), (6, 10)),
    }
    found = {name: Case(name, _each(make, order, name), 2) for name, (make, order) in makers.items()}
    kinds = [found[name].graphs[:2] for name in list(makers) if name != "weighted graphs"]
    plain = found["mixed sizes"].graphs
    return (
        *found.values(),
        Case("all kinds together", tuple(graph for pair in kinds for graph in pair), 2),
        Case("two per class (digits)", tuple(first_of_each_class("digits", 2)), 10),
        Case("two per class (synthetic)", tuple(first_of_each_class("synthetic:graphs=40", 2)), 4),
        Case("all predicted right", plain, 2, "right"),
        Case("all predicted wrong", plain, 2, "wrong"),
        Case("all predictions unsure", plain, 2, "uncertain"),
    )
