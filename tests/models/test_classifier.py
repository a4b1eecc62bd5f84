"""The classifier: initial weights from the seed alone, its two parts, its loss and its training."""

from __future__ import annotations

import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from models.classifier import GraphClassifier, build_classifier
from models.fit import Diverged, Step, fit, predict, pretrain, soft_cross_entropy


def path(label: int) -> Data:
    return Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), y=torch.tensor([label]))


def triangle(label: int) -> Data:
    edges = torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])
    return Data(x=torch.zeros(3, 1), edge_index=edges, y=torch.tensor([label]))


GRAPHS = [path(0), triangle(1), path(0)]


def weights(model: GraphClassifier) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_initial_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = build_classifier("gcn", "mean", 3, 2, seed=5)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert torch.equal(weights(first), weights(build_classifier("gcn", "mean", 3, 2, seed=5)))
    assert not torch.equal(weights(first), weights(build_classifier("gcn", "mean", 3, 2, seed=6)))


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gin", "sage"])
@pytest.mark.parametrize("readout", ["mean", "add", "max"])
def test_graphs_of_a_batch_do_not_see_each_other(backbone: str, readout: str) -> None:
    model = build_classifier(backbone, readout, 1, 2, seed=0).eval()
    together = model(Batch.from_data_list(GRAPHS))
    alone = torch.cat([model(Batch.from_data_list([graph])) for graph in GRAPHS])
    torch.testing.assert_close(together, alone)


def test_edge_weights_of_the_batch_reach_the_backbone() -> None:
    model = build_classifier("gcn", "mean", 1, 2, seed=0).eval()
    graph = path(0)
    plain = model(Batch.from_data_list([graph]))
    graph.edge_weight = torch.full((4,), 0.1)
    assert not torch.allclose(model(Batch.from_data_list([graph])), plain)


def test_forward_is_the_head_on_the_embedding() -> None:
    model = build_classifier("gin", "add", 1, 2, seed=0)
    batch = Batch.from_data_list(GRAPHS)
    assert torch.equal(model(batch), model.head(model.embed(batch)))
    assert model.embed(batch).shape == (3, 64)


def test_soft_cross_entropy_by_hand() -> None:
    logits = torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]])
    targets = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    expected = math.log(2) + 0.5 * -(0.25 * math.log(0.75) + 0.75 * math.log(0.25))  # Eq. 16 with lambda = 0.5
    assert soft_cross_entropy(logits, targets, torch.tensor([1.0, 0.5])).item() == pytest.approx(expected)


def test_training_learns_and_predictions_are_distributions() -> None:
    rows = pretrain(GRAPHS, 2, epochs=60, seed=0).probabilities
    assert torch.allclose(rows.sum(dim=1), torch.ones(3))
    assert rows.argmax(dim=1).tolist() == [0, 1, 0]


def test_prediction_does_not_depend_on_the_batch_size() -> None:
    model = build_classifier("gcn", "mean", 1, 2, seed=0)
    torch.testing.assert_close(predict(model, GRAPHS, size=1), predict(model, GRAPHS, size=3))


def test_a_loss_that_is_not_a_number_stops_the_training() -> None:
    model = build_classifier("gcn", "mean", 1, 2, seed=0)
    broken = path(0)
    broken.x = torch.full((3, 1), math.nan)
    step = Step(Batch.from_data_list([broken]), torch.tensor([[1.0, 0.0]]), torch.ones(1))
    with pytest.raises(Diverged, match="at epoch 1"):
        fit(model, [[step]], lr=0.01)


def test_a_relu_head_has_the_same_weights_and_no_negative_logit() -> None:
    plain, ended = build_classifier("gcn", "mean", 1, 3, seed=0), build_classifier("gcn", "mean", 1, 3, 0, "relu")
    batch = Batch.from_data_list(GRAPHS)
    assert torch.equal(weights(plain), weights(ended))
    assert bool((plain(batch) < 0).any()) and torch.equal(ended(batch), plain(batch).clamp(min=0))


def test_a_class_whose_logits_are_all_zero_gets_no_gradient() -> None:
    model = build_classifier("gcn", "mean", 1, 2, 0, "relu")
    with torch.no_grad():
        model.head[2].bias.copy_(torch.tensor([5.0, -5.0]))
    Step(Batch.from_data_list(GRAPHS), torch.eye(2)[[0, 1, 0]], torch.ones(3)).backward(model)
    gradient = model.head[2].bias.grad
    share = math.exp(-5.0)  # about: logits are close to 5 and exactly 0, and each graph adds p - y
    assert gradient[1] == 0 and gradient[0].item() == pytest.approx(1.0, abs=10 * share)
