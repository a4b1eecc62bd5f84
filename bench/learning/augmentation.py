"""What happens to a trial's graphs before the first step: offline augmentation, with its figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, GraphAugmenter, generator
from bench.learning.problem import Augmented, Problem, training_set
from models.fit import class_probabilities, one_thread


def make_context(problem: Problem, pretrain: Callable[..., Tensor] = class_probabilities) -> Context:
    """The augmenter's view of its trial; pre-training and shared parts are done once and kept with the trial.

    `pretrain` is the engine's own way to do what `class_probabilities` does.
    """

    def classify(graphs: Sequence[Data], epochs: int) -> Tensor:
        # Only the trial's own labelled graphs may be asked about, so the answer can be shared between methods.
        if len(graphs) != len(problem.graphs):
            raise ValueError(f"classify was asked about {len(graphs)} graphs; this trial has {len(problem.graphs)}")
        key = f"classify:{problem.backbone}:{problem.readout}:{epochs}"
        if key not in problem.shared:
            problem.shared[key] = pretrain(
                graphs,
                problem.num_classes,
                epochs=epochs,
                seed=problem.pretrain_seed,
                backbone=problem.backbone,
                readout=problem.readout,
                lr=problem.training.lr,
            )
        kept: Tensor = problem.shared[key]
        return kept

    return Context(
        problem.num_classes, classify, lambda key: generator(problem.shared_seed(key)), shared=problem.shared
    )


@one_thread()
def generate(problem: Problem, augmenter: GraphAugmenter, rng: np.random.Generator, context: Context) -> list[Data]:
    """New graphs, with their features made anew where the augmenter asks for it."""
    made = augmenter(problem.graphs, rng, context)
    return [problem.featurise(graph) for graph in made] if augmenter.features == "recompute" else made


def offline_set(problem: Problem, rng: np.random.Generator, context: Context) -> Augmented:
    """The training set of a trial whose augmenter works before training or inside the step."""
    augmenter = problem.augmenter
    if isinstance(augmenter, GraphAugmenter) and augmenter.when == "offline":
        return training_set(problem, generate(problem, augmenter, rng, context))
    return training_set(problem, list(problem.graphs) if isinstance(augmenter, GraphAugmenter) else [])


def density(graph: Data) -> float:
    """Share of the ordered node pairs that are joined; a single node counts as 0."""
    n = int(graph.num_nodes or 0)
    return graph.num_edges / (n * (n - 1)) if n > 1 else 0.0


def generated_figures(problem: Problem, densities: Sequence[float], context: Context) -> dict[str, float]:
    """Count and mean density of what an offline method made, beside the originals', and its noted fallbacks."""
    if not densities or problem.augmenter.mode != "append":
        return {}
    return {
        "count": len(densities),
        "density": float(np.mean(densities)),
        "density_original": float(np.mean([density(g) for g in problem.graphs])),
        **context.notes,
    }


class Stopwatch:
    """Seconds spent on each named part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now
