"""Pre-training for methods that ask a classifier about the labeled graphs, by the fast loop."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from bench.learning.fast.graphs.parts import parts_of
from bench.learning.fast.kernels import Architecture
from bench.learning.fast.not_fast import NotFast
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.training.build import fixed_network
from bench.learning.fast.training.loop import train
from bench.learning.problem import label_rows
from bench.registry import Choice
from models.classifier import build_classifier
from models.fit import class_probabilities, own_stream, predict


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
    network = build_classifier(backbone, readout, graphs[0].num_node_features, num_classes, seed)
    try:
        model = Architecture.of(network)
        with torch.no_grad(), own_stream(seed):
            parameters = Parameters(network, lr)
            parts, targets = parts_of(graphs, whole=model.layer == "gat"), label_rows(graphs, num_classes)
            dropout = Dropout(model.dropout, seed, alone=True) if model.dropout else None
            trained = fixed_network(model, parameters, parts, targets, torch.ones(len(graphs)), dropout)
            train(parameters, ((trained, None) for _ in range(epochs)), epochs)
            if not model.dropout:
                return trained.forward().softmax(dim=1)
            parameters.store(network)
        return predict(network, graphs)
    except NotFast:
        return class_probabilities(
            graphs, num_classes, epochs=epochs, seed=seed, backbone=backbone, readout=readout, lr=lr
        )
