"""Backbones: edge weights honored or refused, and layers against their formulas."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bench.registry import UserError
from models import BACKBONES
from models.backbones import Backbone

WEIGHTED = ["gcn", "gin", "sage"]
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 3], [1, 0, 2, 1, 3, 2, 3, 0]])
X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))  # node 4 is isolated


def backbone(name: str, settings: str = "width=6,layers=2") -> Backbone:
    torch.manual_seed(0)
    made: Backbone = BACKBONES.create(f"{name}:{settings}", in_channels=3)
    return made.eval()


def adjacency(weights: Tensor) -> Tensor:
    dense = torch.zeros(5, 5)
    dense[EDGES[1], EDGES[0]] = weights
    return dense


def symmetric(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float32).repeat_interleave(2)


@pytest.mark.parametrize("name", WEIGHTED)
def test_weight_one_is_no_weight(name: str) -> None:
    model = backbone(name)
    torch.testing.assert_close(model(X, EDGES, torch.ones(8)), model(X, EDGES))


@pytest.mark.parametrize("name", WEIGHTED)
def test_weight_zero_is_no_edge(name: str) -> None:
    model = backbone(name)
    weights = symmetric([1, 0, 1, 1])
    torch.testing.assert_close(model(X, EDGES, weights), model(X, EDGES[:, weights > 0]))


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_change_the_result(name: str) -> None:
    model = backbone(name)
    assert not torch.allclose(model(X, EDGES, symmetric([1, 0.3, 1, 1])), model(X, EDGES))


def test_attention_refuses_weights_in_one_line() -> None:
    model = backbone("gat")
    assert model(X, EDGES).shape == (5, 6)
    with pytest.raises(UserError, match=r"GAT ignores edge weights.*use gcn, gin or sage") as caught:
        model(X, EDGES, torch.ones(8))
    assert "\n" not in str(caught.value)


def test_one_layer_of_each_is_its_formula() -> None:
    dense = adjacency(symmetric([0.5, 2, 1, 0.25]))
    weights = symmetric([0.5, 2, 1, 0.25])

    gcn = backbone("gcn", "width=6,layers=1")
    looped = dense + torch.eye(5)
    scale = looped.sum(1).rsqrt()
    conv = gcn.convs[0]
    expected = (scale[:, None] * looped * scale) @ X @ conv.lin.weight.T + conv.bias
    torch.testing.assert_close(gcn(X, EDGES, weights), expected.relu())

    gin = backbone("gin", "width=6,layers=1")
    torch.testing.assert_close(gin(X, EDGES, weights), gin.convs[0].mlp(X + dense @ X).relu())

    sage = backbone("sage", "width=6,layers=1")
    mean = dense @ X / dense.sum(1, keepdim=True).clamp(min=1e-12)
    conv = sage.convs[0]
    torch.testing.assert_close(sage(X, EDGES, weights), (conv.neighbors(mean) + conv.own(X)).relu())


@pytest.mark.parametrize("name", BACKBONES.names())
def test_isolated_nodes_and_graphs_without_edges_are_fine(name: str) -> None:
    out = backbone(name)(X, torch.empty(2, 0, dtype=torch.long))
    assert torch.isfinite(out).all() and (out >= 0).all()


def test_dropout_is_off_at_evaluation() -> None:
    model = backbone("gcn", "dropout=0.5")
    assert torch.equal(model(X, EDGES), model(X, EDGES))
    model.train()
    assert not torch.equal(model(X, EDGES), model(X, EDGES))


def test_layers_and_width_are_as_asked() -> None:
    model = backbone("gcn", "width=6,layers=3")
    assert len(model.convs) == 3 and model.out_channels == 6
    assert len(BACKBONES.create("gcn", in_channels=3).convs) == 4


def test_heads_must_divide_the_width() -> None:
    assert backbone("gat", "heads=3,width=6")(X, EDGES).shape == (5, 6)
    with pytest.raises(UserError, match="width=6 is not divisible by heads=4"):
        backbone("gat", "heads=4,width=6")
