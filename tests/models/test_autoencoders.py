"""GSAE and VGSAE against dense computations, PyG's layers and torch's distributions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from bench.registry import UserError
from models.autoencoder_fit import fit_autoencoder, train_by_autograd, train_by_hand
from models.autoencoders import (
    DEGREE_CAP,
    GSAE,
    InputRule,
    Propagation,
    build_autoencoder,
    kl_to_standard_normal,
    reconstruction_auc,
    reconstruction_loss,
)
from models.structure import Structure


def graph(n: int, pairs: list[tuple[int, int]]) -> Data:
    both = torch.tensor(pairs + [(j, i) for i, j in pairs], dtype=torch.long).reshape(-1, 2).T
    return Data(edge_index=both, num_nodes=n)


def complete(n: int) -> Data:
    return graph(n, [(i, j) for j in range(n) for i in range(j)])


def ring(n: int) -> Data:
    return graph(n, [(i, (i + 1) % n) for i in range(n)])


PATH, STAR = graph(3, [(0, 1), (1, 2)]), graph(4, [(0, 1), (0, 2), (0, 3)])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("diag", [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0]]),  # Eq. 6, padded to the four nodes of the star
        ("onehot", [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]),
        ("scalar", [[1], [2], [1]]),
    ],
)
def test_structural_input(kind: Literal["diag", "onehot", "scalar"], expected: list[list[float]]) -> None:
    rule = InputRule.learn(kind, Structure.of([PATH, STAR]))
    assert rule.rows(Structure.of([PATH])).toarray().tolist() == expected


def test_one_hot_degrees_are_capped() -> None:
    hub = graph(DEGREE_CAP + 6, [(0, i) for i in range(1, DEGREE_CAP + 6)])
    rule = InputRule.learn("onehot", Structure.of([hub]))
    assert rule.columns == DEGREE_CAP + 1
    assert rule.rows(Structure.of([hub])).toarray()[0].argmax() == DEGREE_CAP


@pytest.mark.parametrize("kind", ["diag", "onehot", "scalar"])
def test_encoder_is_two_gcn_layers_with_relu_after_the_first(kind: Literal["diag", "onehot", "scalar"]) -> None:
    graphs = [PATH, STAR]
    rule = InputRule.learn(kind, Structure.of(graphs))
    model = build_autoencoder("gsae", rule, 5, seed=1)
    for data, embedding in zip(graphs, model.encode(graphs), strict=True):
        first, second = GCNConv(rule.columns, 5), GCNConv(5, 5)
        for layer, ours in ((first, model.first), (second, model.second)):
            layer.lin.weight.data, layer.bias.data = ours.weight.data.T.contiguous(), ours.bias.data
        inputs = torch.from_numpy(rule.rows(Structure.of([data])).toarray()).float()
        expected = second(first(inputs, data.edge_index).relu(), data.edge_index)
        torch.testing.assert_close(embedding, expected.detach())
        assert embedding.min() < 0  # no ReLU at the end, or every pair would be an edge


def test_loss_and_gradient_are_those_of_the_dense_formula() -> None:
    embedding = torch.randn(7, 4, dtype=torch.float32, generator=torch.Generator().manual_seed(0), requires_grad=True)
    edges = np.array([0, 1, 3]), np.array([1, 2, 6])
    non_edges = np.array([0, 4, 4]), np.array([2, 5, 5])  # a non-edge drawn twice counts twice
    probabilities = torch.sigmoid(embedding @ embedding.T)  # Eq. 7
    dense = -(probabilities[edges].log().sum() + (1 - probabilities[non_edges]).log().sum())  # Eq. 8
    (expected,) = torch.autograd.grad(dense, embedding)
    loss = reconstruction_loss(embedding, edges, non_edges)
    (gradient,) = torch.autograd.grad(loss, embedding)
    torch.testing.assert_close(loss, dense)
    torch.testing.assert_close(gradient, expected)


def test_gradients_reach_the_weights_as_in_a_dense_network() -> None:
    structure = Structure.of([PATH, STAR])
    rule = InputRule.learn("diag", structure)
    model = build_autoencoder("vgsae", rule, 3, seed=2)
    by = Propagation(structure, rule)
    embedding, penalty = model(by, structure, np.random.default_rng(3))
    ours = torch.autograd.grad((embedding**2).sum() + penalty, list(model.parameters()))

    adjacency = torch.from_numpy(structure.adjacency.toarray())
    inputs = torch.from_numpy(rule.rows(structure).toarray())
    hidden = (adjacency @ inputs @ model.first.weight + model.first.bias).relu()
    mean = adjacency @ hidden @ model.second.weight + model.second.bias
    log_variance = adjacency @ hidden @ model.spread.weight + model.spread.bias
    noise = torch.from_numpy(np.random.default_rng(3).standard_normal((7, 3), dtype=np.float32))
    normal = torch.distributions.Normal(mean, (log_variance / 2).exp())
    divergence = torch.distributions.kl_divergence(normal, torch.distributions.Normal(0.0, 1.0)).sum(dim=1)
    expected_penalty = divergence[:3].sum() / 3 + divergence[3:].sum() / 4  # weight 1/n for each graph
    torch.testing.assert_close(penalty, expected_penalty)
    total = ((mean + noise * (log_variance / 2).exp()) ** 2).sum() + expected_penalty
    for gradient, expected in zip(ours, torch.autograd.grad(total, list(model.parameters())), strict=True):
        torch.testing.assert_close(gradient, expected)


def test_divergence_from_the_standard_normal() -> None:
    mean, log_variance = torch.tensor([[0.0, 1.0], [2.0, -1.0]]), torch.tensor([[0.0, 0.5], [-1.0, 2.0]])
    normal = torch.distributions.Normal(mean, (log_variance / 2).exp())
    expected = torch.distributions.kl_divergence(normal, torch.distributions.Normal(0.0, 1.0)).sum(dim=1)
    torch.testing.assert_close(kl_to_standard_normal(mean, log_variance), expected)


@pytest.mark.parametrize("encoder", ["gsae", "vgsae"])
@pytest.mark.parametrize(
    "graphs",
    [[complete(4), complete(3)], [graph(3, []), complete(2)], [graph(1, [])]],
    ids=["complete", "without edges", "one node"],
)
def test_extreme_graphs_give_numbers(encoder: Literal["gsae", "vgsae"], graphs: list[Data]) -> None:
    model = fit_autoencoder(graphs, np.random.default_rng(0), encoder, width=8, epochs=20)
    assert all(torch.isfinite(embedding).all() for embedding in model.encode(graphs))


def test_generation_uses_the_mean() -> None:
    model = fit_autoencoder([ring(5)], np.random.default_rng(0), "vgsae", width=4, epochs=5)
    assert torch.equal(model.encode([ring(5)])[0], model.encode([ring(5)])[0])
    by = Propagation(Structure.of([ring(5)]), model.rule)
    torch.testing.assert_close(model.encode([ring(5)])[0], model.mean(by).detach())


def test_same_generator_same_weights_and_torch_is_left_alone() -> None:
    def weights(seed: int) -> Tensor:
        return fit_autoencoder([ring(6), STAR], np.random.default_rng(seed), "vgsae", 8, epochs=10).encode([STAR])[0]

    before = torch.get_rng_state()
    first = weights(0)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    assert torch.equal(first, weights(0))
    assert not torch.equal(first, weights(1))


def test_a_larger_graph_than_those_of_training_is_refused_in_one_line() -> None:
    model = fit_autoencoder([ring(4)], np.random.default_rng(0), width=4, epochs=1)
    with pytest.raises(UserError, match=r"5 nodes is too large .* at most 4 nodes; .*onehot"):
        model.encode([ring(5)])


class Fixed(GSAE):
    """An encoder whose embedding is given."""

    def __init__(self, embedding: Tensor) -> None:
        super().__init__(InputRule("scalar", 1), 1)
        self.embedding = embedding

    def mean(self, by: Propagation) -> Tensor:
        return self.embedding


def test_area_under_the_curve_by_hand() -> None:
    # pairs 01, 02, 12 of the path score 2, -1, -2: of the edges 01 and 12 one is above the non-edge 02
    assert reconstruction_auc(Fixed(torch.tensor([[-1.0], [-2.0], [1.0]])), [PATH]) == 0.5
    assert reconstruction_auc(Fixed(torch.zeros(3, 1)), [PATH]) == 0.5  # ties
    assert reconstruction_auc(Fixed(torch.tensor([[1.0, 0.5], [0, 1], [-1, 0.5]])), [PATH]) == 1.0
    assert math.isnan(reconstruction_auc(Fixed(torch.zeros(3, 1)), [complete(3)]))


def test_training_recovers_graphs() -> None:
    graphs = [ring(n) for n in range(6, 16)]
    auc = reconstruction_auc(fit_autoencoder(graphs, np.random.default_rng(0)), graphs)
    assert auc > 0.9
    untrained = reconstruction_auc(fit_autoencoder(graphs, np.random.default_rng(0), epochs=0), graphs)
    assert auc > untrained


def test_real_proteins_are_recovered(data_root: Path) -> None:
    from bench.datasets.loading import load_dataset

    graphs = load_dataset("PROTEINS", data_root).graphs[::50]
    assert reconstruction_auc(fit_autoencoder(graphs, np.random.default_rng(0)), graphs) > 0.9


@pytest.mark.parametrize("kind", ["diag", "onehot", "scalar"])
@pytest.mark.parametrize("graphs", [[ring(9), STAR, PATH], [complete(5), ring(30)], [complete(4)]])
def test_gradients_by_hand_are_those_of_autograd_to_the_last_bit(
    graphs: list[Data], kind: Literal["diag", "onehot", "scalar"]
) -> None:
    whole = Structure.of(graphs)
    rule = InputRule.learn(kind, whole)
    ends = []
    for train in (train_by_hand, train_by_autograd):
        model = build_autoencoder("gsae", rule, 24, seed=3)
        loss = train(model, Propagation(whole, rule), whole, np.random.default_rng(1), 40)
        ends.append((loss, *(parameter.detach() for parameter in model.parameters())))
    (one, *by_hand), (other, *by_autograd) = ends
    assert one == pytest.approx(other, rel=1e-6) and math.isfinite(one)
    assert all(torch.equal(a, b) for a, b in zip(by_hand, by_autograd, strict=True))
    assert all(torch.linalg.vector_norm(a) > 0 for a in by_hand)
