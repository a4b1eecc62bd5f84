"""Which epoch's weights are used: the last one's, or those with the best validation accuracy."""

from __future__ import annotations

import torch

from bench.learning.fast.graphs.parts import parts_of
from bench.learning.fast.kernels import Architecture
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.training.build import fixed_network
from bench.learning.problem import Problem, label_rows
from models.fit import refuse_lost


class BestEpoch:
    """Keeps the weights of the epoch with the best validation accuracy; the earliest if tied.

    The validation graphs have their own network over the same weights. It merges equal nodes and uses every unit,
    because units that no training node uses may matter here.
    """

    def __init__(self, problem: Problem, model: Architecture, parameters: Parameters) -> None:
        graphs, whole = problem.validation, model.layer == "gat"
        targets, weights = label_rows(graphs, problem.num_classes), torch.ones(len(graphs))
        parts = parts_of(graphs, whole)
        self.network = fixed_network(model, parameters, parts, targets, weights, None, same_order=True)
        self.labels, self.parameters = targets.argmax(dim=1), parameters
        self.best, self.weights = -1, parameters.snapshot()

    def __call__(self) -> None:
        logits = self.network.forward()
        refuse_lost(logits)
        right = int((logits.argmax(dim=1) == self.labels).sum())
        if right > self.best:
            self.best, self.weights = right, self.parameters.snapshot()
