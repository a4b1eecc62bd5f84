"""Predictions of a trained network on a test part, where equal nodes are computed once and matrices are cached.

Sums are in a different order than in PyG's batches, so embeddings differ in their last bits. Predicted classes do not:
if the two largest logits are closer than any such difference, PyG decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from bench.learning.fast.graphs.aggregation import Kind, layer_matrix, node_matrix
from bench.learning.fast.graphs.classes import Classes, refine
from bench.learning.fast.graphs.joined import join
from bench.learning.fast.kernels import Architecture
from bench.learning.fast.not_fast import NotFast
from bench.learning.fast.ops.pooling import Pooling, ReadoutName, pooling
from bench.learning.fast.ops.product import Bag, Direction, Half, Rows, SparseRows, multiply
from bench.learning.fast.training.convolution import first_input
from bench.learning.fast.training.layers import NAMES
from bench.learning.held_out import FormPredictor, Unlabeled
from models.classifier import GraphClassifier
from models.fit import TrainedNetwork, one_thread, predict

# Bounds on the difference of logits due to the order of summation, relative to the size of the terms and absolute.
# Single precision has 6e-8; the observed differences are below 1e-5.
RELATIVE, ABSOLUTE = 1e-4, 1e-6


@dataclass(frozen=True)
class FastNetwork(TrainedNetwork, FormPredictor):
    """A classifier of the fast engine."""

    def classes(self, graphs: Unlabeled) -> np.ndarray | None:
        """The class of each graph; None for a network without a kernel, or graphs that cannot be joined."""
        try:
            model = Architecture.of(self.model)
            if model.layer == "gat":
                return None
            kind, layers = model.layer, model.layers
            form = graphs.form(self, (kind, layers), lambda every: MergedGraphs.of(every, kind, layers))
        except NotFast:
            return None
        with one_thread(), torch.inference_mode():
            self.model.eval()
            pooled = form.pooling(model.readout, model.width).forward(embeddings(form, self.model, kind))
            found, certain = head_classes(self.model.head, pooled)
        unsure = np.flatnonzero(~certain)
        if len(unsure) > len(found) // 2:  # the usual way costs the same
            return None
        if len(unsure):
            found[unsure] = predict(self.model, graphs.graphs(unsure.tolist())).argmax(dim=1).numpy()
        return found


@dataclass(frozen=True)
class MergedGraphs:
    """Graphs prepared for one kind of layer: the first layer's input and the matrices between classes of nodes."""

    first: tuple[Rows, ...]
    between: list[Direction]  # for each layer after the first
    sizes: np.ndarray
    last: Classes
    pools: dict[tuple[ReadoutName, int], Pooling] = field(default_factory=dict)

    @classmethod
    def of(cls, graphs: Sequence[Data], kind: Kind, layers: int) -> MergedGraphs:
        joined = join(graphs)
        classes = refine(joined, layers, by_degree=kind == "gcn")
        nodes = node_matrix(joined, kind)
        made: dict[tuple[int, int], Direction] = {}
        between = []
        for before, after in itertools.pairwise(classes[1:]):
            key = id(before), id(after)
            if key not in made:
                made[key] = Direction.of(layer_matrix(nodes, kind, before, after))
            between.append(made[key])
        return cls(first_input(kind, nodes, joined, classes), between, joined.sizes, classes[-1])

    def pooling(self, readout: ReadoutName, width: int) -> Pooling:
        if (readout, width) not in self.pools:
            of_node, count = self.last.of_node, self.last.count
            self.pools[readout, width] = pooling(readout, self.sizes, of_node, count, width)
        return self.pools[readout, width]

    @property
    def nbytes(self) -> int:
        """The size of its tensors, without those of the readouts, which are much smaller."""
        bags = [bag for way in {id(way): way for way in self.between}.values() for bag in (way.main, way.gather) if bag]
        for rows in self.first:
            bags += [rows.matrix, rows.transposed] if isinstance(rows, SparseRows) else []
        dense = sum(rows.nbytes for rows in self.first if isinstance(rows, Tensor))
        return dense + sum(size_of(bag) for bag in bags) + self.last.of_node.nbytes + self.last.stand_in.nbytes


def size_of(bag: Bag) -> int:
    return int(bag.index.nbytes + bag.offsets.nbytes + bag.values.nbytes)


def embeddings(form: MergedGraphs, model: GraphClassifier, kind: Kind) -> Tensor:
    """One row per class of equal nodes after the last layer."""
    weight_names, bias_name, second_name = NAMES[kind]
    rows = torch.empty(0)
    for number, conv in enumerate(model.backbone.convs):
        weights = [conv.get_parameter(name).t().contiguous() for name in weight_names]
        width = weights[0].shape[1]
        if number == 0:
            count = rows_of(form.first[0])
            parts = [multiply(x, w, torch.empty(count, width)) for x, w in zip(form.first, weights, strict=True)]
            rows = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        else:
            way = form.between[number - 1]
            half = Half(way, torch.empty(way.columns + way.sums, width))
            for weight, place in zip(weights, half.rows.split(len(rows)), strict=True):
                torch.mm(rows, weight, out=place)
            rows = half()
        rows = rows.add_(conv.get_parameter(bias_name)).relu_()
        if second_name:
            rows = conv.get_submodule(second_name)(rows).relu_()
    return rows


def rows_of(x: Rows) -> int:
    return len(x) if isinstance(x, Tensor) else len(x.matrix.offsets) - 1


def head_classes(head: nn.Sequential, pooled: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The class of each row, and whether it is certain in spite of rounding."""
    modules = list(head)
    place = max(i for i, module in enumerate(modules) if isinstance(module, nn.Linear))
    last, after = modules[place], nn.Sequential(*modules[place + 1 :])
    assert isinstance(last, nn.Linear)
    hidden = nn.Sequential(*modules[:place])(pooled)
    scores = last(hidden)
    found = after(scores).argmax(dim=1)
    if not all(isinstance(module, nn.ReLU) for module in after):  # other modules may not preserve the order
        return found.numpy(), np.zeros(len(found), dtype=bool)
    slack = RELATIVE * (hidden.abs() @ last.weight.t().abs() + last.bias.abs()) + ABSOLUTE
    low, high = after(scores - slack), after(scores + slack)
    own = found.view(-1, 1)
    own_low, own_high = low.gather(1, own), high.gather(1, own)
    # A ReLU maps logits below 0 to exact ties, and the first of them is chosen.
    tie = (low == high) & (own_low == own_high) & (low == own_low) & (torch.arange(scores.shape[1]) > own)
    beaten = (high < own_low) | tie
    beaten.scatter_(1, own, True)
    certain = beaten.all(dim=1) & scores.isfinite().all(dim=1)
    return found.numpy(), certain.numpy()
