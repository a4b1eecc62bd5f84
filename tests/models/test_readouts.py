"""Readouts by hand, and one of a third party with a width and a loss of its own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import global_add_pool

from models import BACKBONES, READOUTS
from models.classifier import GraphClassifier
from models.fit import Step, predict
from models.readouts import Pooled, Readout

X = torch.tensor([[1.0, -2.0], [3.0, -4.0], [5.0, 0.0]])
BATCH = torch.tensor([0, 0, 1])
EDGES = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mean", [[2, -3], [5, 0]]), ("add", [[4, -6], [5, 0]]), ("max", [[3, -2], [5, 0]])],
)
def test_pools_each_graph_by_itself(name: str, expected: list[list[float]]) -> None:
    readout = READOUTS.create(name, in_channels=2)
    assert readout(X, EDGES, None, BATCH, 2).tolist() == expected
    assert readout.out_channels == 2


@pytest.mark.parametrize("name", READOUTS.names())
def test_one_row_per_graph_whatever_the_order_of_nodes(name: str) -> None:
    order = torch.tensor([2, 0, 1])
    readout = READOUTS.create(name, in_channels=2)
    rows = readout(X[order], torch.argsort(order)[EDGES], None, BATCH[order], 2)
    torch.testing.assert_close(rows, readout(X, EDGES, None, BATCH, 2))


class Doubled(Readout):
    """Rows twice as wide as the embeddings, an edge count beside them, and a loss of its own."""

    def __init__(self, in_channels: int, penalty: float = 0.5) -> None:
        super().__init__(in_channels)
        self.out_channels = 2 * in_channels
        self.penalty = penalty
        self.scale = nn.Parameter(torch.ones(()))

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
    ) -> Pooled:
        rows = global_add_pool(x, batch, num_graphs) * self.scale
        joined = torch.bincount(batch[edge_index[0]], minlength=num_graphs).to(x).unsqueeze(1)
        return Pooled(torch.cat([rows, joined.expand_as(rows)], dim=1), self.penalty * self.scale.square())


def graph(y: int) -> Data:
    return Data(x=torch.full((3, 1), 1.0 + y), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([y]))


def test_the_head_is_as_wide_as_the_readout_says() -> None:
    model = GraphClassifier(BACKBONES.create("gcn:width=4", in_channels=1), Doubled(4), 2)
    assert model.head[0].in_features == 8
    batch = Batch.from_data_list([graph(0), graph(1)])
    assert model.embed(batch).shape == (2, 8)
    assert model.embed(batch)[:, 4:].eq(2).all(), "it has seen the edges"


def test_the_auxiliary_loss_counts_in_training_and_never_in_a_prediction() -> None:
    batch = Batch.from_data_list([graph(0), graph(1)])
    step = Step(batch, torch.eye(2), torch.ones(2))

    def trained(penalty: float) -> tuple[float, float, Tensor]:
        torch.manual_seed(0)
        model = GraphClassifier(BACKBONES.create("gcn:width=4", in_channels=1), Doubled(4, penalty), 2)
        before = predict(model, [graph(0), graph(1)])
        value = step.backward(model)
        assert isinstance(model.readout, Doubled) and model.readout.scale.grad is not None
        return value, float(model.readout.scale.grad), before

    (plain, gradient, rows), (more, steeper, same_rows) = trained(0.0), trained(0.5)
    assert more == pytest.approx(plain + 0.5)
    assert steeper == pytest.approx(gradient + 1.0)  # d/ds of 0.5 s^2 at 1
    assert torch.equal(rows, same_rows)


def test_a_readout_without_forward_says_so() -> None:
    with pytest.raises(TypeError, match="Readout has no method `forward`"):
        Readout(2)(X, EDGES, None, BATCH, 2)
