"""Offline augmentation of a trial's graphs before training, and its statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, GraphAugmenter, generator
from augmenters.samplers import PRETRAINING_EPOCHS
from bench.learning.isolation import contents_of, own_copy
from bench.learning.problem import Augmented, Problem, training_set
from models.classifier import GraphClassifier
from models.fit import Pretrained, one_thread, pretrain

T = TypeVar("T")
Pretrain = Callable[..., Pretrained]
DEFAULT_NETWORK = ("gcn", "mean")  # pre-trained for augmenters that need a classifier if the learner has no network


def make_context(problem: Problem, pretrain: Pretrain = pretrain) -> Context:
    """The augmenter's view of its trial.

    Pre-training and shared parts are computed once and stored with the trial, under everything they depend on. What a
    method stores with `share` is visible only to methods of the same class, as copies. `pretrain` is the engine's own
    implementation of `models.fit.pretrain`.
    """
    family = type(problem.augmenter)

    def classify(graphs: Sequence[Data], epochs: int) -> Tensor:
        if len(graphs) != len(problem.graphs):
            raise ValueError(
                f"classify was asked about {len(graphs)} graphs; this trial has {len(problem.graphs)} labeled ones, "
                "and it must be asked about all of them"
            )
        return pretrained(problem, graphs, epochs, pretrain).probabilities

    def keep(key: str, make: Callable[[], T]) -> T:
        return problem.shared.fetch((family, contents_of(problem.graphs), key), make)

    return Context(problem.num_classes, classify, lambda key: generator(problem.shared_seed(key)), keep)


def pretrained(problem: Problem, graphs: Sequence[Data], epochs: int, pretrain: Pretrain) -> Pretrained:
    """The classifier that is pre-trained on the trial's graphs; computed once."""
    backbone, readout = problem.backbone or DEFAULT_NETWORK[0], problem.readout or DEFAULT_NETWORK[1]
    ending, lr, seed = problem.training.head, problem.training.lr, problem.pretrain_seed

    def train() -> Pretrained:
        own, words = [own_copy(graph) for graph in graphs], {"backbone": backbone, "readout": readout}
        return pretrain(own, problem.num_classes, epochs=epochs, seed=seed, ending=ending, lr=lr, **words)

    settings = (str(backbone), str(readout), ending, epochs, lr, seed)
    return problem.shared.fetch((pretrain, contents_of(graphs), settings), train)


def first_model(problem: Problem, pretrain: Pretrain = pretrain) -> GraphClassifier:
    """The classifier before the first step: fresh, or with the weights of the pre-trained one."""
    model = problem.fresh_model()
    if problem.training.start == "pretrained":
        model.load_state_dict(dict(pretrained(problem, problem.graphs, PRETRAINING_EPOCHS, pretrain).state))
    return model


@one_thread()
def generate(problem: Problem, augmenter: GraphAugmenter, rng: np.random.Generator, context: Context) -> list[Data]:
    """The new graphs, with recomputed features if the augmenter asks for it."""
    made = augmenter(problem.graphs, rng, context)
    return [problem.featurize(graph) for graph in made] if augmenter.features == "recompute" else made


def offline_set(problem: Problem, rng: np.random.Generator, context: Context) -> Augmented:
    """The training set of a trial whose augmenter works before training or inside the step."""
    augmenter = problem.augmenter
    if isinstance(augmenter, GraphAugmenter) and augmenter.when == "offline":
        return training_set(problem, generate(problem, augmenter, rng, context))
    replaces = isinstance(augmenter, GraphAugmenter) and augmenter.mode == "replace"
    return training_set(problem, list(problem.graphs) if replaces else [])


@dataclass(frozen=True)
class OfflineData(Augmented):
    """The training set of a learner that sees its graphs once, and statistics of the generated graphs."""

    figures: dict[str, float]


def offline_data(problem: Problem) -> OfflineData:
    """The labeled graphs and what an offline augmenter generates from them: all that a learner without epochs needs."""
    augmenter = problem.augmenter
    if not isinstance(augmenter, GraphAugmenter) or augmenter.when != "offline":
        raise ValueError(
            f"{type(augmenter).__name__} works during training; only an offline augmenter can be used here"
        )
    context = make_context(problem)
    data = offline_set(problem, generator(problem.augment_seed), context)
    figures = generated_figures(problem, [density(graph) for graph in data.generated], context)
    return OfflineData(data.graphs, data.targets, data.weights, data.generated, figures)


def density(graph: Data) -> float:
    """The share of ordered node pairs that are connected; 0 for a single node."""
    n = int(graph.num_nodes or 0)
    return graph.num_edges / (n * (n - 1)) if n > 1 else 0.0


def generated_figures(problem: Problem, densities: Sequence[float], context: Context) -> dict[str, float]:
    """Number and mean density of the generated graphs, the density of the originals, and recorded fallbacks."""
    if not densities or problem.augmenter.mode != "append":
        return {}
    return {
        "count": len(densities),
        "density": float(np.mean(densities)),
        "density_original": float(np.mean([density(g) for g in problem.graphs])),
        **context.notes,
    }


class Stopwatch:
    """Measures the seconds spent on each named part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now
