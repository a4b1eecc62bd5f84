"""From mixed embeddings to edges: by threshold as in the paper, or by one of the controls. Never creates self-loops."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

Wiring = Literal["threshold", "calibrated", "complete", "identity"]
Edges = tuple[Tensor, Tensor | None]  # edge_index sorted by row; weights if requested
TILE = 1024  # rows decoded at a time


def inner_products(embedding: Tensor) -> Tensor:
    """H H^T, the logits of Eq. 11: upper tiles are computed and mirrored, so the result is exactly symmetric."""
    n = len(embedding)
    logits = torch.zeros(n, n)
    for start in range(0, n, TILE):
        stop = min(start + TILE, n)
        upper = (embedding[start:stop] @ embedding[start:].T).triu_(1)
        logits[start:stop, start:] += upper
        logits[start:, start:stop] += upper.T
    return logits


def threshold_edges(embedding: Tensor, eps: float, weighted: bool = False) -> Edges:
    """A = sigmoid(H H^T) without entries below eps; others become 1 unless the originals are weighted (Eq. 11-13)."""
    cut = {0.0: -math.inf, 1.0: math.inf}.get(eps) or math.log(eps / (1 - eps))  # sigmoid(z) >= eps iff z >= cut
    logits = inner_products(embedding)
    keep = (logits >= cut).fill_diagonal_(False)
    return edges_where(keep), strengths(logits, keep) if weighted else None


def calibrated_edges(embedding: Tensor, density: float, weighted: bool = False) -> Edges:
    """The same with the threshold that keeps this share of all pairs, to the nearest pair.

    Among pairs tied at the threshold (isolated nodes share one embedding), evenly spaced ones are kept.
    """
    n = len(embedding)
    logits = inner_products(embedding)
    upper = np.triu(np.ones((n, n), dtype=bool), 1)
    values = logits.numpy()[upper]
    count = min(round(density * len(values)), len(values))
    keep = torch.zeros(n, n, dtype=torch.bool)
    if count:
        cut = np.partition(values, len(values) - count)[len(values) - count]
        chosen, tied = values > cut, np.flatnonzero(values == cut)
        missing = count - int(chosen.sum())
        chosen[tied[np.arange(missing) * len(tied) // missing]] = True
        keep.numpy()[upper] = chosen
        keep |= keep.T.clone()
    return edges_where(keep), strengths(logits, keep) if weighted else None


def strengths(logits: Tensor, keep: Tensor) -> Tensor:
    """sigmoid of the kept entries; mirrored too, because a vectorized sigmoid rounds depending on the position."""
    upper = logits.sigmoid().triu_(1)
    return (upper + upper.T)[keep]


def complete_edges(n: int, weighted: bool = False) -> Edges:
    """All pairs of nodes."""
    edge_index = edges_where(torch.ones(n, n, dtype=torch.bool).fill_diagonal_(False))
    return edge_index, torch.ones(edge_index.shape[1]) if weighted else None


def no_edges(weighted: bool = False) -> Edges:
    """No edges (a backbone may still add self-loops)."""
    return torch.empty(2, 0, dtype=torch.long), torch.ones(0) if weighted else None


def edges_where(keep: Tensor) -> Tensor:
    """The edge index of a dense mask; written in place, because a complete graph of 5,748 nodes has 0.5 GB of edges."""
    flat = np.flatnonzero(keep.numpy())
    edge_index = np.empty((2, len(flat)), dtype=np.int64)
    np.divmod(flat, max(keep.shape[1], 1), out=(edge_index[0], edge_index[1]))
    return torch.from_numpy(edge_index)
