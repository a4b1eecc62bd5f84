"""Memory that trials may take: what the user writes, the estimate, and workers that wait for each other."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.execution import memory
from bench.execution.memory import (
    GIB,
    WORKER,
    Claims,
    estimated_peak,
    memory_budget,
    parse_memory,
    room_for,
    workers_within,
)
from bench.execution.request import RunRequest
from bench.execution.trial import TrialRunner
from bench.learning.fast.engine import FastEngine
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


def test_the_estimate_grows_with_what_is_trained(problem: Make) -> None:
    plain = estimated_peak(problem("none"), "fast")
    assert estimated_peak(problem("none", backbone="gcn:width=128"), "fast") > plain
    assert estimated_peak(problem("none", backbone="gcn:dropout=0.5"), "fast") > plain
    assert estimated_peak(problem("dropedge"), "fast") > plain
    assert estimated_peak(problem("gdm-unc"), "fast") > plain
    assert estimated_peak(problem("gdm-unc", backbone="gat"), "fast") > estimated_peak(problem("gdm-unc"), "fast")
    assert estimated_peak(problem("none"), "reference") > plain


def test_a_trial_that_never_fits_is_refused_in_one_line(problem: Make) -> None:
    task, said = problem("none"), r"the largest with 19 nodes, .*gcn.* needs about .* --memory"
    with pytest.raises(UserError, match=said) as caught, room_for(task, 1000, "fast"):
        raise AssertionError("it must not train")
    assert "\n" not in str(caught.value)


def test_a_trial_waits_until_another_is_done(problem: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    task = problem("none")
    alone = int(psutil.Process().memory_info().rss) + estimated_peak(task, "fast")
    claims = Claims(alone + WORKER, multiprocessing.get_context("spawn"))
    monkeypatch.setattr(memory, "_CLAIMS", claims)
    claims.move(2 * WORKER)
    second_trains = threading.Event()

    def second() -> None:
        with room_for(task, 100 * alone, "fast"):
            second_trains.set()

    waiting = threading.Thread(target=second)
    # The process grows while it is tested, so what it claims is made large against that.
    monkeypatch.setattr(memory, "estimated_peak", lambda *_: alone)
    with room_for(task, 100 * alone, "fast"):
        waiting.start()
        assert not second_trains.wait(0.3)
    assert second_trains.wait(10)
    waiting.join(10)
    assert claims.held.value == 2 * WORKER
    assert claims.training.value == 0


def test_the_ledger_gets_the_reason(tmp_path: Path) -> None:
    cell = Planner(tmp_path, "fast").cell(product(["synthetic"], k=[2])[0], Training(epochs=1))
    (record,) = TrialRunner(tmp_path, FastEngine(), memory=GIB // 8).run([(cell, Trial(0, 0))])
    assert record["status"] == "failed"
    assert record["reason"].startswith("this trial (8 graphs")
    (record,) = TrialRunner(tmp_path, FastEngine(), memory=1000 * GIB).run([(cell, Trial(0, 0))])
    assert record["status"] == "done"


def test_a_cluster_has_limits_of_its_own(tmp_path: Path) -> None:
    request = RunRequest(grid=named_grid("quick"), workspace=tmp_path, executor="dask", memory="4GiB")
    with pytest.raises(UserError, match="leave --memory out"):
        request.check()


def test_trials_that_fit_train_side_by_side(problem: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_CLAIMS", Claims(1000 * GIB, multiprocessing.get_context("spawn")))
    with room_for(problem("none"), 1000 * GIB, "fast"), room_for(replace(problem("none")), 1000 * GIB, "fast"):
        assert memory._CLAIMS is not None
        assert memory._CLAIMS.training.value == 2
