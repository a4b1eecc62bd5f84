"""A network on sets of nodes (Zaheer et al., 2017): it uses node features but no edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from torch import Tensor, nn

from bench.learning.learner import Learner
from bench.learning.problem import Fitted, Problem
from bench.learning.reference import fit_problem
from bench.registry import Tune, Within
from models import BACKBONES, READOUTS
from models.backbones import Backbone, Dropout, Width


class NodeLayer(nn.Module):
    """A linear map applied to each node separately."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.map = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.map(x)
        return out


class NodeNetwork(Backbone):
    """A network applied to each node separately, in place of message passing."""

    def layer(self, in_channels: int, out_channels: int) -> nn.Module:
        return NodeLayer(in_channels, out_channels)


NODE_NETWORK = f"{NodeNetwork.__module__}:{NodeNetwork.__name__}"


class DeepSets(Learner):
    """A network per node, a pooling, and the same head and training as every other network of the cell's preset.

    Two layers of 64 channels and the sum, as in the original paper: fixed by convention before any test score was seen.
    """

    trained = True

    def __init__(
        self,
        width: Width = 64,
        layers: Annotated[int, Within(1, 64), Tune(1, 4)] = 2,
        dropout: Dropout = 0.0,
        pool: Annotated[Literal["add", "mean", "max"], Tune()] = "add",
    ) -> None:
        settings = f"width={width},layers={layers},dropout={dropout!r}"
        self.backbone, self.readout = BACKBONES.resolve(f"{NODE_NETWORK}:{settings}"), READOUTS.resolve(pool)

    def fit(self, problem: Problem) -> Fitted:
        fitted = fit_problem(replace(problem, backbone=self.backbone, readout=self.readout))
        return replace(fitted, engine=None)  # no engine was chosen: there is one implementation
