"""Units that no node uses are left out of the products, and no weight tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from bench.learning.fast import engine as fast
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.training import units
from bench.learning.fast.training.units import Units
from bench.learning.reference import ReferenceEngine

Make = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many units counted, look after look, with a look every second epoch."""
    seen: list[int] = []
    settle = Units.settle

    def watched(self: Units, output: torch.Tensor, look: bool) -> torch.Tensor:
        settled = settle(self, output, look)
        seen.append(self.width)
        assert not settled[:, self.used :].any()
        used = self.order[: self.used].tolist()
        assert used == sorted(used)
        return settled

    monkeypatch.setattr(Units, "settle", watched)
    monkeypatch.setattr(units, "LOOK_EVERY", 2)
    return seen


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("backbone", ["gcn", "gcn:width=32", "sage", "gin"])
@pytest.mark.parametrize("method", ["none", "dropedge", "dropnode", "m-mixup", "duplicate"])
def test_the_reference_trains_the_same(problem: Make, backbone: str, method: str, widths: list[int]) -> None:
    def trained(fit: Callable[[Any], Any]) -> torch.Tensor:
        model = fit(problem(method, backbone=backbone, epochs=24)).predictor.model
        return torch.cat([parameter.detach().view(-1) for parameter in model.parameters()])

    quick, slow = trained(fast.fit_fast), trained(lambda task: ReferenceEngine().fit([task])[0])
    torch.testing.assert_close(quick, slow, rtol=1e-7, atol=1e-7)
    if backbone == "gin":  # its layers end with a second map
        assert not widths
    else:
        assert min(widths) < max(widths)


def layer(used: list[int]) -> tuple[Units, Parameters, nn.Sequential]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 24), nn.Linear(24, 2))
    parameters = Parameters(model, 0.01)
    made = Units(parameters, ["0.weight", "0.bias"], ["1.weight"])
    made.settle(rows(used), look=True)
    return made, parameters, model


def rows(used: list[int]) -> torch.Tensor:
    """What a ReLU gives for one node that uses these of 24 units."""
    return torch.zeros(1, 24).index_fill_(1, torch.tensor(used), 1.0)


def test_units_in_use_stand_in_front_in_their_old_order() -> None:
    made, parameters, model = layer([20, 3, 7])
    assert (made.used, made.width) == (3, 16)
    assert made.order[:4].tolist() == [3, 7, 20, 0]
    assert torch.equal(parameters.weight["0.bias"], model[0].bias[made.order])
    assert torch.equal(parameters.weight["1.weight"], model[1].weight.t()[made.order])


def test_a_unit_that_comes_back_is_seen_at_once_also_where_it_needs_no_more_room() -> None:
    made, _, _ = layer([3, 7, 20])
    assert made.order[3] == 0  # within the 16 that count, behind the three in use
    settled = made.settle(rows([0, 1, 2, 3]), look=False)
    assert made.order[:4].tolist() == [0, 3, 7, 20]
    assert settled[0, :4].tolist() == [1.0] * 4 and made.width == 16
    assert torch.equal(made.settle(settled, look=False), settled)


def test_all_units_in_use_stand_as_they_stood() -> None:
    made, _, _ = layer([3, 7, 20])
    made.settle(torch.ones(1, 24), look=True)
    assert made.order.tolist() == list(range(24)) and made.width == made.used == 24


def test_a_stored_model_has_its_own_order() -> None:
    _, parameters, model = layer([3, 7, 20])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    parameters.store(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_adam_keeps_what_it_knows_of_each_unit() -> None:
    made, parameters, _ = layer(list(range(24)))
    parameters.mean.copy_(torch.arange(len(parameters.mean)))
    mean = parameters.with_moments["0.bias"][1].clone()
    made.settle(rows([5]), look=True)
    assert torch.equal(parameters.with_moments["0.bias"][1], mean[made.order])
