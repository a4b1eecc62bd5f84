"""The reference engine: one trial at a time in plain PyG, written for readability, to compare faster engines with."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Context, EmbeddingAugmenter, GraphAugmenter, StepAugmenter, generator
from bench.learning.augmentation import (
    Stopwatch,
    density,
    first_model,
    generate,
    generated_figures,
    make_context,
    offline_set,
)
from bench.learning.problem import Augmented, Fitted, MiniBatches, Problem, curve_epochs, training_set
from bench.learning.steps import AugmentedStep, as_step
from models.classifier import GraphClassifier
from models.fit import Mix, Step, TrainedNetwork, TrainingStep, fit, one_thread, own_stream, predict


class ReferenceEngine:
    """Trains each problem separately."""

    name = "reference"

    def fit(self, problems: Sequence[Problem]) -> list[Fitted | Exception]:
        results: list[Fitted | Exception] = []
        for problem in problems:
            try:
                results.append(fit_problem(problem))
            except (ArithmeticError, RuntimeError, ValueError, MemoryError) as error:
                results.append(error)
        return results


@one_thread()
def fit_problem(problem: Problem) -> Fitted:
    """Augment, train from the trial's initial weights, and return the classifier of the last (or best) epoch."""
    watch = Stopwatch()
    rng, context = generator(problem.augment_seed), make_context(problem)
    fixed = offline_set(problem, rng, context)
    model = first_model(problem).to(problem.device)
    watch.lap("augment")
    keeper = BestEpoch(model, problem) if problem.training.select == "best-val" else LastEpoch(model, problem)
    epochs = training_epochs(problem, fixed, rng, context)
    with own_stream(problem.augment_seed, problem.device):
        fit(model, epochs, problem.training.lr, problem.training.weight_decay, keeper)
    watch.lap("train")
    figures = generated_figures(problem, [density(graph) for graph in fixed.generated], context)
    predictor = TrainedNetwork(keeper.chosen(), problem.device)
    curve = tuple(keeper.curve)
    return Fitted(predictor, keeper.loss, figures, watch.seconds, curve, ReferenceEngine.name)


def training_epochs(
    problem: Problem, fixed: Augmented, rng: Generator, context: Context
) -> Iterator[Iterator[TrainingStep]]:
    """The steps of each epoch, one unless mini-batches are used; only what changes is rebuilt."""
    augmenter, whole, batches = problem.augmenter, as_step(fixed, problem.device), MiniBatches(problem)

    def step(data: Augmented) -> TrainingStep:
        if isinstance(augmenter, StepAugmenter):
            return in_step(problem, augmenter, data.graphs, rng, context)
        made = whole if data is fixed else as_step(data, problem.device)
        if isinstance(augmenter, EmbeddingAugmenter):
            return Step(made.batch, made.targets, made.weights, bound_mix(augmenter, data.graphs, rng, context))
        return made

    for _ in range(problem.training.epochs):
        data = fixed
        if isinstance(augmenter, GraphAugmenter) and augmenter.when == "epoch":
            data = training_set(problem, generate(problem, augmenter, rng, context))
        yield map(step, batches.split(data))


def bound_mix(augmenter: EmbeddingAugmenter, graphs: Sequence[Data], rng: Generator, context: Context) -> Mix:
    """The augmenter's mix with the draw of this step."""
    drawn = augmenter.draw(graphs, rng, context)
    return lambda embeddings, targets: augmenter.mix(embeddings, targets, drawn)


def in_step(
    problem: Problem, augmenter: StepAugmenter, graphs: Sequence[Data], rng: Generator, context: Context
) -> AugmentedStep:
    """The augmenter's step with the draw of this step."""
    featurize = problem.featurize if augmenter.features == "recompute" else copy.copy
    drawn = augmenter.draw(graphs, rng, context)
    counts = 1 / len(problem.graphs) if problem.takes_mean else 1.0
    return AugmentedStep(augmenter, graphs, drawn, problem.num_classes, problem.device, featurize, counts)


class LastEpoch:
    """Keeps the weights of the last epoch, as in the paper."""

    def __init__(self, model: GraphClassifier, problem: Problem) -> None:
        self.model, self.loss = model, float("nan")
        self.curve: list[tuple[int, float]] = []
        self._kept = set(curve_epochs(problem.training.epochs))

    def __call__(self, epoch: int, loss: float) -> None:
        self.loss = loss
        if epoch + 1 in self._kept:
            self.curve.append((epoch + 1, loss))

    def chosen(self) -> GraphClassifier:
        return self.model


class BestEpoch(LastEpoch):
    """Keeps the weights of the epoch with the best validation accuracy; the earliest if tied."""

    def __init__(self, model: GraphClassifier, problem: Problem) -> None:
        super().__init__(model, problem)
        self.graphs, self.device = problem.validation, problem.device
        self.labels = torch.cat([graph.y for graph in problem.validation])
        self.best, self.state = -1, copy.deepcopy(model.state_dict())

    def __call__(self, epoch: int, loss: float) -> None:
        super().__call__(epoch, loss)
        right = int((predict(self.model, self.graphs, self.device).argmax(dim=1) == self.labels).sum())
        if right > self.best:
            self.best, self.state = right, copy.deepcopy(self.model.state_dict())

    def chosen(self) -> GraphClassifier:
        self.model.load_state_dict(self.state)
        return self.model
