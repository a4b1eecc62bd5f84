"""Memory that trials may take: what the user writes, the estimate, and workers that wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.execution import memory
from bench.execution.memory import (
    GIB,
    WORKER,
    Claims,
    memory_budget,
    parse_memory,
    room_for,
    workers_within,
)
from bench.execution.request import RunRequest
from bench.execution.trial import TrialRunner
from bench.learning.fast.engine import FastEngine
from bench.learning.memory import estimated_peak
from bench.plan.cells import Trial
from bench.plan.grids import named_grid, product
from bench.plan.planner import Planner
from bench.protocol.training import Training
from bench.registry import UserError

Make = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "amount"), [("4GiB", 4 * GIB), ("1.5 gib", GIB * 3 // 2), ("500MB", 500_000_000), ("1024", 1024)]
)
def test_amounts_of_memory(text: str, amount: int) -> None:
    assert parse_memory(text) == amount


@pytest.mark.parametrize("text", ["", "much", "4 Gibi", "-1GiB", "0", "4GiB/s"])
def test_what_is_no_amount_is_told(text: str) -> None:
    with pytest.raises(UserError, match="write it as 4GiB"):
        parse_memory(text)


def test_without_the_option_a_share_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Free", (), {"available": 10 * GIB}))
    assert memory_budget(None) == 8 * GIB
    assert memory_budget("2GiB") == 2 * GIB


def test_as_many_workers_as_the_budget_holds_at_rest() -> None:
    assert workers_within(64 * GIB, 8) == 8
    assert workers_within(3 * WORKER, 8) == 3
    assert workers_within(1, 8) == 1


def test_a_trial_that_never_fits_is_refused_in_one_line(problem: Make) -> None:
    task, said = problem("none"), r"the largest with 19 nodes, .*gcn.* needs about .* --memory"
    with pytest.raises(UserError, match=said) as caught, room_for(task, 1000, "fast"):
        raise AssertionError("it must not train")
    assert "\n" not in str(caught.value)


class Recorded:
    """A pool that has room for everything, and remembers what was asked."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def claim(self, amount: int) -> None:
        self.said.append(amount)

    def give_back(self) -> None:
        self.said.append("back")


def test_a_trial_claims_what_it_needs_and_gives_it_back_whatever_happens(
    problem: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, room = problem("none"), Recorded()
    monkeypatch.setattr(memory, "_ROOM", room)
    with pytest.raises(RuntimeError), room_for(task, 1000 * GIB, "fast"):
        assert room.said[0] >= estimated_peak(task, "fast") and len(room.said) == 1
        raise RuntimeError
    assert room.said[1:] == ["back"]


def test_a_claim_waits_until_another_is_given_back() -> None:
    claims = Claims(3 * WORKER + 100)
    for worker in (1, 2, 3):
        claims.join(worker)
        claims.ask(worker, 60)
    assert claims.grant() == [1] and claims.grant() == []
    claims.give_back(1)
    assert claims.grant() == [2]
    assert claims.held == 3 * WORKER + 60


def test_claims_that_fit_are_granted_side_by_side_and_one_always_is() -> None:
    claims = Claims(3 * WORKER)
    for worker, amount in ((1, WORKER // 2), (2, 10 * WORKER), (3, WORKER // 4)):
        claims.join(worker)
        claims.ask(worker, amount)
    claims.leave(3)
    assert claims.grant() == [1]
    claims.give_back(1)
    assert claims.grant() == [2], "though it is too large: nothing else trains"


def test_a_dead_worker_gives_everything_back() -> None:
    claims = Claims(2 * WORKER + 10)
    for worker in (1, 2):
        claims.join(worker)
        claims.ask(worker, 8)
    assert claims.grant() == [1]
    claims.leave(1)
    assert claims.held == WORKER and claims.grant() == [2]


def test_the_ledger_gets_the_reason(tmp_path: Path) -> None:
    cell = Planner(tmp_path, "fast").cell(product(["synthetic"], k=[2])[0], Training(epochs=1))
    (record,) = TrialRunner(tmp_path, FastEngine(), memory=GIB // 8).run([(cell, Trial(0, 0))])
    assert record.status == "failed"
    assert str(record.reason).startswith("this trial (8 graphs")
    (record,) = TrialRunner(tmp_path, FastEngine(), memory=1000 * GIB).run([(cell, Trial(0, 0))])
    assert record.done


def test_a_cluster_has_limits_of_its_own(tmp_path: Path) -> None:
    request = RunRequest(grid=named_grid("quick"), workspace=tmp_path, executor="dask", memory="4GiB")
    with pytest.raises(UserError, match="leave --memory out"):
        request.check()
