"""Readouts by hand."""

from __future__ import annotations

import pytest
import torch

from models import READOUTS

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
