"""GDM, Graph Dual Mixup: mixes pairs of graphs, chosen by difficulty, in features and in structure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy
from augmenters.functional import any_weighted
from augmenters.gdm_mixup import Alignment, DualMixup, Mixing, by_rank, draw_mixing
from augmenters.gdm_wiring import Wiring
from augmenters.kinds import OneByOneAugmenter
from augmenters.samplers import Sampler, Subset, choose_pairs
from bench.registry import Tune, UserError, Within
from models.autoencoder_fit import EPOCHS, fit_autoencoder
from models.autoencoders import Encoder, Output, StructureInput

LONELY = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=1)


@dataclass(frozen=True)
class Plan:
    """The draws of GDM: the mixings, and the encoded originals if the wiring needs them."""

    mixings: list[Mixing]
    encoded: Encoded | None
    num_classes: int


@dataclass(frozen=True)
class Encoded:
    """Structural embeddings: one table per graph, and the embedding of a node without edges."""

    rows: list[Tensor]
    lonely: Tensor


@dataclass(frozen=True)
class GDM(OneByOneAugmenter):
    """Algorithm 1 of the paper, up to the final training.

    `sampler`: how pairs are chosen (at random, or three equal subsets by accuracy or uncertainty); `without` leaves one
    subset out, and the others keep their size. `count`: number of generated graphs as a multiple of the originals,
    rounded up to a multiple of three. `encoder`, `width`, `structure`: the auto-encoder, its embedding size and its
    input. `wiring`: edges by the threshold `eps`, or by one of the controls. Generated graphs have edge weights only if
    the originals do.

    Settings for what the paper leaves open: `output` of the encoder's second layer; `padding` of the smaller graph,
    either with zero embeddings or before encoding; `alignment` of the two graphs' nodes, at random or by degree rank;
    `generated` once or anew in each epoch.
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
    output: Output = "linear"
    padding: Literal["embeddings", "graph"] = "embeddings"
    alignment: Alignment = "random"
    generated: Literal["once", "epoch"] = "once"
    near_complete: ClassVar[bool] = True
    mode: ClassVar[Literal["append"]] = "append"
    labels: ClassVar[Literal["mixed"]] = "mixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.generated == "epoch":
            object.__setattr__(self, "when", "epoch")
        if self.sampler == "rand" and self.without != "none":
            raise UserError(f"GDM: without={self.without} needs subsets by difficulty; use sampler=acc or sampler=unc")

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Plan:
        size = subset_size(len(graphs), self.count)
        pairs = choose_pairs(self.sampler, graphs, size, self.without, rng, context)
        sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
        mixings = [draw_mixing(pair, sizes, self.alpha, self.beta, rng) for pair in pairs]
        if self.alignment == "rank":
            mixings = [replace(one, places=by_rank(graphs[one.first], graphs[one.second])) for one in mixings]
        decodes = self.wiring in ("threshold", "calibrated")
        return Plan(mixings, self.encoded(graphs, context) if decodes else None, context.num_classes)

    def encoded(self, graphs: Sequence[Data], context: Context) -> Encoded:
        """Structural embeddings of the originals. The key names everything they depend on, so the methods of a trial
        share them.
        """

        def train(rng: Generator) -> Encoded:
            model = fit_autoencoder(graphs, rng, self.encoder, self.width, self.structure, EPOCHS, self.output)
            return Encoded(model.encode(graphs), model.encode([LONELY])[0][0])

        key = f"autoencoder:encoder={self.encoder},epochs={EPOCHS},structure={self.structure},width={self.width}"
        return context.share(key if self.output == "linear" else f"{key},output={self.output}", train)

    def generate_each(self, graphs: Sequence[Data], drawn: Plan) -> Iterator[Data]:
        encoded = drawn.encoded
        pad = encoded.lonely if encoded is not None and self.padding == "graph" else None
        mixup = DualMixup(self.wiring, self.eps, drawn.num_classes, any_weighted(graphs), pad)
        for mixing in drawn.mixings:
            i, j = mixing.first, mixing.second
            embeddings = None if encoded is None else (encoded.rows[i], encoded.rows[j])
            yield mixup(graphs[i], graphs[j], embeddings, mixing)


def subset_size(graphs: int, count: float = 1.0) -> int:
    """The number of graphs in each of the three subsets."""
    return math.ceil(round(count * graphs / 3, 9))  # 0.3 * 10 / 3 is 1, in spite of floating-point error
