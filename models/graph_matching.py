"""A graph matching network (Li et al., ICML 2019), as used by S-Mixup.

Computes node embeddings of two graphs with attention across the pair, trained with a triplet loss on the labels of the
training graphs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn
from torch.nn.functional import normalize, relu
from torch_geometric.data import Data

from models.fit import Diverged

LAYERS, MARGIN = 5, 1.0
EPOCHS = 20
LEARNING_RATE = 0.001
Triplet = tuple[int, int, int]  # indices of an anchor, a graph of the same class, and a graph of another class


class MatchingLayer(nn.Module):
    """h_i <- h_i + MLP(h_i, sum of the neighbors, h_i minus the attended nodes of the other graph)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.update = nn.Sequential(nn.Linear(3 * width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, own: Tensor, other: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
        heard = torch.zeros_like(own).index_add_(0, edges[1], own[edges[0]] * weights.view(-1, 1))
        seen = (similarities(own, other) * math.sqrt(own.shape[1])).softmax(dim=1) @ other
        new: Tensor = own + self.update(torch.cat([own, heard, own - seen], dim=1))
        return normalize(new, dim=1)


class GraphMatchingNetwork(nn.Module):
    """Five layers with attention across the pair; a graph's embedding is a gated sum over its nodes."""

    def __init__(self, channels: int, width: int, layers: int = LAYERS) -> None:
        super().__init__()
        self.encode = nn.Linear(channels + 1, width)  # the degree is appended to the features
        self.layers = nn.ModuleList(MatchingLayer(width) for _ in range(layers))
        self.gate, self.value = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, first: Data, second: Data) -> tuple[Tensor, Tensor]:
        """Node embeddings of both graphs, each conditioned on the other."""
        pair = [(graph.edge_index, edge_weights(graph)) for graph in (first, second)]
        one, two = (self.encode(node_inputs(graph)) for graph in (first, second))
        for layer in self.layers:
            one, two = layer(one, two, *pair[0]), layer(two, one, *pair[1])
        return one, two

    def distance(self, first: Data, second: Data) -> Tensor:
        """The distance between the two graphs."""
        one, two = (self.pooled(nodes) for nodes in self(first, second))
        return (one - two).norm()

    def pooled(self, nodes: Tensor) -> Tensor:
        return (self.gate(nodes).sigmoid() * self.value(nodes)).mean(dim=0)


def node_inputs(graph: Data) -> Tensor:
    """Features and the logarithm of the degree; with constant features alone, all nodes would be equal."""
    n = int(graph.num_nodes or 0)
    degree = torch.zeros(n).index_add_(0, graph.edge_index[0], edge_weights(graph))
    x = torch.ones(n, 1) if graph.x is None else graph.x.to(torch.float32)
    return torch.cat([x, (1 + degree).log().view(-1, 1)], dim=1)


def edge_weights(graph: Data) -> Tensor:
    given: Tensor | None = graph.get("edge_weight")
    return torch.ones(graph.num_edges) if given is None else given.to(torch.float32)


def similarities(first: Tensor, second: Tensor) -> Tensor:
    """The cosine similarity of each pair of rows."""
    return normalize(first, dim=1) @ normalize(second, dim=1).T


def triplet_loss(near: Tensor, far: Tensor, margin: float = MARGIN) -> Tensor:
    """Zero if the graph of the other class is farther away than the one of the same class by at least the margin."""
    return relu(near - far + margin)


def draw_triplets(labels: np.ndarray, rng: Generator) -> list[Triplet]:
    """One triplet for each graph whose class has another graph and is not the only class, in random order."""
    found = []
    for anchor in rng.permutation(len(labels)).tolist():
        same = np.flatnonzero((labels == labels[anchor]) & (np.arange(len(labels)) != anchor))
        others = np.flatnonzero(labels != labels[anchor])
        if len(same) and len(others):
            found.append((anchor, int(rng.choice(same)), int(rng.choice(others))))
    return found


def fit_matching_network(
    graphs: Sequence[Data], rng: Generator, width: int = 64, epochs: int = EPOCHS
) -> GraphMatchingNetwork:
    """Train on these graphs; without a triplet (one class, or one graph per class), the weights stay as initialized."""
    if not graphs:
        raise ValueError("a matching network cannot be trained without graphs")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63)))
        model = GraphMatchingNetwork(node_inputs(graphs[0]).shape[1] - 1, width)
    labels = np.array([class_of(graph) for graph in graphs])
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    with torch.inference_mode(mode=False), torch.enable_grad():
        for _ in range(epochs):
            for anchor, near, far in draw_triplets(labels, rng):
                optimizer.zero_grad()
                reference = graphs[anchor]
                loss = triplet_loss(model.distance(reference, graphs[near]), model.distance(reference, graphs[far]))
                if not bool(loss.isfinite()):
                    raise Diverged("the loss of the matching network is not finite; check the features of the graphs")
                if float(loss.detach()) > 0:
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimizer.step()
    return model.eval()


def class_of(graph: Data) -> int:
    """The class of a graph; for a soft label, the class with the largest share."""
    return int(graph.y.argmax()) if graph.y.is_floating_point() else int(graph.y)
