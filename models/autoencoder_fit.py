"""Training of the structural auto-encoders."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.random import Generator
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn.functional import softplus
from torch_geometric.data import Data

from models.autoencoders import (
    GSAE,
    Encoder,
    InputRule,
    Output,
    Propagation,
    StructureInput,
    build_autoencoder,
    pair_gradients,
    pair_products,
    reconstruction_loss,
)
from models.fit import Diverged
from models.structure import Structure

EPOCHS = 200
LEARNING_RATE = 0.01

softplus_backward = torch.ops.aten.softplus_backward
relu_backward = torch.ops.aten.threshold_backward


def fit_autoencoder(
    graphs: Sequence[Data],
    rng: Generator,
    encoder: Encoder = "gsae",
    width: int = 64,
    structure: StructureInput = "diag",
    epochs: int = EPOCHS,
    output: Output = "linear",
) -> GSAE:
    """Train on all graphs at once; each epoch uses every edge and as many newly drawn non-edges of the same graph."""
    whole = Structure.of(graphs)
    rule = InputRule.learn(structure, whole)
    model = build_autoencoder(encoder, rule, width, int(rng.integers(2**63)), output)
    train = train_by_hand if type(model) is GSAE else train_by_autograd
    loss = train(model, Propagation(whole, rule), whole, rng, epochs)
    if not math.isfinite(loss):
        raise Diverged(f"the loss of the auto-encoder {encoder} is {loss}; check the edge weights of the graphs")
    return model


def train_by_autograd(model: GSAE, by: Propagation, whole: Structure, rng: Generator, epochs: int) -> float:
    """Minimize the loss of any of the auto-encoders with Adam and autograd; returns the last loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)
    value = 0.0
    for _ in range(epochs):
        optimizer.zero_grad()
        embedding, penalty = model(by, whole, rng)
        loss = reconstruction_loss(embedding, whole.edges, whole.sample_non_edges(rng)) + penalty
        loss.backward()
        optimizer.step()
        value = loss.item()
    return value


@torch.inference_mode()
def train_by_hand(model: GSAE, by: Propagation, whole: Structure, rng: Generator, epochs: int) -> float:
    """The same for GSAE with handwritten gradients and identical results; takes half the time on small graphs."""
    weights = [parameter.detach() for parameter in model.parameters()]
    first_weight, first_bias, second_weight, second_bias = weights
    means, squares = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    steps = [torch.zeros(()) for _ in weights]
    last = torch.zeros(())
    for epoch in range(epochs):
        hidden = product(by.inputs, first_weight).add_(first_bias).relu_()
        embedding = model.output(product(by.adjacency, hidden @ second_weight).add_(second_bias))
        first, second = (np.concatenate(ends) for ends in zip(whole.edges, whole.sample_non_edges(rng), strict=True))
        logits = pair_products(embedding, first, second)
        edges, non_edges = -logits[: len(whole.edges[0])], logits[len(whole.edges[0]) :]
        if epoch == epochs - 1:
            last = softplus(edges).sum() + softplus(non_edges).sum()
        of_logits = torch.cat([softplus_gradient(edges).neg_(), softplus_gradient(non_edges)])
        of_embedding = pair_gradients(of_logits, embedding, first, second)
        if model.rectified:
            of_embedding = relu_backward(of_embedding, embedding, 0)
        of_product = product(by.adjacency, of_embedding)  # the adjacency is symmetric
        of_hidden = relu_backward(of_product @ second_weight.t(), hidden, 0)
        gradients = [
            product(by.inputs_transposed, of_hidden),
            of_hidden.sum(0),
            hidden.t() @ of_product,
            of_embedding.sum(0),
        ]
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            weights,
            gradients,
            means,
            squares,
            [],
            steps,
            lr=LEARNING_RATE,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )
    return float(last)


def product(matrix: csr_array, dense: Tensor) -> Tensor:
    return torch.from_numpy(matrix @ dense.numpy())


def softplus_gradient(values: Tensor) -> Tensor:
    return softplus_backward(torch.ones(()).expand(len(values)), values, 1, 20)
