"""Graph Transplant (Park et al., AAAI 2022): moves a salient part of one graph into another in each step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, StepAugmenter, TrainingView, generator, label_distribution
from augmenters.functional import EdgeNumbers, any_weighted, edge_weights
from bench.registry import Tune, Within

SALIENT = 0.2  # anchors of the source are drawn from this share of its nodes, the most salient ones


@dataclass(frozen=True)
class GraphTransplant(StepAugmenter):
    """With probability p, replaces a part of a graph with a part of another and mixes the labels by saliency.

    A part grows from `anchors` of the nodes (random ones of the destination, random ones among the most salient of the
    source) over 1 to `hops` hops; a Beta(2, 2) share of each hop is taken. Nodes that lost edges are connected at
    random across the cut until one side has its degrees back. A node's saliency is the norm of the loss gradient at its
    last layer, relative to the sum over its graph. The source's label is weighted by the share of its part in the new
    graph's saliency.
    """

    p: Annotated[float, Within(0, 1), Tune(0.1, 1.0)] = 0.5
    anchors: Annotated[float, Within(0, 1, above=True), Tune(0.05, 0.3)] = 0.1
    hops: Annotated[int, Within(1, 20), Tune(1, 4)] = 3
    features: FeaturePolicy = "recompute"
    labels: ClassVar[Literal["kept", "mixed"]] = "mixed"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Generator:
        """A generator for the step: the draws depend on the saliencies at that moment."""
        return generator(int(rng.integers(2**63)))

    def step(self, view: TrainingView, graphs: Sequence[Data], drawn: Generator) -> None:
        salient = [per_graph_share(values) for values in view.saliency(graphs)]
        sources, chosen = drawn.permutation(len(graphs)), drawn.random(len(graphs)) < self.p
        weighted, made = any_weighted(graphs), []
        for place, source in enumerate(sources):
            if not chosen[place] or source == place:
                made.append(graphs[place])
                continue
            taken = self.part(graphs[place], None, drawn)
            given = self.part(graphs[source], salient[source], drawn)
            pair = (graphs[place], graphs[source])
            bridges = stubs_joined(lost_edges(pair[0], ~taken), lost_edges(pair[1], given), drawn)
            label = mixed_label(pair, (salient[place][~taken], salient[source][given]), view.num_classes)
            made.append(transplanted(pair, (~taken, given), bridges, label, weighted))
        view.learn(made)

    def part(self, graph: Data, salient: Tensor | None, rng: Generator) -> np.ndarray:
        """A mask of the nodes of a part; its anchors are among the most salient nodes if saliencies are given."""
        n = int(graph.num_nodes or 0)
        wanted = max(1, round(self.anchors * n))
        pool = np.arange(n)
        if salient is not None:
            pool = np.argsort(-salient.numpy(), kind="stable")[: max(wanted, math.ceil(SALIENT * n))]
        inside = np.zeros(n, dtype=bool)
        inside[rng.choice(pool, wanted, replace=False)] = True
        adjacency, share, reached = EdgeNumbers([graph]).adjacency, rng.beta(2, 2), inside
        for _ in range(rng.integers(1, self.hops + 1)):
            around = np.flatnonzero((adjacency @ reached.astype(float) > 0) & ~inside)
            reached = np.zeros(n, dtype=bool)
            reached[rng.choice(around, math.ceil(share * len(around)), replace=False)] = True
            inside = inside | reached
        return inside


def per_graph_share(values: Tensor) -> Tensor:
    """Saliencies divided by their sum; uniform if all are zero."""
    total = float(values.sum())
    return values / total if total > 0 else torch.full_like(values, 1 / max(len(values), 1))


def lost_edges(graph: Data, stays: np.ndarray) -> np.ndarray:
    """For each node that stays, its new number, once per edge that it loses."""
    number = np.cumsum(stays) - 1
    first, second = graph.edge_index.numpy()
    cut = stays[first] & ~stays[second]
    return number[first[cut]]


def stubs_joined(first: np.ndarray, second: np.ndarray, rng: Generator) -> np.ndarray:
    """Random pairs of ends, one from each side, until one side is used up; no pair occurs twice."""
    count = min(len(first), len(second))
    pairs = np.stack([rng.permutation(first)[:count], rng.permutation(second)[:count]])
    joined: np.ndarray = np.unique(pairs, axis=1)
    return joined


def mixed_label(pair: tuple[Data, Data], salient: tuple[Tensor, Tensor], num_classes: int) -> Tensor:
    """Both labels, weighted by the saliency of what remains of each graph."""
    kept, given = (float(part.sum()) for part in salient)
    share = given / (kept + given) if kept + given > 0 else len(salient[1]) / (len(salient[0]) + len(salient[1]))
    labels = [label_distribution(graph, num_classes) for graph in pair]
    return (1 - share) * labels[0] + share * labels[1]


def transplanted(
    pair: tuple[Data, Data], stays: tuple[np.ndarray, np.ndarray], bridges: np.ndarray, label: Tensor, weighted: bool
) -> Data:
    """The remaining nodes of both graphs, first graph first, connected by the bridges, which have weight 1."""
    kept = [torch.from_numpy(nodes) for nodes in stays]
    inner = [mask[graph.edge_index].all(dim=0) for mask, graph in zip(kept, pair, strict=True)]
    offset = int(kept[0].sum())
    ends = [(mask.cumsum(0) - 1)[g.edge_index[:, inside]] for mask, g, inside in zip(kept, pair, inner, strict=True)]
    across = torch.from_numpy(bridges + np.array([[0], [offset]]))
    new = Data(edge_index=torch.cat([ends[0], ends[1] + offset, across, across.flip(0)], dim=1), y=label)
    new.num_nodes = offset + int(kept[1].sum())
    if all(graph.x is not None for graph in pair):
        new.x = torch.cat([graph.x[mask] for graph, mask in zip(pair, kept, strict=True)])
    if weighted:
        weights = [edge_weights(graph)[inside] for graph, inside in zip(pair, inner, strict=True)]
        new.edge_weight = torch.cat([*weights, torch.ones(2 * across.shape[1])])
    return new
