"""GDM, Graph Dual Mixup: pairs chosen by difficulty, mixed in features and in structure, beside the originals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy
from augmenters.functional import any_weighted
from augmenters.gdm_mixup import DualMixup, Mixing, draw_mixing
from augmenters.gdm_wiring import Wiring
from augmenters.kinds import OneByOneAugmenter
from augmenters.samplers import Sampler, Subset, choose_pairs
from bench.registry import Tune, UserError, Within
from models.autoencoder_fit import EPOCHS, fit_autoencoder
from models.autoencoders import Encoder, StructureInput


@dataclass(frozen=True)
class Plan:
    """What GDM has drawn: the mixings, and the embeddings of the originals where the wiring reads them."""

    mixings: list[Mixing]
    embeddings: list[Tensor] | None
    num_classes: int


@dataclass(frozen=True)
class GDM(OneByOneAugmenter):
    """Algorithm 1 of the paper up to the final training.

    `sampler`: which pairs (any, or three equal subsets by accuracy or uncertainty); `without` leaves one subset out
    and the others keep their size. `count`: graphs generated as a multiple of the originals, rounded up to thirds.
    `encoder`, `width`, `structure`: the auto-encoder, its embedding and what it reads. `wiring`: edges by the
    threshold `eps`, or one of the controls. Generated graphs have edge weights only where the originals have.
    """

    sampler: Sampler = "rand"
    wiring: Wiring = "threshold"
    encoder: Annotated[Encoder, Tune()] = "gsae"
    structure: Annotated[StructureInput, Tune()] = "diag"
    width: Annotated[int, Within(1, 4096), Tune(16, 128, log=True)] = 64
    eps: Annotated[float, Within(0, 1), Tune(0.05, 0.95)] = 0.1
    alpha: Annotated[float, Within(0, 100, above=True), Tune(0.1, 4.0, log=True)] = 1.0
    beta: Annotated[float, Within(0, 100, above=True)] = 1.0
    count: Annotated[float, Within(0, 100, above=True), Tune(choices=(0.5, 1.0, 2.0))] = 1.0
    weight: Annotated[float, Within(0), Tune(0.1, 2.0, log=True)] = 1.0
    without: Subset = "none"
    features: FeaturePolicy = "carry"
    near_complete: ClassVar[bool] = True
    mode: ClassVar[Literal["append"]] = "append"
    labels: ClassVar[Literal["mixed"]] = "mixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampler == "rand" and self.without != "none":
            raise UserError(f"GDM: without={self.without} needs subsets by difficulty; use sampler=acc or sampler=unc")

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Plan:
        size = subset_size(len(graphs), self.count)
        pairs = choose_pairs(self.sampler, graphs, size, self.without, rng, context)
        sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
        mixings = [draw_mixing(pair, sizes, self.alpha, self.beta, rng) for pair in pairs]
        decodes = self.wiring in ("threshold", "calibrated")
        return Plan(mixings, self.embeddings(graphs, context) if decodes else None, context.num_classes)

    def embeddings(self, graphs: Sequence[Data], context: Context) -> list[Tensor]:
        """Structural embeddings of the originals; the key names all they depend on, so a trial's methods share them."""

        def train(rng: Generator) -> list[Tensor]:
            return fit_autoencoder(graphs, rng, self.encoder, self.width, self.structure, EPOCHS).encode(graphs)

        key = f"autoencoder:encoder={self.encoder},epochs={EPOCHS},structure={self.structure},width={self.width}"
        return context.share(key, train)

    def generate_each(self, graphs: Sequence[Data], drawn: Plan) -> Iterator[Data]:
        mixup = DualMixup(self.wiring, self.eps, drawn.num_classes, any_weighted(graphs))
        for mixing in drawn.mixings:
            i, j = mixing.first, mixing.second
            embeddings = None if drawn.embeddings is None else (drawn.embeddings[i], drawn.embeddings[j])
            yield mixup(graphs[i], graphs[j], embeddings, mixing)


def subset_size(graphs: int, count: float = 1.0) -> int:
    """Graphs in each of the three subsets."""
    return math.ceil(round(count * graphs / 3, 9))  # 0.3 * 10 / 3 is one, whatever the last bit says
