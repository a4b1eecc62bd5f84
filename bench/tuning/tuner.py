"""The driver: takes turns from the studies, sends folds to workers, reports what comes back.

It has one trial of each study under way at most, so that a study's sequence is the same with any number of workers.
Workers that are left over score further folds of the same trials ahead of the pruner's word.
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
SIGN_EVERY = 30.0  # seconds between signs of life


class Watcher(Protocol):
    """Who is told when a trial is over."""

    def finished(self, study: MethodStudy, turn: Turn) -> None: ...


@dataclass
class Underway:
    """A trial between its first and its last fold."""

    study: MethodStudy
    turn: Turn
    ahead: list[Trial]  # folds that no worker has yet, the next one last
    scores: dict[Trial, Score] = field(default_factory=dict)
    accuracies: list[float] = field(default_factory=list)
    waiting: int = 0
    over: bool = False


Fold = tuple[Underway, Trial]


@dataclass
class Tuner:
    """Runs several studies to the end of their budgets, or of the time."""

    studies: Sequence[MethodStudy]
    validation: str
    pool: Pool
    clock: Clock
    watchers: Sequence[Watcher] = ()
    deadline: float | None = None  # on the monotonic clock; what is under way then is finished
    settings: WorkerSettings = HERE
    _underway: list[Underway] = field(default_factory=list)
    _reached: dict[str, int] = field(default_factory=dict)  # turns of each study that is not at its end
    _signed: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Until nothing is left to do. What is under way when this is interrupted is handed back."""
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
            # A storage that is gone learns of the free turns when this process is: see `_release_the_dead`.
            with suppress(StorageInternalError):
                for one in self._underway:
                    one.study.hand_back(one.turn)

    def _open(self) -> bool:
        """Begin trials while there are workers for them, first in the study that is least far; False at the end."""
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
        """A fold for a free worker; a trial that waits for nothing comes before one that runs ahead."""
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
        if not one.over:  # else it was scored ahead of a trial that was given up meanwhile
            one.scores[step] = {"status": "failed", "reason": answer.reason} if isinstance(answer, Failure) else answer
            self._advance(one)

    def _advance(self, one: Underway) -> None:
        """Report folds in their order, whatever order they came in, until the trial is over or a fold is missing."""
        try:
            with self.clock.on("Optuna"):
                while not one.over and one.study.steps[len(one.accuracies)] in one.scores:
                    self._account(one, one.scores[one.study.steps[len(one.accuracies)]])
        except UpdateFinishedTrialError:
            # This process was silent for so long that another one took it for dead and gave its turn away.
            one.over = True
            self._underway.remove(one)
            return
        if one.over:
            self._underway.remove(one)
            self._tell(one.study, one.turn)

    def _account(self, one: Underway, score: Score) -> None:
        """What one more fold means for its trial."""
        study, turn, place = one.study, one.turn, len(one.accuracies)
        one.over = True
        if score["status"] == "failed":
            study.fail(turn, score["reason"])
            return
        accuracy = score.get("accuracy", 0.0)  # a diverged training classifies nothing
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
                    with suppress(UpdateFinishedTrialError):  # told when its next fold comes
                        one.study.sign_of_life(one.turn)
