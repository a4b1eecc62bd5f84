"""A trial's training set before its first epoch, in the engine's format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Augmenter, Context, GraphAugmenter
from augmenters.kinds import OneByOneAugmenter, kind_of
from bench.learning.augmentation import density, offline_set
from bench.learning.fast.graphs.parts import Part, parts_of
from bench.learning.problem import Problem, training_set


@dataclass(frozen=True)
class Prepared:
    """Graphs with their labels and weights, and the densities of the generated ones."""

    parts: list[Part]
    targets: Tensor
    weights: Tensor
    densities: list[float]


def prepare(problem: Problem, whole: bool, rng: Generator, context: Context) -> Prepared:
    """The result of `offline_set` (`whole`: all edges kept as they are); for per-epoch methods, without parts.

    If a method can generate its graphs one at a time, it does: for near-complete graphs of the sizes of REDDIT, the
    edge lists would need gigabytes, the missing pairs a thousandth of that.
    """
    augmenter = problem.augmenter
    if makes_one_by_one(augmenter):
        made, labels, densities = [], [], []
        for graph in one_by_one(problem, augmenter, rng, context):
            made.append(Part.of(graph, whole))
            densities.append(density(graph))
            labels.append(Data(y=graph.y))
        fixed = training_set(problem, labels)
        originals = parts_of(problem.graphs, whole) if augmenter.mode == "append" else []
        return Prepared(originals + made, fixed.targets, fixed.weights, densities)
    fixed = offline_set(problem, rng, context)
    every_epoch = isinstance(augmenter, GraphAugmenter) and augmenter.when == "epoch"
    parts = [] if every_epoch else parts_of(fixed.graphs, whole)
    return Prepared(parts, fixed.targets, fixed.weights, [density(graph) for graph in fixed.generated])


def makes_one_by_one(augmenter: Augmenter) -> TypeGuard[OneByOneAugmenter]:
    """Whether a method can generate its graphs one at a time before training."""
    return kind_of(type(augmenter)) is OneByOneAugmenter and augmenter.when == "offline"


def one_by_one(problem: Problem, augmenter: OneByOneAugmenter, rng: Generator, context: Context) -> Iterator[Data]:
    """The graphs of `generate`, each generated on demand; all random draws are made before the first."""
    drawn = augmenter.draw(problem.graphs, rng, context)
    for graph in augmenter.generate_each(problem.graphs, drawn):
        yield problem.featurize(graph) if augmenter.features == "recompute" else graph
