"""The fast engine: trains the same trials as the reference with handwritten gradients, or hands them over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import torch

from augmenters.base import EmbeddingAugmenter, GraphAugmenter, StepAugmenter, generator
from bench.learning.augmentation import Stopwatch, first_model, generated_figures, make_context
from bench.learning.fast.evaluation import FastNetwork
from bench.learning.fast.graphs.prepared import prepare
from bench.learning.fast.kernels import LAYERS, Architecture, kernel_obstacle
from bench.learning.fast.not_fast import NotFast
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.pretraining import fast_pretrain
from bench.learning.fast.training.build import WEIGHTS_REFUSED
from bench.learning.fast.training.epochs import Epochs, leaves_torch_alone
from bench.learning.fast.training.loop import train
from bench.learning.fast.training.selection import BestEpoch
from bench.learning.problem import Fitted, Problem, curve_epochs
from bench.learning.reference import fit_problem
from bench.protocol.training import left_to_reference
from bench.registry import Scalar
from models import BACKBONES, READOUTS
from models.fit import one_thread, own_stream

NO_SETTINGS: Mapping[str, Scalar] = MappingProxyType({})


class FastEngine:
    """Trains each problem separately, so that results do not depend on what else is trained in the same call."""

    name = "fast"

    def fit(self, problems: Sequence[Problem]) -> list[Fitted | Exception]:
        results: list[Fitted | Exception] = []
        for problem in problems:
            try:
                results.append(fit_or_hand_over(problem))
            except (ArithmeticError, RuntimeError, ValueError, MemoryError) as error:
                results.append(error)
        return results


def fit_or_hand_over(problem: Problem) -> Fitted:
    """A trained classifier; if the reference engine had to train it, the result gives the reason."""
    try:
        return fit_fast(problem)
    except NotFast as obstacle:
        return replace(fit_problem(problem), handed_over=obstacle.reason)


def fast_obstacle(
    backbone: type, readout: type, augmenter: type, settings: Mapping[str, Scalar] = NO_SETTINGS
) -> str | None:
    """Why this engine would hand over a combination of classes; None if it would not.

    `settings` are those of the backbone; some of them build layers without a kernel. Reasons that only the data can
    reveal (such as a self-loop) are not known here; `Fitted.handed_over` has them after training.
    """
    if (reason := kernel_obstacle(backbone, readout, settings)) is not None:
        return reason
    if issubclass(augmenter, StepAugmenter):
        return f"{augmenter.__name__} acts inside the step, with gradients"
    if issubclass(augmenter, EmbeddingAugmenter):
        return None
    if not issubclass(augmenter, GraphAugmenter) or augmenter.when not in ("offline", "epoch"):
        return f"{augmenter.__name__} works inside the step on something other than graph embeddings"
    if augmenter.weighted and LAYERS[backbone] == "gat":
        return WEIGHTS_REFUSED
    return None


def obstacle_of(problem: Problem) -> str | None:
    """Why this engine would hand over a trial, as far as this can be determined without looking at the graphs."""
    if problem.device != "cpu":
        return f"device {problem.device}"
    if problem.backbone is None or problem.readout is None:
        return "no backbone and readout"
    if (reason := left_to_reference(problem.training, problem.backbone.settings)) is not None:
        return reason
    backbone, readout = BACKBONES.load(problem.backbone.name), READOUTS.load(problem.readout.name)
    return fast_obstacle(backbone, readout, type(problem.augmenter), problem.backbone.settings)


@one_thread()
def fit_fast(problem: Problem) -> Fitted:
    """The handwritten counterpart of the reference's `fit_problem`; raises NotFast for trials it cannot train."""
    if (reason := obstacle_of(problem)) is not None:
        raise NotFast(reason)
    watch = Stopwatch()
    network = first_model(problem, fast_pretrain)
    model = Architecture.of(network)
    rng, context = generator(problem.augment_seed), make_context(problem, fast_pretrain)
    fixed = prepare(problem, model.layer == "gat", rng, context)
    watch.lap("augment")
    with torch.no_grad(), own_stream(problem.augment_seed):
        parameters = Parameters(network, problem.training.lr, problem.training.weight_decay)
        alone = leaves_torch_alone(problem.augmenter)
        dropout = Dropout(model.dropout, problem.augment_seed, alone) if model.dropout else None
        epochs = Epochs(problem, model, parameters, fixed, dropout)
        keeper = BestEpoch(problem, model, parameters) if problem.training.select == "best-val" else None
        losses = train(parameters, epochs.each(rng, context), problem.training.epochs, keeper)
        parameters.store(network, None if keeper is None else keeper.weights)
    watch.lap("train")
    figures = generated_figures(problem, fixed.densities, context)
    curve = tuple((epoch, float(losses[epoch - 1])) for epoch in curve_epochs(problem.training.epochs))
    return Fitted(FastNetwork(network), float(losses[-1]), figures, watch.seconds, curve, engine=FastEngine.name)
