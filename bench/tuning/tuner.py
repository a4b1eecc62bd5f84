"""The driver of a search: takes turns from the studies, sends folds to workers, and reports the results.

At most one trial of each study is in progress, so that a study's sequence does not depend on the number of workers.
Idle workers score further folds of the same trials before the pruner has decided.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError

from bench.execution.driver import Clock
from bench.execution.pool import Pool
from bench.execution.suspects import Dispatcher, Failure
from bench.execution.worker import WorkerSettings
from bench.plan.cells import Trial
from bench.plan.identity import DEFAULT_ENGINE
from bench.tuning.objective import Score, score
from bench.tuning.study import MethodStudy, Turn

HERE = WorkerSettings(None, DEFAULT_ENGINE)
SIGN_EVERY = 30.0  # seconds between heartbeats


class Watcher(Protocol):
    """Is notified when a trial has ended."""

    def finished(self, study: MethodStudy, turn: Turn) -> None: ...


@dataclass
class Underway:
    """A trial between its first and its last fold."""

    study: MethodStudy
    turn: Turn
    ahead: list[Trial]  # folds that have not been sent to a worker; the next one is last
    scores: dict[Trial, Score] = field(default_factory=dict)
    accuracies: list[float] = field(default_factory=list)
    waiting: int = 0
    over: bool = False


Fold = tuple[Underway, Trial]


@dataclass
class Tuner:
    """Runs several studies until their budgets or the time are used up."""

    studies: Sequence[MethodStudy]
    validation: str
    pool: Pool
    clock: Clock
    watchers: Sequence[Watcher] = ()
    deadline: float | None = None  # on the monotonic clock; trials in progress are finished
    settings: WorkerSettings = HERE
    _underway: list[Underway] = field(default_factory=list)
    _reached: dict[str, int] = field(default_factory=dict)  # the turn that each unfinished study has reached
    _signed: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Run until nothing is left to do. On interruption, trials in progress are handed back."""
        try:
            self._reached = {study.name: len(study.turns()) for study in self.studies}
            folds: Dispatcher[Fold] = Dispatcher(self.pool, self._call)
            while self._open():
                folds.forget(lambda fold: fold[0].over)
                folds.fill(self._next, self.pool.size)
                for fold, answer in folds.wait(SIGN_EVERY):
                    self._collect(fold, answer)
                self._give_sign()
        finally:
            self.pool.close()
            # If the storage is unreachable, turns are released once this process has ended: see `_release_the_dead`.
            with suppress(StorageInternalError):
                for one in self._underway:
                    one.study.hand_back(one.turn)

    def _open(self) -> bool:
        """Start trials while workers are available, first in the study that is furthest behind; False at the end."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return bool(self._underway)
        busy = {one.study.name for one in self._underway}
        idle = [study for study in self.studies if study.name in self._reached and study.name not in busy]
        for study in sorted(idle, key=lambda study: self._reached[study.name]):
            if len(self._underway) < self.pool.size:
                self._begin(study)
        return bool(self._underway or self._reached)

    def _begin(self, study: MethodStudy) -> None:
        with self.clock.on("Optuna"):
            turn = study.take()
        if turn is None:
            del self._reached[study.name]
            return
        self._reached[study.name] = turn.number + 1
        if turn.twin is None:
            self._underway.append(Underway(study, turn, list(reversed(study.steps))))
            return
        with self.clock.on("Optuna"):
            study.repeat_twin(turn)
        self._tell(study, turn)

    def _next(self) -> Fold | None:
        """A fold for an idle worker; folds that are due come before those scored ahead."""
        ready = [one for one in self._underway if one.ahead]
        if not ready:
            return None
        one = min(ready, key=lambda candidate: candidate.waiting)
        one.waiting += 1
        return one, one.ahead.pop()

    def _call(self, fold: Fold) -> tuple[Any, ...]:
        return score, self.settings, self._work(*fold)

    def _work(self, one: Underway, step: Trial) -> dict[str, Any]:
        cell = one.turn.cell.to_json()
        return {"cell": cell, "fold": step.fold, "repeat": step.repeat, "validation": self.validation}

    def _collect(self, fold: Fold, answer: Score | Failure) -> None:
        one, step = fold
        one.waiting -= 1
        if not one.over:  # otherwise it was scored ahead for a trial that has been pruned
            one.scores[step] = {"status": "failed", "reason": answer.reason} if isinstance(answer, Failure) else answer
            self._advance(one)

    def _advance(self, one: Underway) -> None:
        """Report folds in order, whatever order they arrived in, until the trial ends or a fold is missing."""
        try:
            with self.clock.on("Optuna"):
                while not one.over and one.study.steps[len(one.accuracies)] in one.scores:
                    self._account(one, one.scores[one.study.steps[len(one.accuracies)]])
        except UpdateFinishedTrialError:
            # This process was silent for so long that another one considered it dead and took its turn.
            one.over = True
            self._underway.remove(one)
            return
        if one.over:
            self._underway.remove(one)
            self._tell(one.study, one.turn)

    def _account(self, one: Underway, score: Score) -> None:
        """Process the result of one fold."""
        study, turn, place = one.study, one.turn, len(one.accuracies)
        one.over = True
        if score["status"] == "failed":
            study.fail(turn, score["reason"])
            return
        accuracy = score.get("accuracy", 0.0)  # a diverged training classifies nothing correctly
        one.accuracies.append(accuracy)
        hopeless = study.report(turn, place, accuracy)
        if score["status"] == "diverged":
            study.give_up(turn, score["reason"])
        elif len(one.accuracies) == len(study.steps):
            study.complete(turn, one.accuracies)
        elif hopeless:
            study.give_up(turn, f"below the others after {place + 1} trainings")
        else:
            one.over = False

    def _tell(self, study: MethodStudy, turn: Turn) -> None:
        for watcher in self.watchers:
            watcher.finished(study, turn)

    def _give_sign(self) -> None:
        if time.monotonic() - self._signed > SIGN_EVERY:
            self._signed = time.monotonic()
            with self.clock.on("Optuna"):
                for one in self._underway:
                    with suppress(UpdateFinishedTrialError):  # reported when its next fold arrives
                        one.study.sign_of_life(one.turn)
