"""Dual mixup: features, labels and structural embeddings of two graphs, mixed with one lambda (Eq. 9-13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import label_distribution
from augmenters.functional import density
from augmenters.gdm_wiring import Edges, Wiring, calibrated_edges, complete_edges, no_edges, threshold_edges
from models.sparse_features import is_sparse, mixed_rows

Alignment = Literal["random", "rank"]


@dataclass(frozen=True)
class Mixing:
    """The random choices for one new graph."""

    first: int
    second: int
    share: float  # lambda, the share of the first graph
    places: np.ndarray  # the position of each node of the smaller graph in the larger one


def draw_mixing(pair: tuple[int, int], sizes: np.ndarray, alpha: float, beta: float, rng: Generator) -> Mixing:
    """lambda ~ Beta(alpha, beta), and a random permutation that aligns the smaller graph after padding."""
    small, large = sorted((int(sizes[pair[0]]), int(sizes[pair[1]])))
    return Mixing(*pair, float(rng.beta(alpha, beta)), rng.permutation(large)[:small])


def by_rank(first: Data, second: Data) -> np.ndarray:
    """Positions that align nodes of equal degree rank: the smaller graph's i-th node with the larger one's i-th.

    Sorted by descending degree, ties in the graph's own order. If both graphs have the same size, the second is
    permuted.
    """
    small, large = (first, second) if int(first.num_nodes or 0) < int(second.num_nodes or 0) else (second, first)
    ranked = [np.argsort(-degrees(graph), kind="stable") for graph in (small, large)]
    places = np.empty(len(ranked[0]), dtype=np.int64)
    places[ranked[0]] = ranked[1][: len(places)]
    return places


def degrees(graph: Data) -> np.ndarray:
    """The number of edges of each node."""
    return np.bincount(graph.edge_index[0].numpy(), minlength=int(graph.num_nodes or 0))


def mix_rows(first: Tensor, second: Tensor, mixing: Mixing, pad: Tensor | None = None) -> Tensor:
    """lambda first + (1 - lambda) second, where the smaller table is padded (with zeros or `pad`) and permuted.

    If both have the same size, the second is permuted. Features and embeddings use the same positions, so that they
    stay consistent (Eq. 9 and 10).
    """
    share, places = mixing.share, torch.from_numpy(mixing.places)
    if pad is None and is_sparse(first) and is_sparse(second):
        return mixed_rows(first, second, share, places)
    parts = [share * first, (1 - share) * second]
    large, small = parts if len(first) >= len(second) else parts[::-1]
    mixed = large.index_add(0, places, small)
    if pad is None or len(first) == len(second):
        return mixed
    empty = torch.ones(len(mixed), dtype=torch.bool)
    empty[places] = False
    mixed[empty] += pad * (1 - share if len(first) > len(second) else share)
    return mixed


@dataclass(frozen=True)
class DualMixup:
    """Mixes two graphs into one; `wiring` determines its edges."""

    wiring: Wiring
    eps: float
    num_classes: int
    weighted: bool
    pad: Tensor | None = None  # the embedding of a node without edges, if graphs are padded before encoding

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
        """The edges of the new graph, from the mixed embeddings if there are any."""
        if embeddings is None:
            complete = self.wiring == "complete"
            return complete_edges(larger_size(first, second), self.weighted) if complete else no_edges(self.weighted)
        mixed = mix_rows(*embeddings, mixing, self.pad)
        if self.wiring == "calibrated":
            target = mixing.share * density(first) + (1 - mixing.share) * density(second)
            return calibrated_edges(mixed, target, self.weighted)
        return threshold_edges(mixed, self.eps, self.weighted)


def larger_size(first: Data, second: Data) -> int:
    """max(n_i, n_j), the number of nodes of the mixed graph."""
    return max(int(first.num_nodes or 0), int(second.num_nodes or 0))
