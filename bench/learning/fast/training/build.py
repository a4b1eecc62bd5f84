"""From a classifier and a training set to the network that trains it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from bench.learning.fast.graphs.classes import each_alone, refine
from bench.learning.fast.graphs.joined import assemble
from bench.learning.fast.graphs.parts import Part
from bench.learning.fast.kernels import Architecture
from bench.learning.fast.not_fast import NotFast
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.ops.pooling import pooling
from bench.learning.fast.training.attention import AttentionStack
from bench.learning.fast.training.convolution import ConvolutionStack
from bench.learning.fast.training.network import Network, Stack

WEIGHTS_REFUSED = "edge weights, which attention refuses"


def fixed_network(
    model: Architecture,
    parameters: Parameters,
    parts: Sequence[Part],
    targets: Tensor,
    weights: Tensor,
    dropout: Dropout | None,
    many_steps: bool = True,
    same_order: bool = False,
) -> Network:
    """The network of a training set that does not change.

    If it is used for many steps, equal nodes are merged and units that no node uses are left out. With dropout, neither
    is done, because dropout distinguishes nodes and units. `same_order` is for callers that read individual output
    channels.
    """
    if model.layer == "gat" and any(part.weight is not None for part in parts):
        raise NotFast(WEIGHTS_REFUSED)
    joined = assemble(parts)
    alike = many_steps and dropout is None
    alone = each_alone(joined.nodes)
    classes = refine(joined, model.layers, by_degree=model.layer == "gcn") if alike else [alone] * (model.layers + 1)
    stack: Stack
    if model.layer == "gat":
        stack = AttentionStack.of(joined, classes, parameters, model.heads, dropout)
    else:
        stack = ConvolutionStack.of(model.layer, joined, classes, parameters, model.width, dropout)
        if many_steps and not same_order:
            stack.leave_out_unused(parameters)
    last = classes[-1]
    readout = pooling(model.readout, joined.sizes, last.of_node, last.count, model.width)
    return Network(parameters, stack, readout, targets, weights, model.ending)
