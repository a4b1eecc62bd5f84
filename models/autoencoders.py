"""Structural auto-encoders of GDM: GSAE and its variational form VGSAE (Eq. 6-8 of the paper).

They are trained for every trial. The constant part of the first layer is therefore computed once, both layers are
sparse products, and no tensor has the size nodes x nodes or nodes x largest graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.random import Generator
from scipy import sparse
from scipy.stats import rankdata
from torch import Tensor, nn
from torch_geometric.data import Data

from bench.registry import UserError
from models.structure import Pairs, Structure

Encoder = Literal["gsae", "vgsae"]
StructureInput = Literal["diag", "onehot", "scalar"]
Output = Literal["linear", "relu"]
DEGREE_CAP = 64
CHUNK = 2048  # pairs whose rows are gathered at once: small enough for the cache
LOG_VARIANCE_CAP = 20.0  # keeps exp finite when the first embedding of a hub is huge


class SparseProduct(torch.autograd.Function):
    """A constant sparse matrix times a dense one; several times faster on one core than torch's own product."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: sparse.csr_array, transposed: sparse.csr_array) -> Tensor:
        ctx.transposed = transposed
        return torch.from_numpy(matrix @ dense.detach().numpy())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return torch.from_numpy(ctx.transposed @ gradients[0].numpy()), None, None


def pair_products(rows: Tensor, first: np.ndarray, second: np.ndarray) -> Tensor:
    """Inner products of the rows at the given pairs."""
    chunks = zip(torch.from_numpy(first).split(CHUNK), torch.from_numpy(second).split(CHUNK), strict=True)
    return torch.cat([(rows.index_select(0, i) * rows.index_select(0, j)).sum(dim=1) for i, j in chunks])


def pair_gradients(gradient: Tensor, rows: Tensor, first: np.ndarray, second: np.ndarray) -> Tensor:
    """The gradient of the rows from that of `pair_products`, as one sparse product instead of a scatter."""
    half = sparse.csr_array((gradient.numpy(), (first, second)), shape=(len(rows), len(rows)))
    return torch.from_numpy(half @ rows.numpy() + half.T @ rows.numpy())


class PairProducts(torch.autograd.Function):
    """`pair_products` with its gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, first: np.ndarray, second: np.ndarray) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.pairs = first, second
        return pair_products(rows, first, second)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return pair_gradients(gradients[0], *ctx.saved_tensors, *ctx.pairs), None, None


@dataclass(frozen=True)
class InputRule:
    """How degrees become the encoder's input rows (the matrix D of Eq. 6), fixed by the training graphs.

    `diag`: degree(i) e_i, padded to the largest training graph. `onehot`: the degree, capped. `scalar`: one column.
    """

    kind: StructureInput
    columns: int

    @classmethod
    def learn(cls, kind: StructureInput, structure: Structure) -> InputRule:
        largest = int(structure.sizes.max())
        top_degree = round(float(structure.degrees.max(initial=0)))
        return cls(kind, {"diag": largest, "onehot": 1 + min(top_degree, DEGREE_CAP), "scalar": 1}[kind])

    def rows(self, structure: Structure) -> sparse.csr_array:
        """One sparse row per node."""
        degrees = structure.degrees
        if self.kind == "diag":
            if structure.sizes.max() > self.columns:
                raise UserError(
                    f"a graph of {structure.sizes.max()} nodes is too large for an auto-encoder trained on at "
                    f"most {self.columns} nodes; train on it too, or use structure=onehot"
                )
            columns, values = structure.positions, degrees
        elif self.kind == "onehot":
            columns, values = np.minimum(np.rint(degrees), self.columns - 1).astype(np.int64), np.ones_like(degrees)
        else:
            columns, values = np.zeros(len(degrees), dtype=np.int64), degrees
        return sparse.csr_array((values, (np.arange(len(degrees)), columns)), shape=(len(degrees), self.columns))


class Propagation:
    """The constant inputs of both layers: the normalized adjacency, and its product with the features."""

    def __init__(self, structure: Structure, rule: InputRule) -> None:
        self.adjacency = structure.adjacency
        self.inputs = sparse.csr_array(self.adjacency @ rule.rows(structure), dtype=np.float32)
        self.inputs_transposed = sparse.csr_array(self.inputs.T)


class GCNLayer(nn.Module):
    """The weights of one graph convolution with the usual initialization: Glorot, zero bias."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(in_channels, out_channels)))
        self.bias = nn.Parameter(torch.zeros(out_channels))


class GSAE(nn.Module):
    """H = E(D, A) with two GCN layers and a ReLU after the first (Eq. 6); decoded as sigmoid(H H^T) (Eq. 7).

    `output`: with `relu`, a ReLU also follows the second layer; then H H^T >= 0, so every pair has a probability of at
    least 1/2.
    """

    def __init__(self, rule: InputRule, width: int, output: Output = "linear") -> None:
        super().__init__()
        self.rule, self.rectified = rule, output == "relu"
        self.first, self.second = GCNLayer(rule.columns, width), GCNLayer(width, width)

    def hidden(self, by: Propagation) -> Tensor:
        product: Tensor = SparseProduct.apply(self.first.weight, by.inputs, by.inputs_transposed)
        return (product + self.first.bias).relu()

    def propagate(self, hidden: Tensor, layer: GCNLayer, by: Propagation) -> Tensor:
        product: Tensor = SparseProduct.apply(hidden @ layer.weight, by.adjacency, by.adjacency)
        return product + layer.bias

    def mean(self, by: Propagation) -> Tensor:
        """The embedding used for generation."""
        return self.output(self.propagate(self.hidden(by), self.second, by))

    def output(self, embedding: Tensor) -> Tensor:
        return embedding.relu() if self.rectified else embedding

    def forward(self, by: Propagation, structure: Structure, rng: Generator) -> tuple[Tensor, Tensor]:
        """Embeddings to decode during training, and an additional loss."""
        return self.mean(by), torch.zeros(())

    @torch.no_grad()
    def encode(self, graphs: Sequence[Data]) -> list[Tensor]:
        """The structural embedding of each graph, one row per node, in the graph's own order."""
        structure = Structure.of(graphs)
        return list(self.mean(Propagation(structure, self.rule)).split(structure.sizes.tolist()))


class VGSAE(GSAE):
    """GSAE with a second head for the log variance; the KL divergence of a graph with n nodes is weighted by 1/n."""

    def __init__(self, rule: InputRule, width: int, output: Output = "linear") -> None:
        super().__init__(rule, width, output)
        self.spread = GCNLayer(width, width)

    def forward(self, by: Propagation, structure: Structure, rng: Generator) -> tuple[Tensor, Tensor]:
        hidden = self.hidden(by)
        mean = self.output(self.propagate(hidden, self.second, by))
        log_variance = self.propagate(hidden, self.spread, by).clamp(max=LOG_VARIANCE_CAP)
        noise = torch.from_numpy(rng.standard_normal(tuple(mean.shape), dtype=np.float32))
        share = torch.from_numpy(np.repeat(1 / structure.sizes, structure.sizes).astype(np.float32))
        return mean + noise * (log_variance / 2).exp(), (share * kl_to_standard_normal(mean, log_variance)).sum()


def kl_to_standard_normal(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, variance) || N(0, 1)), summed over the channels of each row."""
    return (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=-1) / 2


def reconstruction_loss(embedding: Tensor, edges: Pairs, non_edges: Pairs) -> Tensor:
    """Eq. 8 with logits, as sums, since the mean over the non-edges of a complete graph is undefined."""
    first, second = (np.concatenate(ends) for ends in zip(edges, non_edges, strict=True))
    logits: Tensor = PairProducts.apply(embedding, first, second)
    positive, negative = logits[: len(edges[0])], logits[len(edges[0]) :]
    return nn.functional.softplus(-positive).sum() + nn.functional.softplus(negative).sum()


def build_autoencoder(encoder: Encoder, rule: InputRule, width: int, seed: int, output: Output = "linear") -> GSAE:
    """A freshly initialized auto-encoder whose weights depend only on the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return {"gsae": GSAE, "vgsae": VGSAE}[encoder](rule, width, output)


def reconstruction_auc(model: GSAE, graphs: Sequence[Data]) -> float:
    """How well H H^T ranks edges above non-edges: the exact AUC over all pairs, averaged over graphs that have both."""
    values = []
    for graph, embedding in zip(graphs, model.encode(graphs), strict=True):
        structure = Structure.of([graph])
        low, high = np.triu_indices(len(embedding), 1)
        scores = (embedding @ embedding.T).numpy()[low, high]
        edge = np.zeros(len(scores), dtype=bool)
        edge[np.isin(high * (high - 1) // 2 + low, structure.codes)] = True
        positives, negatives = int(edge.sum()), int((~edge).sum())
        if positives and negatives:
            above = rankdata(scores)[edge].sum() - positives * (positives + 1) / 2
            values.append(above / (positives * negatives))
    return float(np.mean(values)) if values else math.nan
