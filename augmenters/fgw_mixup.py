"""FGWMixup (Ma et al., NeurIPS 2023): the fused Gromov-Wasserstein barycenter of two graphs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, label_distribution
from augmenters.functional import any_weighted, density
from augmenters.gdm import subset_size
from augmenters.gdm_wiring import edges_where
from augmenters.kinds import OneByOneAugmenter
from augmenters.s_mixup import adjacency
from augmenters.transport import densest_pairs, node_features, pairs_of_small, uniform
from bench.registry import Tune, Within

ITERATIONS, TOLERANCE = 20, 1e-4  # of the barycenter; enough to converge on graphs of this size
INNER = 200  # iterations per coupling at most


@dataclass(frozen=True)
class Barycenters:
    """The draws of FGWMixup: pairs, and the share of the first graph of each."""

    pairs: list[tuple[int, int]]
    shares: list[float]
    num_classes: int


@dataclass(frozen=True)
class FGWMixup(OneByOneAugmenter):
    """The fused Gromov-Wasserstein barycenter of two graphs, with share ~ Beta(alpha, alpha) of the first.

    It has floor(share n_1 + (1 - share) n_2) nodes and is initialized with the first nodes of the larger parent.
    `trade` weighs structure against features. The strongest pairs become edges until the density matches the mixed
    density of the parents. The label weighs each parent by its proximity: w_1 = d_2 / (d_1 + d_2). Time grows with the
    cube of the number of nodes, so graphs with more than `most` nodes are left out and counted.
    """

    alpha: Annotated[float, Within(0, 100, above=True), Tune(0.1, 4.0, log=True)] = 0.2
    trade: Annotated[float, Within(0, 1), Tune(0.5, 0.99)] = 0.95
    most: Annotated[int, Within(2, 400)] = 60
    count: Annotated[float, Within(0, 100, above=True), Tune(choices=(0.5, 1.0, 2.0))] = 1.0
    weight: Annotated[float, Within(0), Tune(0.1, 2.0, log=True)] = 1.0
    features: FeaturePolicy = "carry"
    mode: ClassVar[Literal["append"]] = "append"
    labels: ClassVar[Literal["mixed"]] = "mixed"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Barycenters:
        size = 3 * subset_size(len(graphs), self.count)
        pairs = pairs_of_small(graphs, size, self.most, rng, context.note)
        return Barycenters(pairs, rng.beta(self.alpha, self.alpha, size).tolist(), context.num_classes)

    def generate_each(self, graphs: Sequence[Data], drawn: Barycenters) -> Iterator[Data]:
        weighted = any_weighted(graphs)
        for (i, j), share in zip(drawn.pairs, drawn.shares, strict=True):
            yield barycenter(graphs[i], graphs[j], share, self.trade, drawn.num_classes, weighted)


def barycenter(first: Data, second: Data, share: float, trade: float, num_classes: int, weighted: bool = False) -> Data:
    """The mixed graph with its label; it has edge weights if the originals have them."""
    from ot.gromov import fgw_barycenters

    parents = (first, second)
    structures = [adjacency(graph).double().numpy() for graph in parents]
    features = [node_features(graph) for graph in parents]
    sizes = [len(structure) for structure in structures]
    n = max(math.floor(round(share * sizes[0] + (1 - share) * sizes[1], 9)), 1)  # two graphs of 6 give one of 6
    start = int(sizes[1] > sizes[0])
    x, strength = fgw_barycenters(
        n,
        features,
        structures,
        ps=[uniform(size) for size in sizes],
        p=uniform(n),
        lambdas=[share, 1 - share],
        alpha=trade,
        init_C=structures[start][:n, :n],
        init_X=features[start][:n],
        max_iter=ITERATIONS,
        tol=TOLERANCE,
    )[:2]
    mix = share * density(first) + (1 - share) * density(second)
    joined = densest_pairs(np.asarray(strength), mix)
    own = joined.astype(float)
    distances = [
        distance(own, np.asarray(x), structure, feature, trade)
        for structure, feature in zip(structures, features, strict=True)
    ]
    new = Data(edge_index=edges_where(torch.from_numpy(joined)), num_nodes=n)
    if weighted:
        new.edge_weight = torch.from_numpy(np.triu(strength, 1) + np.triu(strength, 1).T)[joined].clamp(min=0).float()
    new.y = nearness_label(distances, share, [label_distribution(graph, num_classes) for graph in parents])
    if first.x is not None and second.x is not None:
        new.x = torch.from_numpy(np.asarray(x)).to(torch.get_default_dtype())
    return new


def distance(structure: np.ndarray, x: np.ndarray, other: np.ndarray, other_x: np.ndarray, trade: float) -> float:
    """The fused Gromov-Wasserstein distance of two graphs with uniform node masses."""
    from ot import dist
    from ot.gromov import fused_gromov_wasserstein2

    masses = uniform(len(structure)), uniform(len(other))
    found = fused_gromov_wasserstein2(dist(x, other_x), structure, other, *masses, alpha=trade, max_iter=INNER)
    return max(float(found), 0.0)


def nearness_label(distances: Sequence[float], share: float, labels: Sequence[Tensor]) -> Tensor:
    """The parents' labels, weighted by their proximity to the new graph; by `share` if it equals both parents."""
    total = sum(distances)
    own = distances[1] / total if total > 1e-7 else share  # 1e-7: the precision of the solver
    return own * labels[0] + (1 - own) * labels[1]
