"""Which classes have handwritten gradients here: one line per backbone and per readout.

Kernels are registered for exact classes. A subclass may compute anything, so it has no kernel until it is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bench.learning.fast.not_fast import NotFast
from bench.learning.fast.ops.pooling import ReadoutName
from bench.registry import show
from models.backbones import GAT, GCN, GIN, Backbone, GraphSAGE
from models.classifier import Ending, GraphClassifier
from models.readouts import AddReadout, MaxReadout, MeanReadout, Readout

LayerKind = Literal["gcn", "gin", "sage", "gat"]
LAYERS: dict[type[Backbone], LayerKind] = {GCN: "gcn", GIN: "gin", GraphSAGE: "sage", GAT: "gat"}
POOLINGS: dict[type[Readout], ReadoutName] = {MeanReadout: "mean", AddReadout: "add", MaxReadout: "max"}


PLAIN = {"norm": "none", "residual": False}  # settings of a backbone for which only this value is implemented


def kernel_obstacle(backbone: type, readout: type, settings: Mapping[str, Any]) -> str | None:
    """Why a network of these classes, with these settings of the backbone, cannot be trained here; None if it can."""
    if backbone not in LAYERS:
        return f"no gradients are written out for the backbone {backbone.__name__}"
    if readout not in POOLINGS:
        return f"no gradients are written out for the readout {readout.__name__}"
    for name, plain in PLAIN.items():
        if settings.get(name, plain) != plain:
            return f"no gradients are written out for {name}={show(settings[name])}"
    return None


@dataclass(frozen=True)
class Architecture:
    """The description of a classifier, without its weights."""

    layer: LayerKind
    readout: ReadoutName
    layers: int
    width: int
    dropout: float
    heads: int  # of attention; 0 for other backbones
    ending: Ending  # of the head

    @classmethod
    def of(cls, model: GraphClassifier) -> Architecture:
        """Raises NotFast for a model without handwritten gradients."""
        backbone: Backbone = model.backbone
        if (reason := kernel_obstacle(type(backbone), type(model.readout), vars(backbone))) is not None:
            raise NotFast(reason)
        layer = LAYERS[type(backbone)]
        heads = int(backbone.heads) if isinstance(backbone, GAT) else 0
        readout, layers = POOLINGS[type(model.readout)], len(backbone.convs)
        return cls(layer, readout, layers, backbone.out_channels, backbone.dropout, heads, model.ending)
