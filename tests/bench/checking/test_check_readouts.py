"""What `bench check` says of readouts: those of the house hold, each defect is found."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import global_add_pool, global_mean_pool

from bench.checking import check
from bench.registry import UserError
from models import READOUTS
from models.readouts import Pooled, Readout


class Fine(Readout):
    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        return global_add_pool(x, batch, num_graphs)


class FirstNode(Readout):
    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        return torch.stack([x[batch == graph][0] for graph in range(num_graphs)])


class Centered(Readout):
    """Subtracts the mean of the batch, so that graphs influence each other."""

    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        rows = global_mean_pool(x, batch, num_graphs)
        return rows - rows.mean(dim=0)


class Wider(Readout):
    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        return global_add_pool(torch.cat([x, x], dim=1), batch, num_graphs)


class FixedWidth(Readout):
    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels)
        self.scale = torch.nn.Parameter(torch.ones(6))

    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        return global_add_pool(x * self.scale, batch, num_graphs)


class BadLoss(Fine):
    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        rows = super().forward(x, edge_index, edge_weight, batch, num_graphs)
        return Pooled(rows, x[edge_index[0]].sum() / edge_index.shape[1])  # of a graph without edges: 0 / 0


class ManyLosses(Fine):
    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        rows = super().forward(x, edge_index, edge_weight, batch, num_graphs)
        return Pooled(rows, rows.sum(dim=1))


class NoGradient(Fine):
    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        return super().forward(x.detach(), edge_index, edge_weight, batch, num_graphs)


class Noisy(Fine):
    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        return super().forward(x + torch.rand(()), edge_index, edge_weight, batch, num_graphs)


class Overwriting(Fine):
    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        with torch.no_grad():
            x.clamp_(min=0)
        return super().forward(x, edge_index, edge_weight, batch, num_graphs)


class NeedsWeights(Fine):
    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        edge_weight.sum()
        return super().forward(x, edge_index, edge_weight, batch, num_graphs)


DEFECTS = [
    (FirstNode, "the order of nodes does not matter", "mixed sizes, graph"),
    (Centered, "graphs of a batch stay apart", "mixed sizes, graph 0"),
    (Wider, "rows are as wide as out_channels", "rows have shape [6, 12], not [6, out_channels=6]"),
    (FixedWidth, "works at any width", "in_channels=1"),
    (BadLoss, "auxiliary loss is one finite number", "graphs without edges: the auxiliary loss is nan"),
    (ManyLosses, "auxiliary loss is one finite number", "mixed sizes: the auxiliary loss is ["),
    (NoGradient, "the gradient reaches the nodes", "the backbone would not learn"),
    (Noisy, "same input, same rows", "torch's default generator moved"),
    (Overwriting, "the input is untouched", "mixed sizes"),
    (NeedsWeights, "works on: mixed sizes", "AttributeError: 'NoneType' object has no attribute 'sum'"),
]


@pytest.fixture(autouse=True)
def known_by_name(monkeypatch):
    """The classes of this file as if they were installed."""
    monkeypatch.setattr(READOUTS, "_entries", dict(READOUTS.entries()))
    for cls in {cls for cls, _, _ in DEFECTS} | {Fine}:
        READOUTS.add(cls.__name__, cls)


def found(spec: str) -> dict[str, str]:
    return {finding.title: finding.detail for finding in check(spec).broken}


@pytest.mark.parametrize(("cls", "title", "words"), DEFECTS, ids=[f"{d[0].__name__}: {d[1]}" for d in DEFECTS])
def test_a_defect_is_found_and_its_value_named(cls, title, words):
    broken = found(f"{READOUTS.kind}:{cls.__name__}")
    assert words in broken.get(title, f"not found; broken are {broken}")


@pytest.mark.parametrize("name", ["Fine", "mean", "add", "max"])
def test_what_is_harmless_is_not_accused(name):
    assert found(name) == {}


def test_what_cannot_be_made_is_the_users_to_mend():
    class NoWidth(Readout):
        def __init__(self) -> None: ...

    READOUTS.add("no-width", NoWidth)
    with pytest.raises(UserError, match="no-width cannot be made"):
        check("no-width")
