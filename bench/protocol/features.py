"""Node features: the dataset's own, or computed from structure with statistics of the fold's training graphs only."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.registry import UserError, unknown

if TYPE_CHECKING:  # planning resolves features without importing torch
    from torch import Tensor
    from torch_geometric.data import Data

FEATURES = {
    "native": "the dataset's own (one-hot node labels)",
    "constant": "one column of ones",
    "degree-onehot": "one-hot degree, capped at the largest degree of the fold's training graphs",
    "degree": "one column: degree over the mean degree of the fold's training graphs",
}


def resolve_features(
    requested: str, has_features: bool, dataset: str = "this dataset", otherwise: str = "constant"
) -> str:
    """The kind of features to use: `auto` means native if the dataset has node features, else `otherwise`."""
    if requested == "auto":
        return "native" if has_features else otherwise
    if requested not in FEATURES:
        raise unknown("features", requested, [*FEATURES, "auto"])
    if requested == "native" and not has_features:
        others = ", ".join(kind for kind in FEATURES if kind != "native")
        raise UserError(f"features=native: {dataset} has no node features of its own; choose one of {others}")
    return requested


@dataclass(frozen=True)
class Featurizer:
    """Computes node features for a copy of a graph. Fitted once per fold; also used for generated graphs.

    Native features cannot be computed for a new structure: a graph keeps the ones it has.
    """

    kind: str
    width: int
    scale: float = 1.0

    @classmethod
    def fit(cls, kind: str, train: Sequence[Data]) -> Featurizer:
        """Collect the statistics that the features need from the fold's training graphs."""
        if kind not in FEATURES:
            raise unknown("features", kind, FEATURES)
        if not train:
            raise ValueError("features are fitted on training graphs, and there are none")
        if kind == "native":
            return cls(kind, _own(train[0]).shape[1])
        if kind == "constant":
            return cls(kind, 1)
        import torch

        degrees = torch.cat([_degrees(graph) for graph in train])
        if kind == "degree-onehot":
            return cls(kind, int(degrees.max()) + 1)
        return cls(kind, 1, float(degrees.double().mean()) or 1.0)

    def __call__(self, graph: Data) -> Data:
        result = copy.copy(graph)
        result.x = self._features(graph)
        return result

    def _features(self, graph: Data) -> Tensor:
        import torch

        from models.sparse_features import one_hot

        if self.kind == "native":
            return _own(graph)
        if self.kind == "constant":
            return torch.ones(_count(graph), 1)
        degrees = _degrees(graph)
        if self.kind == "degree-onehot":
            return one_hot(degrees.clamp(max=self.width - 1), self.width)
        return (degrees.to(torch.float32) / self.scale).unsqueeze(1)


def _own(graph: Data) -> Tensor:
    if graph.x is None:
        raise UserError("features=native: a graph has no node features; choose constant or degree features")
    own: Tensor = graph.x
    return own


def _count(graph: Data) -> int:
    if graph.num_nodes is None:
        raise ValueError("a graph without nodes, features and num_nodes cannot be given features")
    return int(graph.num_nodes)


def _degrees(graph: Data) -> Tensor:
    degrees: Tensor = graph.edge_index[0].bincount(minlength=_count(graph))
    return degrees
