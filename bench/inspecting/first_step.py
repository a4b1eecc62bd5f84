"""The graphs of a method that works inside the training step: those that the model learns from in its first one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, StepAugmenter, generator
from bench.learning.augmentation import first_model
from bench.learning.problem import Problem
from bench.learning.steps import ModelView
from models.fit import one_thread, own_stream


@dataclass
class WatchedView(ModelView):
    """Keeps the graphs that are learned, with the features that the model gets to see."""

    seen: list[Data] = field(default_factory=list)

    def learn(self, graphs: Sequence[Data], share: float = 1.0) -> list[Tensor]:
        self.seen += [self.featurize(graph) for graph in graphs]
        return super().learn(graphs, share)


@one_thread()
def graphs_of_first_step(problem: Problem, augmenter: StepAugmenter, context: Context) -> list[Data]:
    """What the method makes of all labeled graphs beside the model that a run begins with."""
    featurize = problem.featurize if augmenter.features == "recompute" else copy.copy
    drawn = augmenter.draw(problem.graphs, generator(problem.augment_seed), context)
    view = WatchedView(first_model(problem).to(problem.device), problem.num_classes, problem.device, featurize)
    with own_stream(problem.augment_seed, problem.device):
        augmenter.step(view, problem.graphs, drawn)
    return view.seen
