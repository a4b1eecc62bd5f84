"""What a dead worker means: who runs again, who runs alone, and who is a failure."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.execution.containment import TaskFailed
from bench.execution.pool import EXECUTORS, Pool, PoolSetup, WorkerLost
from bench.execution.suspects import Dispatcher, Failure
from bench.execution.worker import WorkerSettings
from bench.registry import UserError


class Scripted(Pool):
    """Answers when it is told to; `script` says what becomes of a piece of work, given how often it was sent."""

    def __init__(self, script: Callable[[str, int], Any], size: int = 2) -> None:
        self.script, self._size = script, size
        self.log: list[list[str]] = []  # what was under way whenever something was sent
        self.underway: dict[str, Future[Any]] = {}
        self.times: dict[str, int] = {}

    @property
    def size(self) -> int:
        return self._size

    def submit(self, function: Callable[..., Any], *payload: Any) -> Future[Any]:
        (work,) = payload
        self.times[work] = self.times.get(work, 0) + 1
        self.underway[work] = Future()
        self.log.append(sorted(self.underway))
        return self.underway[work]

    def answer(self) -> None:
        for work, future in list(self.underway.items()):
            del self.underway[work]
            found = self.script(work, self.times[work])
            if isinstance(found, Exception):
                future.set_exception(found)
            else:
                future.set_result(found)

    def close(self) -> None: ...


def outcomes(pool: Scripted, works: list[str]) -> dict[str, Any]:
    dispatcher: Dispatcher[str] = Dispatcher(
        pool, lambda work: (print, work), lambda work: work.split("+") if "+" in work else [work]
    )
    waiting, found = list(works), {}
    while True:
        dispatcher.fill(lambda: waiting.pop(0) if waiting else None, pool.size)
        if dispatcher.idle:
            return found
        pool.answer()
        for work, outcome in dispatcher.wait():
            assert work not in found, "told twice"
            found[work] = outcome


def test_what_was_in_flight_when_a_worker_died_runs_again_alone_at_the_end() -> None:
    pool = Scripted(lambda work, times: WorkerLost("died") if work in "ab" and times == 1 else work.upper())
    assert outcomes(pool, ["a", "b", "c", "d"]) == {"a": "A", "b": "B", "c": "C", "d": "D"}
    assert pool.log[-2:] == [["a"], ["b"]] and pool.times == {"a": 2, "b": 2, "c": 1, "d": 1}


def test_only_what_dies_alone_twice_is_a_failure() -> None:
    pool = Scripted(lambda work, times: WorkerLost("died") if work == "a" or times == 1 else work)
    found = outcomes(pool, ["a", "b", "c"])
    assert found["a"] == Failure("died, 2 times in a row with no other trial beside it")
    assert found["b"] == "b" and found["c"] == "c" and pool.times["a"] == 3


def test_one_that_dies_alone_by_chance_gets_another_try() -> None:
    pool = Scripted(lambda work, times: WorkerLost("died") if times < 3 else work)
    assert outcomes(pool, ["a"]) == {"a": "a"}


def test_a_pool_that_has_tried_several_times_itself_is_believed() -> None:
    pool = Scripted(lambda work, times: WorkerLost("died", deaths=4))
    assert isinstance(outcomes(pool, ["a"])["a"], Failure) and pool.times == {"a": 2}


def test_a_bundle_is_taken_apart_to_find_the_culprit() -> None:
    def script(work: str, times: int) -> Any:
        return TaskFailed("took longer") if "b" in work else WorkerLost("died") if "d" in work else work

    pool = Scripted(script)
    found = outcomes(pool, ["a+b", "c+d"])
    assert (found["a"], found["c"]) == ("a", "c")
    assert found["b"] == Failure("took longer") and found["d"].reason.startswith("died, 2 times")


def test_nothing_is_sent_beside_a_suspect_and_the_unwanted_are_dropped() -> None:
    pool = Scripted(lambda work, times: WorkerLost("died"))
    dispatcher: Dispatcher[str] = Dispatcher(pool, lambda work: (print, work))
    dispatcher.fill(iter("ab").__next__, 1)
    pool.answer()
    assert dispatcher.wait() == []
    dispatcher.fill(lambda: None, 2)
    dispatcher.fill(lambda: pytest.fail("sent beside a suspect"), 2)
    assert list(pool.underway) == ["a"]
    pool.answer()
    dispatcher.wait()
    dispatcher.forget(lambda work: work == "a")
    assert dispatcher.idle


def test_a_pool_that_cannot_go_on_ends_everything() -> None:
    with pytest.raises(UserError, match="no more"):
        outcomes(Scripted(lambda work, times: UserError("no more")), ["a"])


def test_executors_are_plug_ins() -> None:
    assert {"local", "dask", "serial"} <= set(EXECUTORS.names())
    assert EXECUTORS.load("bench.execution.local:LocalPool") is EXECUTORS.load("local")  # anybody's, by its path
    with pytest.raises(UserError, match=r"is not a subclass of bench\.execution\.pool:Pool"):
        EXECUTORS.load("bench.execution.pool:PoolSetup")
    with pytest.raises(UserError, match="unknown executor 'lsf'"):
        EXECUTORS.load("lsf")
    for name in ("local", "serial"):
        pool = EXECUTORS.load(name)(PoolSetup(WorkerSettings(None, "fast"), 3))
        assert pool.size == (3 if name == "local" else 1)
        pool.close()


def test_the_executor_of_the_docs_runs_a_grid(
    workspace: Callable[..., Path], tools: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (tools.ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    code = page.partition("## An executor of your own")[2].partition("```python\n")[2].partition("```")[0]
    (tmp_path / "threads_of_the_docs.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    folder = workspace()
    assert tools.run(tools.grid(["none"]), folder, executor="threads_of_the_docs:Threads", jobs=2)[0] == 0
    assert len(tools.results(folder)) == 2
