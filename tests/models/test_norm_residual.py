"""Batch norm and residual connections of backbones; without them nothing is as it was not before."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from models import BACKBONES
from models.backbones import GCN, Backbone
from models.classifier import build_classifier

NAMES = ["gcn", "gat", "gin", "sage"]
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def made(spec: str, channels: int = 3) -> Backbone:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        backbone: Backbone = BACKBONES.create(spec, in_channels=channels)
        return backbone


@pytest.mark.parametrize("name", NAMES)
def test_both_are_off_by_default_and_draw_no_weights(name: str) -> None:
    plain, both = made(f"{name}:width=4"), made(f"{name}:width=4,norm=batch,residual=true")
    assert not plain.norms and not plain.residual
    held = dict(both.named_parameters())
    assert all(torch.equal(value, held[key]) for key, value in plain.named_parameters())
    assert {key for key in held if key not in dict(plain.named_parameters())} == {
        f"norms.{layer}.module.{part}" for layer in range(4) for part in ("weight", "bias")
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_residual_layer_adds_what_it_was_given_where_the_widths_agree(name: str) -> None:
    x = torch.rand(3, 4)
    plain, residual = made(f"{name}:width=4,layers=2", 4), made(f"{name}:width=4,layers=2,residual=true", 4)
    first = plain.convs[0](x, PATH).relu() + x
    torch.testing.assert_close(residual(x, PATH), plain.convs[1](first, PATH).relu() + first)
    narrow, other = made(f"{name}:width=4,layers=1"), made(f"{name}:width=4,layers=1,residual=true")
    x = torch.rand(3, 3)
    torch.testing.assert_close(narrow(x, PATH), other(x, PATH))


def test_batch_norm_stands_before_the_relu() -> None:
    backbone = made("gcn:width=4,layers=1,norm=batch")
    x = torch.rand(3, 3)
    raw = backbone.convs[0](x, PATH)
    wanted = ((raw - raw.mean(dim=0)) / (raw.var(dim=0, unbiased=False) + 1e-5).sqrt()).relu()
    torch.testing.assert_close(backbone(x, PATH), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_a_single_node_can_be_trained_on_and_judged(name: str) -> None:
    backbone = made(f"{name}:norm=batch,residual=true")
    alone = torch.empty(2, 0, dtype=torch.long)
    assert bool(backbone(torch.rand(1, 3), alone).isfinite().all())
    assert bool(backbone.eval()(torch.rand(1, 3), alone).isfinite().all())


def test_a_trained_norm_judges_a_graph_alone_as_in_a_batch() -> None:
    from torch_geometric.data import Data

    graphs = [Data(x=torch.rand(n, 3), edge_index=PATH) for n in (3, 5)]
    model = build_classifier("gcn:norm=batch,residual=true", "mean", 3, 2, seed=0)
    assert isinstance(model.backbone, GCN)
    model(Batch.from_data_list(graphs))  # one step of statistics
    model.eval()
    together = model(Batch.from_data_list(graphs))
    torch.testing.assert_close(torch.cat([model(Batch.from_data_list([g])) for g in graphs]), together)
