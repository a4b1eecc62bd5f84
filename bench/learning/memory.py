"""Estimates how much memory an engine needs to train a trial, before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bench.learning.problem import Problem

# Bytes, calibrated against measured peaks (docs/performance.md).
PER_ENTRY, PER_CHANGING_ENTRY = 160, 600  # an edge in the sparse matrices, fixed or drawn anew in each epoch
PER_DECODED_PAIR = 40  # a pair of nodes of a near-complete graph while it is generated
ROWS_BESIDE_LAYERS = 6  # tables of nodes x width that training needs in addition to one per layer
USUAL = {"layers": 4, "width": 64, "dropout": 0}  # for backbones without such settings


def estimated_peak(problem: Problem, engine: str) -> int:
    """An upper bound, in bytes, on what training a trial needs beyond the memory of its process; rather too high."""
    from models.sparse_features import entries as entries_of  # imports torch, which the driver does without

    augmenter, settings = problem.augmenter, problem.backbone.settings if problem.backbone else {}
    kind = problem.backbone.name if problem.backbone else ""
    by_hand = engine == "fast" and not handed_over(problem)
    sizes = np.sort([int(graph.num_nodes or 0) for graph in problem.graphs]).astype(np.float64)
    edges = sum(graph.num_edges for graph in problem.graphs)
    layers, width, dropout = (float(settings.get(name) or usual) for name, usual in USUAL.items())
    nodes, channels = float(sizes.sum()), problem.graphs[0].num_node_features
    entries, decoding = edges + nodes, 0.0
    if augmenter.mode == "append":
        generated = getattr(augmenter, "count", 1.0) * len(sizes)
        # A mixed graph has the size of the larger of two: the i-th of m sizes with probability (2i - 1) / m^2.
        larger = (2 * np.arange(1, len(sizes) + 1) - 1) / len(sizes) ** 2
        nodes += float(generated * (larger @ sizes))
        if getattr(augmenter, "near_complete", False):
            decoding = PER_DECODED_PAIR * sizes[-1] ** 2
            # Without attention, the fast engine stores near-complete graphs by their missing pairs.
            every_pair = not by_hand or kind == "gat"
            entries += generated * (larger @ (sizes**2 if every_pair else 2 * sizes))
        else:
            entries *= 2
    row = 4 * width
    each = 1 + (kind == "gin") + (dropout > 0)  # GIN has a second map, dropout a mask
    tables = (layers * each + ROWS_BESIDE_LAYERS) * nodes * row
    per_entry = PER_CHANGING_ENTRY if augmenter.when == "epoch" else PER_ENTRY
    if not by_hand:  # autograd keeps the messages of every layer
        per_entry += int(2.5 * layers * row)
    # Three copies of the features as stored, and weights, gradient and moments, of which wide features have many.
    held = sum(entries_of(graph.x) for graph in problem.graphs) / sizes.sum()
    features = 3 * nodes * 4 * held * (1 if held == channels else 6) + 6 * channels * row
    return int(max(tables + per_entry * entries, decoding + row * sizes.sum()) + features)


def handed_over(problem: Problem) -> bool:
    """Whether the reference engine will train a trial that the fast engine was asked to train."""
    from bench.learning.fast.engine import obstacle_of

    return obstacle_of(problem) is not None
