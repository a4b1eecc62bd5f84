"""The fast engine: the reference's trials with every gradient written out; what it cannot do it hands over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import StepAugmenter, generator
from bench.learning.augmentation import Stopwatch, generated_figures, make_context
from bench.learning.fast.graphs.joined import NotFast
from bench.learning.fast.graphs.prepared import prepare
from bench.learning.fast.training.build import check_model, dropout_of, fixed_network, parts_of
from bench.learning.fast.training.epochs import leaves_torch_alone, steps
from bench.learning.fast.training.loop import train
from bench.learning.fast.training.parameters import Parameters
from bench.learning.problem import Fitted, Problem, curve_epochs, label_rows
from bench.learning.reference import fit_problem
from bench.registry import Choice
from models.classifier import build_classifier
from models.fit import TrainedNetwork, class_probabilities, one_thread, own_stream, predict


class FastEngine:
    """Trains each problem by itself, so that its numbers never depend on what else is trained in the same call."""

    name = "fast"

    def fit(self, problems: Sequence[Problem]) -> list[Fitted | Exception]:
        results: list[Fitted | Exception] = []
        for problem in problems:
            try:
                results.append(fit_fast(problem))
            except NotFast as reason:
                results.append(attempt_reference(problem, str(reason)))
            except (ArithmeticError, RuntimeError, ValueError, MemoryError) as error:
                results.append(error)
        return results


def attempt_reference(problem: Problem, reason: str) -> Fitted | Exception:
    """The reference engine's answer for a problem that is not for this one, and why it is not."""
    try:
        return replace(fit_problem(problem), handed_over=reason)
    except (ArithmeticError, RuntimeError, ValueError, MemoryError) as error:
        return error


@one_thread()
def fit_fast(problem: Problem) -> Fitted:
    """What `fit_problem` of the reference does, by hand; raises NotFast where it cannot."""
    if problem.device != "cpu":
        raise NotFast(f"device {problem.device}")
    if problem.training.select != "last":
        raise NotFast(f"select={problem.training.select}")
    if isinstance(problem.augmenter, StepAugmenter):
        raise NotFast(f"{type(problem.augmenter).__name__} acts inside the step, with gradients")
    watch = Stopwatch()
    model = problem.fresh_model()
    check_model(model)
    rng, context = generator(problem.augment_seed), make_context(problem, fast_class_probabilities)
    fixed = prepare(problem, model, rng, context)
    watch.lap("augment")
    with torch.no_grad(), own_stream(problem.augment_seed):
        parameters = Parameters(model, problem.training.lr, problem.training.weight_decay)
        dropout = dropout_of(model, problem.augment_seed, leaves_torch_alone(problem.augmenter))
        networks = steps(problem, model, parameters, fixed, rng, context, dropout)
        losses = train(parameters, networks, problem.training.epochs)
        parameters.store(model)
    watch.lap("train")
    figures = generated_figures(problem, fixed.densities, context)
    curve = tuple((epoch, float(losses[epoch - 1])) for epoch in curve_epochs(problem.training.epochs))
    return Fitted(TrainedNetwork(model), float(losses[-1]), figures, watch.seconds, curve, FastEngine.name)


def fast_class_probabilities(
    graphs: Sequence[Data],
    num_classes: int,
    *,
    epochs: int,
    seed: int,
    backbone: str | Choice = "gcn",
    readout: str | Choice = "mean",
    lr: float = 0.01,
) -> Tensor:
    """`class_probabilities` of `models.fit` by the fast loop, or by itself for a model that is not written out."""
    model = build_classifier(backbone, readout, graphs[0].num_node_features, num_classes, seed)
    try:
        check_model(model)
        with torch.no_grad(), own_stream(seed):
            parameters = Parameters(model, lr)
            targets = label_rows(graphs, num_classes)
            dropout = dropout_of(model, seed, alone=True)
            network = fixed_network(
                model, parameters, parts_of(model, graphs), targets, torch.ones(len(graphs)), dropout
            )
            train(parameters, ((network, None) for _ in range(epochs)), epochs)
            if not model.backbone.dropout:
                return network.forward().softmax(dim=1)
            parameters.store(model)
        return predict(model, graphs)
    except NotFast:
        return class_probabilities(
            graphs, num_classes, epochs=epochs, seed=seed, backbone=backbone, readout=readout, lr=lr
        )
