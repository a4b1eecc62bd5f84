"""Operators of torch that its documentation does not promise: each does what the engine uses it for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from bench.learning.fast.ops import torch_private as private

ROOT = Path(__file__).resolve().parents[4]
INDEX, OFFSETS = torch.tensor([3, 0, 0, 2, 1], dtype=torch.int32), torch.tensor([0, 2, 2, 5], dtype=torch.int32)
BAG_OF_ENTRY = torch.tensor([0, 0, 2, 2, 2], dtype=torch.int32)


@pytest.fixture(params=[torch.float32, torch.float64])
def table(request: pytest.FixtureRequest) -> torch.Tensor:
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(0), dtype=request.param)


def test_weighted_rows_are_added_up_with_an_empty_bag_as_zeros(table: torch.Tensor) -> None:
    values = torch.tensor([0.5, 2.0, -1.0, 3.0, 1.0], dtype=table.dtype)
    found = private.embedding_bag(table, INDEX, OFFSETS, False, private.ADD, False, values, True)[0]
    last = -table[0] + 3 * table[2] + table[1]
    torch.testing.assert_close(found, torch.stack([0.5 * table[3] + 2 * table[0], 0 * last, last]))


def test_the_largest_rows_and_whose_they_are(table: torch.Tensor) -> None:
    index, offsets = torch.tensor([3, 0, 1, 2]), torch.tensor([0, 2, 4])
    largest, _, _, taken = private.embedding_bag(table, index, offsets, False, private.LARGEST, False, None, True)
    expected = torch.stack([table[[0, 3]].amax(0), table[[1, 2]].amax(0)])
    assert torch.equal(largest, expected)
    assert torch.equal(table.gather(0, taken), expected)


def test_gradients_of_the_values_of_a_bag(table: torch.Tensor) -> None:
    gradient = torch.randn(3, 6, generator=torch.Generator().manual_seed(1), dtype=table.dtype)
    found = private.entry_gradients(gradient, table, INDEX, OFFSETS, BAG_OF_ENTRY, private.ADD)
    expected = (gradient[BAG_OF_ENTRY.long()] * table[INDEX.long()]).sum(dim=1)
    torch.testing.assert_close(found, expected)


def test_the_gradient_before_a_relu_goes_where_it_is_told(table: torch.Tensor) -> None:
    output, place = table.relu(), torch.full_like(table, 9.0)
    private.relu_backward(table + 1, output, 0, grad_input=place)
    assert torch.equal(place, (table + 1) * (output > 0))
    gradient = table + 1
    private.relu_backward(gradient, output, 0, grad_input=gradient)  # in its own place, too
    assert torch.equal(gradient, place)


def test_the_gradient_before_a_log_softmax(table: torch.Tensor) -> None:
    given = table.clone().requires_grad_()
    output = given.log_softmax(1)
    weights = torch.arange(24.0, dtype=table.dtype).view(4, 6)
    (output * weights).sum().backward()
    torch.testing.assert_close(private.log_softmax_backward(weights, output.detach(), 1, table.dtype), given.grad)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adam_in_one_call_is_torchs_adam(table: torch.Tensor, weight_decay: float) -> None:
    weight = torch.nn.Parameter(table.clone())
    optimizer = torch.optim.Adam([weight], lr=0.01, weight_decay=weight_decay)
    flat, mean, square = table.clone(), torch.zeros_like(table), torch.zeros_like(table)
    steps = torch.zeros((), dtype=torch.get_default_dtype())
    for epoch in range(5):
        gradient = torch.sin(table + epoch)
        weight.grad = gradient.clone()
        optimizer.step()
        steps.add_(1)
        private.fused_adam(
            [flat],
            [gradient],
            [mean],
            [square],
            [],
            [steps],
            lr=0.01,
            beta1=0.9,
            beta2=0.999,
            weight_decay=weight_decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )
    torch.testing.assert_close(flat, weight.detach())


def test_they_are_named_in_one_place() -> None:
    """No other file of the engine reaches for what torch keeps to itself."""
    hidden = re.compile(r"torch\._\w|torch\.ops\.|torch\.embedding_bag|torch\._C")
    folder = ROOT / "bench" / "learning" / "fast"
    found = [path.name for path in folder.rglob("*.py") if hidden.search(path.read_text(encoding="utf-8"))]
    assert found == ["torch_private.py"]


def test_the_promise_is_the_torch_they_were_tested_with() -> None:
    promised = re.search(r'"torch>=([\d.]+),<3"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = re.search(r"^torch==([\d.]+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert promised and pinned and pinned[1].startswith(f"{promised[1]}.")
