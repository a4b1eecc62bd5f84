"""Which graphs GDM mixes: random pairs, or three equal subsets by difficulty (Eq. 14 and 15 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Context, label_distribution

Sampler = Literal["rand", "acc", "unc"]
Subset = Literal["none", "low", "med", "high"]
Note = Callable[[str], None]
PRETRAINING_EPOCHS = 100


def low_by_accuracy(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Low difficulty iff the most probable class is the true one (Eq. 14)."""
    low: np.ndarray = probabilities.argmax(axis=1) == labels
    return low


def low_by_uncertainty(probabilities: np.ndarray) -> np.ndarray:
    """Low difficulty iff the entropy of the prediction is at most the median (Eq. 15)."""
    entropies = entropy(probabilities)
    low: np.ndarray = entropies <= np.median(entropies)
    return low


def entropy(probabilities: np.ndarray) -> np.ndarray:
    """-sum_c p_c log p_c of each row, with 0 log 0 = 0."""
    logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    total: np.ndarray = -(probabilities * logs).sum(axis=1)
    return total


def lower_half(scores: np.ndarray, rng: Generator) -> np.ndarray:
    """True for the half with the lowest scores (the larger half if odd), ties broken at random."""
    low = np.zeros(len(scores), dtype=bool)
    low[np.lexsort((rng.random(len(scores)), scores))[: (len(scores) + 1) // 2]] = True
    return low


def easy_graphs(
    rule: Literal["acc", "unc"], probabilities: np.ndarray, labels: np.ndarray, rng: Generator, note: Note
) -> np.ndarray:
    """True for graphs of low difficulty; if a pool is empty, graphs are halved by rank instead, and this is counted.

    This is common with few labels: after pre-training, all predictions are often right, or equally certain.
    """
    low = low_by_accuracy(probabilities, labels) if rule == "acc" else low_by_uncertainty(probabilities)
    if 0 < low.sum() < len(low):
        return low
    note(f"fallback_{rule}_empty_pool")
    scores = -probabilities[np.arange(len(labels)), labels] if rule == "acc" else entropy(probabilities)
    return lower_half(scores, rng)


def pairs_within(pool: np.ndarray, count: int, rng: Generator, note: Note) -> list[tuple[int, int]]:
    """Pairs of two different graphs of a pool; a pool of one graph pairs it with itself, and this is counted."""
    if len(pool) == 1:
        note("fallback_pool_of_one")
        return [(int(pool[0]), int(pool[0]))] * count
    first = rng.integers(len(pool), size=count)
    second = (first + rng.integers(1, len(pool), size=count)) % len(pool)
    return list(zip(pool[first].tolist(), pool[second].tolist(), strict=True))


def pairs_across(low: np.ndarray, high: np.ndarray, count: int, rng: Generator) -> list[tuple[int, int]]:
    """Pairs of one graph from each pool."""
    return list(zip(rng.choice(low, count).tolist(), rng.choice(high, count).tolist(), strict=True))


def balanced_pairs(
    easy: np.ndarray, size: int, without: Subset, rng: Generator, note: Note
) -> dict[str, list[tuple[int, int]]]:
    """`size` pairs for each subset: low x low, low x high, high x high, except for the one left out."""
    low, high = np.flatnonzero(easy), np.flatnonzero(~easy)
    if not len(low) or not len(high):  # a single graph cannot be split
        note("fallback_single_graph")
        low = high = np.arange(len(easy))
    make = {
        "low": lambda: pairs_within(low, size, rng, note),
        "med": lambda: pairs_across(low, high, size, rng),
        "high": lambda: pairs_within(high, size, rng, note),
    }
    return {subset: draw() for subset, draw in make.items() if subset != without}


def choose_pairs(
    sampler: Sampler, graphs: Sequence[Data], size: int, without: Subset, rng: Generator, context: Context
) -> list[tuple[int, int]]:
    """The pairs to mix: three subsets of `size`, or the same number of random pairs with `rand`."""
    if sampler == "rand":
        return pairs_within(np.arange(len(graphs)), 3 * size, rng, context.note)
    probabilities = context.classify(graphs, PRETRAINING_EPOCHS).double().numpy()
    labels = np.array([int(label_distribution(graph, context.num_classes).argmax()) for graph in graphs])
    easy = easy_graphs(sampler, probabilities, labels, rng, context.note)
    subsets = balanced_pairs(easy, size, without, rng, context.note)
    return [pair for pairs in subsets.values() for pair in pairs]
