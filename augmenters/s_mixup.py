"""S-Mixup (Ling et al., ICML 2023): mixes two graphs after a soft alignment of their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch.nn.functional import normalize
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, label_distribution
from augmenters.functional import edge_weights
from augmenters.gdm import subset_size
from augmenters.gdm_wiring import edges_where
from augmenters.kinds import OneByOneAugmenter
from augmenters.samplers import pairs_within
from bench.registry import Tune, Within
from models.autoencoder_fit import EPOCHS, fit_autoencoder
from models.graph_matching import EPOCHS as MATCHING_EPOCHS
from models.graph_matching import GraphMatchingNetwork, fit_matching_network


@dataclass(frozen=True)
class Alignments:
    """The draws of S-Mixup: pairs, the share of the first graph of each, and the source of node embeddings."""

    pairs: list[tuple[int, int]]
    shares: list[float]
    matcher: list[Tensor] | GraphMatchingNetwork  # embeddings of all graphs, or a network that compares pairs
    num_classes: int


@dataclass(frozen=True)
class SMixup(OneByOneAugmenter):
    """A = lambda A_1 + (1 - lambda) P A_2 P^T without entries below eps; X and y likewise.

    P aligns the nodes of the second graph with those of the first: a softmax over the nodes of the first graph of the
    cosine similarity of the embeddings, divided by `temperature`. The embeddings come from the structural auto-encoder,
    trained only on the labeled graphs of the trial. lambda ~ Beta(alpha, alpha), replaced by 1 - lambda if that is
    larger, so the first graph dominates. Generates as many graphs as GDM.

    `matcher=gmn` trains a graph matching network instead, as the authors do; it compares both graphs of a pair.
    """

    alpha: Annotated[float, Within(0, 100, above=True), Tune(0.1, 4.0, log=True)] = 0.2
    temperature: Annotated[float, Within(0, 100, above=True), Tune(0.02, 1.0, log=True)] = 0.1
    width: Annotated[int, Within(1, 4096), Tune(16, 128, log=True)] = 64
    eps: Annotated[float, Within(0, 1), Tune(0.02, 0.5)] = 0.1
    matcher: Literal["gsae", "gmn"] = "gsae"
    count: Annotated[float, Within(0, 100, above=True), Tune(choices=(0.5, 1.0, 2.0))] = 1.0
    weight: Annotated[float, Within(0), Tune(0.1, 2.0, log=True)] = 1.0
    features: FeaturePolicy = "carry"
    near_complete: ClassVar[bool] = True
    mode: ClassVar[Literal["append"]] = "append"
    labels: ClassVar[Literal["mixed"]] = "mixed"
    weighted: ClassVar[bool] = True

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Alignments:
        pairs = pairs_within(np.arange(len(graphs)), 3 * subset_size(len(graphs), self.count), rng, context.note)
        shares = [max(share, 1 - share) for share in rng.beta(self.alpha, self.alpha, len(pairs)).tolist()]

        if self.matcher == "gmn":
            network = context.share(
                f"matcher:gmn,epochs={MATCHING_EPOCHS},width={self.width}",
                lambda stream: fit_matching_network(graphs, stream, self.width, MATCHING_EPOCHS),
            )
            return Alignments(pairs, shares, network, context.num_classes)

        def train(stream: Generator) -> list[Tensor]:
            return fit_autoencoder(graphs, stream, "gsae", self.width, "onehot", EPOCHS).encode(graphs)

        embeddings = context.share(f"matcher:gsae,epochs={EPOCHS},width={self.width}", train)
        return Alignments(pairs, shares, embeddings, context.num_classes)

    def generate_each(self, graphs: Sequence[Data], drawn: Alignments) -> Iterator[Data]:
        for (i, j), share in zip(drawn.pairs, drawn.shares, strict=True):
            match = soft_alignment(*embeddings_of(drawn.matcher, graphs, i, j), self.temperature)
            yield mixed_graph(graphs[i], graphs[j], match, share, self.eps, drawn.num_classes)


def embeddings_of(
    matcher: list[Tensor] | GraphMatchingNetwork, graphs: Sequence[Data], i: int, j: int
) -> tuple[Tensor, Tensor]:
    """Node embeddings of the two graphs of a pair."""
    if isinstance(matcher, list):
        return matcher[i], matcher[j]
    with torch.no_grad():
        first, second = matcher(graphs[i], graphs[j])
    return first, second


def soft_alignment(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """For each node of the second graph (a column), its weights over the nodes of the first."""
    return (normalize(first, dim=1) @ normalize(second, dim=1).T / temperature).softmax(dim=0)


def adjacency(graph: Data) -> Tensor:
    """The weighted adjacency matrix."""
    n = int(graph.num_nodes or 0)
    table = torch.zeros(n, n)
    table[graph.edge_index[0], graph.edge_index[1]] = edge_weights(graph)
    return table


def mixed_graph(first: Data, second: Data, match: Tensor, share: float, eps: float, num_classes: int) -> Data:
    """The first graph with a share of the second overlaid; no self-loops and no edges of weight zero."""
    table = share * adjacency(first) + (1 - share) * (match @ adjacency(second) @ match.T)
    upper = table.triu(1)
    table = upper + upper.T  # exactly symmetric
    there = (table >= eps) & (table > 0)
    labels = [label_distribution(graph, num_classes) for graph in (first, second)]
    new = Data(edge_index=edges_where(there), edge_weight=table[there], y=share * labels[0] + (1 - share) * labels[1])
    new.num_nodes = first.num_nodes
    if first.x is not None and second.x is not None:
        new.x = share * first.x.float() + (1 - share) * (match @ second.x.float())
    return new
