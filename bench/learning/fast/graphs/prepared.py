"""A trial's training set before its first epoch, as the engine keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, GraphAugmenter
from augmenters.gdm import GDM
from bench.learning.augmentation import density, offline_set
from bench.learning.fast.graphs.joined import Part
from bench.learning.fast.training.build import parts_of
from bench.learning.problem import Problem, training_set
from models.classifier import GraphClassifier


@dataclass(frozen=True)
class Prepared:
    """Graphs with the label and the weight of each, and the densities of the generated ones."""

    parts: list[Part]
    targets: Tensor
    weights: Tensor
    densities: list[float]


def prepare(problem: Problem, model: GraphClassifier, rng: Generator, context: Context) -> Prepared:
    """What `offline_set` gives; of a method that works every epoch, no parts.

    GDM's graphs are made and taken one at a time: nearly complete, with REDDIT's sizes, their edge lists would need
    gigabytes, the pairs that they lack a thousandth of it.
    """
    augmenter, densities = problem.augmenter, []
    if type(augmenter) is GDM:
        made, labels = [], []
        for graph in one_by_one(problem, augmenter, rng, context):
            made += parts_of(model, [graph])
            densities.append(density(graph))
            labels.append(Data(y=graph.y))
        fixed = training_set(problem, labels)
        return Prepared(parts_of(model, problem.graphs) + made, fixed.targets, fixed.weights, densities)
    fixed = offline_set(problem, rng, context)
    every_epoch = isinstance(augmenter, GraphAugmenter) and augmenter.when == "epoch"
    parts = [] if every_epoch else parts_of(model, fixed.graphs)
    return Prepared(parts, fixed.targets, fixed.weights, [density(graph) for graph in fixed.generated])


def one_by_one(problem: Problem, augmenter: GDM, rng: Generator, context: Context) -> Iterator[Data]:
    """The graphs that `generate` gives, each when it is asked for: all that is random is drawn before the first."""
    drawn = augmenter.draw(problem.graphs, rng, context)
    for mixing in drawn.mixings:
        for graph in augmenter.apply(problem.graphs, replace(drawn, mixings=[mixing])):
            yield problem.featurise(graph) if augmenter.features == "recompute" else graph
