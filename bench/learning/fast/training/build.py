"""From a classifier and a training set to the network that trains it, or the reason why the fast engine cannot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor
from torch_geometric.data import Data

from bench.learning.fast.graphs.aggregation import Kind
from bench.learning.fast.graphs.classes import each_alone, refine
from bench.learning.fast.graphs.joined import NotFast, Part, assemble
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.pooling import ReadoutName, pooling
from bench.learning.fast.training.attention import AttentionStack
from bench.learning.fast.training.convolution import ConvolutionStack
from bench.learning.fast.training.network import Network, Stack
from bench.learning.fast.training.parameters import Parameters
from models.backbones import GAT, GCN, GIN, Backbone, GraphSAGE
from models.classifier import GraphClassifier
from models.readouts import AddReadout, MaxReadout, MeanReadout

KINDS: dict[type, Kind] = {GCN: "gcn", GIN: "gin", GraphSAGE: "sage"}
READOUTS: dict[type, ReadoutName] = {MeanReadout: "mean", AddReadout: "add", MaxReadout: "max"}


def check_model(model: GraphClassifier) -> None:
    """Raise NotFast for a model whose gradients are not written out here."""
    backbone: Backbone = model.backbone
    if type(backbone) not in KINDS and type(backbone) is not GAT:
        raise NotFast(f"backbone {type(backbone).__name__}")
    if type(model.readout) not in READOUTS:
        raise NotFast(f"readout {type(model.readout).__name__}")


def parts_of(model: GraphClassifier, graphs: Iterable[Data]) -> list[Part]:
    """Graphs as the engine keeps them for this model; those of an iterator need not be there all at once."""
    return [Part.of(graph, whole=heads_of(model) is not None) for graph in graphs]


def heads_of(model: GraphClassifier) -> int | None:
    """The number of attention heads, None for a backbone without attention."""
    return model.backbone.heads if isinstance(model.backbone, GAT) else None


def dropout_of(model: GraphClassifier, seed: int, alone: bool) -> Dropout | None:
    """What draws the backbone's masks (`alone`: nobody else uses torch's stream), None where nothing is dropped."""
    return Dropout(model.backbone.dropout, seed, alone) if model.backbone.dropout > 0 else None


def fixed_network(
    model: GraphClassifier,
    parameters: Parameters,
    parts: Sequence[Part],
    targets: Tensor,
    weights: Tensor,
    dropout: Dropout | None,
    many_steps: bool = True,
    same_order: bool = False,
) -> Network:
    """The network of a training set that stays the same.

    Where it serves many steps it pays to merge equal nodes and to leave out units that none of them uses. Dropout tells
    nodes and units apart, so with it neither is done; `same_order` is for who looks at single channels of the output.
    """
    heads, width, layers = heads_of(model), model.backbone.out_channels, len(model.backbone.convs)
    if heads and any(part.weight is not None for part in parts):
        raise NotFast("edge weights, which attention refuses")
    joined = assemble(parts)
    kind = KINDS.get(type(model.backbone))
    nodes = each_alone(len(joined.x))
    alike = many_steps and dropout is None
    classes = refine(joined, layers, by_degree=kind == "gcn") if alike else [nodes] * (layers + 1)
    stack: Stack
    if kind is None:
        stack = AttentionStack.of(joined, classes, parameters, heads or 1, dropout)
    else:
        stack = ConvolutionStack.of(kind, joined, classes, parameters, width, dropout)
        if many_steps and not same_order:
            stack.leave_out_unused(parameters)
    readout = pooling(READOUTS[type(model.readout)], joined.sizes, classes[-1], width)
    return Network(parameters, stack, readout, targets, weights)
