"""Dual mixup: features, labels and structural embeddings of two graphs mixed with one lambda (Eq. 9-13)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import label_distribution
from augmenters.functional import density
from augmenters.gdm_wiring import Edges, Wiring, calibrated_edges, complete_edges, no_edges, threshold_edges


@dataclass(frozen=True)
class Mixing:
    """Everything random about one new graph."""

    first: int
    second: int
    share: float  # lambda, the part of the first
    places: np.ndarray  # where each node of the smaller graph goes among those of the larger


def draw_mixing(pair: tuple[int, int], sizes: np.ndarray, alpha: float, beta: float, rng: Generator) -> Mixing:
    """lambda ~ Beta(alpha, beta), and one random permutation that aligns the smaller graph after padding."""
    small, large = sorted((int(sizes[pair[0]]), int(sizes[pair[1]])))
    return Mixing(*pair, float(rng.beta(alpha, beta)), rng.permutation(large)[:small])


def mix_rows(first: Tensor, second: Tensor, mixing: Mixing) -> Tensor:
    """lambda first + (1 - lambda) second, the smaller one padded with zero rows and put in its places.

    Of two equal sizes the second is permuted. Features and embeddings go through here with the same places, so a
    node keeps its two halves together (Eq. 9 and 10).
    """
    share, places = mixing.share, torch.from_numpy(mixing.places)
    if len(first) >= len(second):
        return (share * first).index_add(0, places, (1 - share) * second)
    return ((1 - share) * second).index_add(0, places, share * first)


@dataclass(frozen=True)
class DualMixup:
    """Makes one graph of two; `wiring` says where its edges come from."""

    wiring: Wiring
    eps: float
    num_classes: int
    weighted: bool

    def __call__(self, first: Data, second: Data, embeddings: tuple[Tensor, Tensor] | None, mixing: Mixing) -> Data:
        share = mixing.share
        edge_index, weight = self.edges(first, second, embeddings, mixing)
        labels = [label_distribution(graph, self.num_classes) for graph in (first, second)]
        new = Data(edge_index=edge_index, y=share * labels[0] + (1 - share) * labels[1])
        new.num_nodes = larger_size(first, second)
        if first.x is not None and second.x is not None:
            new.x = mix_rows(first.x.float(), second.x.float(), mixing)
        if weight is not None:
            new.edge_weight = weight
        return new

    def edges(self, first: Data, second: Data, embeddings: tuple[Tensor, Tensor] | None, mixing: Mixing) -> Edges:
        """The edges of the new graph, from the mixed embeddings where there are any."""
        if embeddings is None:
            complete = self.wiring == "complete"
            return complete_edges(larger_size(first, second), self.weighted) if complete else no_edges(self.weighted)
        mixed = mix_rows(*embeddings, mixing)
        if self.wiring == "calibrated":
            target = mixing.share * density(first) + (1 - mixing.share) * density(second)
            return calibrated_edges(mixed, target, self.weighted)
        return threshold_edges(mixed, self.eps, self.weighted)


def larger_size(first: Data, second: Data) -> int:
    """max(n_i, n_j), the number of nodes of a mixed graph."""
    return max(int(first.num_nodes or 0), int(second.num_nodes or 0))
