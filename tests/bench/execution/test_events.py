"""Events: who is told what, in which order, and what a listener that fails costs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import api
from bench.execution.events import Clock, Done, Finished, Listeners, Notice, Planned, Started
from bench.execution.request import RunRequest
from bench.registry import UserError
from bench.results.ledger import read_records
from bench.results.records import TrialRecord
from bench.results.workspace import Workspace

Make = Callable[..., Path]


def request(folder: Path, tools: ModuleType, **options: Any) -> RunRequest:
    return RunRequest(tools.grid(["none", "duplicate"]), folder, data=folder.parent / "data", executor="serial")


def test_a_run_tells_its_listeners_and_returns_what_happened(
    workspace: Make, tools: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, events = workspace(), []

    def listen(event: Any) -> None:
        if isinstance(event, Finished):  # on disk before anybody hears of it
            on_disk = [record for record in read_records(Workspace(folder).ledger) if isinstance(record, TrialRecord)]
            assert on_disk[-1] == event.record
        events.append(event)

    outcome = api.run(request(folder, tools), [listen])
    assert [type(event) for event in events if not isinstance(event, Started)] == [Planned, *4 * [Finished], Done]
    assert sum(isinstance(event, Started) for event in events) == 4
    assert len(events[0].jobs) == 4 and events[0].plan == outcome.plan
    assert (outcome.ran, outcome.left, outcome.interrupted, outcome.failures) == (4, 0, False, [])
    assert outcome.training > 0 and {"planning", "ledger", "MLflow"} <= set(outcome.seconds)
    assert len(outcome.state.done(outcome.plan.cells[0].key)) == 2
    assert capfd.readouterr().out == ""


def test_a_listener_that_fails_costs_one_notice_and_no_trial(workspace: Make, tools: ModuleType) -> None:
    folder, notices, heard = workspace(), [], []

    def broken(event: Any) -> None:
        heard.append(event)
        raise RuntimeError("boom")

    outcome = api.run(request(folder, tools), [broken, lambda event: notices.append(event)])
    assert outcome.ran == 4 and outcome.left == 0
    assert len(heard) == 1, "asked no more"
    (said,) = [event.text for event in notices if isinstance(event, Notice)]
    assert "RuntimeError: boom" in said and "no trial is lost" in said


def test_a_tracking_store_that_hangs_or_fails_holds_nothing_up(
    workspace: Make, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the old code the driver waited for MLflow after each cell, and an error of its own ended the run."""
    go, folder, events = threading.Event(), workspace(), []

    def stuck(*_: Any) -> bool:
        assert go.wait(60)
        raise KeyError("something that nobody expected of MLflow")

    def listen(event: Any) -> None:
        events.append(event)
        if isinstance(event, Done):
            go.set()  # everything ran while MLflow was stuck with the first cell

    monkeypatch.setattr("bench.tracking.cells.Mirror.write_cell", stuck)
    outcome = api.run(request(folder, tools), [listen])
    assert outcome.ran == 4 and len(tools.results(folder)) == 4
    assert any(isinstance(event, Notice) and "MLflow failed" in event.text for event in events)


def test_a_ledger_that_cannot_be_written_ends_the_run(
    workspace: Make, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise UserError("cannot write: no space left")

    monkeypatch.setattr("bench.results.ledger.Ledger.append", full)
    with pytest.raises(UserError, match="no space left"):
        api.run(request(workspace(), tools))


def test_a_listener_beside_is_waited_for_or_left_at_what_it_is_at() -> None:
    for wait in (True, False):
        heard: list[Any] = []

        def slow(event: Any, heard: list[Any] = heard) -> None:
            time.sleep(0.05)
            heard.append(event)

        listeners = Listeners(Clock())
        listeners.add_beside(slow, "slow")
        for number in range(5):
            listeners.emit(number)
        listeners.close(wait)
        assert heard == [0, 1, 2, 3, 4] if wait else len(heard) < 5
        assert not wait or listeners.clock.seconds["slow"] >= 5 * 0.05
