"""Pre-training with the fast loop, for methods that query a classifier about the labeled graphs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
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
from models.classifier import Ending, build_classifier
from models.fit import Pretrained, own_stream, predict, pretrain


def fast_pretrain(
    graphs: Sequence[Data],
    num_classes: int,
    *,
    epochs: int,
    seed: int,
    backbone: str | Choice = "gcn",
    readout: str | Choice = "mean",
    ending: Ending = "linear",
    lr: float = 0.01,
) -> Pretrained:
    """`models.fit.pretrain` with the fast loop, or the function itself for a model without handwritten gradients."""
    network = build_classifier(backbone, readout, graphs[0].num_node_features, num_classes, seed, ending)
    try:
        model = Architecture.of(network)
        with torch.no_grad(), own_stream(seed):
            parameters = Parameters(network, lr)
            parts, targets = parts_of(graphs, whole=model.layer == "gat"), label_rows(graphs, num_classes)
            dropout = Dropout(model.dropout, seed, alone=True) if model.dropout else None
            trained = fixed_network(model, parameters, parts, targets, torch.ones(len(graphs)), dropout)
            train(parameters, itertools.repeat([(trained, None)], epochs), epochs)
            found = None if model.dropout else trained.forward().softmax(dim=1)
            parameters.store(network)
        return Pretrained(predict(network, graphs) if found is None else found, network.state_dict())
    except NotFast:
        more = {"backbone": backbone, "readout": readout}
        return pretrain(graphs, num_classes, epochs=epochs, seed=seed, ending=ending, lr=lr, **more)
