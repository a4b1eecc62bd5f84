"""An augmenter as a PyG transform, for data loaders and pipelines outside the harness."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from augmenters.base import Augmenter, Context, GraphAugmenter, generator
from bench.registry import UserError


class AugmenterTransform(BaseTransform):
    """A callable on one graph that draws from its own random stream, anew at each call."""

    def __init__(self, augmenter: GraphAugmenter, seed: int) -> None:
        self.augmenter, self.rng = augmenter, generator(seed)

    def forward(self, data: Data) -> Data:
        return self.augmenter([data], self.rng, Context(0, _no_classifier, lambda key: self.rng.spawn(1)[0]))[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.augmenter})"


def as_transform(augmenter: Augmenter, seed: int) -> AugmenterTransform:
    """A transform for an augmenter that maps each graph to one graph and keeps its label; otherwise an error with the
    reason.
    """
    name = type(augmenter).__name__
    if not isinstance(augmenter, GraphAugmenter) or augmenter.when == "batch":
        raise UserError(f"{name} acts inside the training step, so it cannot be a transform; train with `bench run`")
    if augmenter.labels != "kept":
        raise UserError(
            f"{name} mixes graphs and labels, so it cannot be a transform; call it as {name}()(graphs, rng)"
        )
    if augmenter.when == "offline" or augmenter.mode != "replace":
        raise UserError(
            f"{name} works on all graphs at once, so it cannot be a transform; call it as {name}()(graphs, rng)"
        )
    return AugmenterTransform(augmenter, seed)


def _no_classifier(graphs: object, epochs: int) -> Tensor:
    raise UserError("a transform sees one graph at a time, so it cannot train a classifier")
