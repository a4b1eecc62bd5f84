"""GeoMix (Zeng et al., ICML 2024): a point on the Gromov-Wasserstein geodesic between two graphs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, label_distribution
from augmenters.gdm import subset_size
from augmenters.gdm_wiring import edges_where
from augmenters.kinds import OneByOneAugmenter
from augmenters.s_mixup import adjacency
from augmenters.transport import node_features, pairs_of_small, uniform
from bench.registry import Tune, Within

ITERATIONS, PROJECTIONS = 50, 200  # of the coupling, which need not be exact


@dataclass(frozen=True)
class Geodesics:
    """The draws of GeoMix: pairs, the share of the first graph of each, and a seed for each coupling."""

    pairs: list[tuple[int, int]]
    shares: list[float]
    seeds: list[int]
    num_classes: int


@dataclass(frozen=True)
class GeoMix(OneByOneAugmenter):
    """Maps both graphs to a common support and mixes them there: A = lambda A_1 + (1 - lambda) A_2; X and y likewise.

    A low-rank Gromov-Wasserstein coupling Q diag(1/g) R^T maps the nodes of both graphs to `support` nodes (fewer if a
    graph is smaller). lambda ~ Beta(alpha, alpha). Entries below eps and self-loops are dropped. All generated graphs
    have the same size whatever their label, so they carry no information where size separates the classes. Graphs with
    more than `most` nodes are left out and counted.
    """

    alpha: Annotated[float, Within(0, 100, above=True), Tune(0.1, 4.0, log=True)] = 1.0
    support: Annotated[int, Within(2, 400), Tune(10, 40)] = 20
    eps: Annotated[float, Within(0, 1), Tune(0.01, 0.5)] = 0.05
    most: Annotated[int, Within(2, 10_000)] = 400
    count: Annotated[float, Within(0, 100, above=True), Tune(choices=(0.5, 1.0, 2.0))] = 1.0
    weight: Annotated[float, Within(0), Tune(0.1, 2.0, log=True)] = 1.0
    features: FeaturePolicy = "carry"
    mode: ClassVar[Literal["append"]] = "append"
    labels: ClassVar[Literal["mixed"]] = "mixed"
    weighted: ClassVar[bool] = True

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Geodesics:
        size = 3 * subset_size(len(graphs), self.count)
        pairs = pairs_of_small(graphs, size, self.most, rng, context.note)
        shares = rng.beta(self.alpha, self.alpha, size).tolist()
        return Geodesics(pairs, shares, rng.integers(2**31, size=size).tolist(), context.num_classes)

    def generate_each(self, graphs: Sequence[Data], drawn: Geodesics) -> Iterator[Data]:
        for (i, j), share, seed in zip(drawn.pairs, drawn.shares, drawn.seeds, strict=True):
            maps = common_support(graphs[i], graphs[j], self.support, seed)
            yield mixed_on_support(graphs[i], graphs[j], maps, share, self.eps, drawn.num_classes)


def common_support(first: Data, second: Data, support: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """For each graph, a matrix with one row per support node that sums to 1 over the graph's nodes."""
    from ot.gromov import lowrank_gromov_wasserstein_samples

    structures = [adjacency(graph).double().numpy() for graph in (first, second)]
    sizes = [len(structure) for structure in structures]
    rank = min(support, *sizes)
    if rank == 1:
        return uniform(sizes[0])[None], uniform(sizes[1])[None]
    factors = [(structure, np.eye(len(structure))) for structure in structures]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged: an approximate coupling is good enough
        left, right, masses = lowrank_gromov_wasserstein_samples(
            *(node_features(graph) for graph in (first, second)),
            rank=rank,
            alpha=1e-6,
            cost_factorized_Xs=factors[0],
            cost_factorized_Xt=factors[1],
            numItermax=ITERATIONS,
            stopThr=1e-9,  # POT's default limit is reached at once, by a uniform coupling
            numItermax_dykstra=PROJECTIONS,
            stopThr_dykstra=1e-2,
            seed_init=seed,
            warn=False,
        )
    return _rows(left, masses), _rows(right, masses)


def _rows(coupling: np.ndarray, masses: np.ndarray) -> np.ndarray:
    rows = np.asarray(coupling).T / np.maximum(np.asarray(masses), 1e-12)[:, None]
    rows = np.nan_to_num(np.clip(rows, 0, None)) + 1e-12
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def mixed_on_support(
    first: Data, second: Data, maps: tuple[np.ndarray, np.ndarray], share: float, eps: float, num_classes: int
) -> Data:
    """The mix of both graphs on the support."""
    parents = (first, second)
    tables = [
        torch.from_numpy(rows @ adjacency(graph).double().numpy() @ rows.T).to(torch.get_default_dtype())
        for rows, graph in zip(maps, parents, strict=True)
    ]
    upper = (share * tables[0] + (1 - share) * tables[1]).triu(1)
    table = upper + upper.T  # exactly symmetric
    there = (table >= eps) & (table > 0)
    labels = [label_distribution(graph, num_classes) for graph in parents]
    new = Data(edge_index=edges_where(there), edge_weight=table[there], num_nodes=len(table))
    new.y = share * labels[0] + (1 - share) * labels[1]
    if first.x is not None and second.x is not None:
        seen = [
            torch.from_numpy(rows @ graph.x.double().numpy()).to(torch.get_default_dtype())
            for rows, graph in zip(maps, parents, strict=True)
        ]
        new.x = share * seen[0] + (1 - share) * seen[1]
    return new
