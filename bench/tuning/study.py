"""A study: a budget of numbered turns, each taken by one process and resulting in a stored trial.

A method has one study per fold, which sees nothing of the other folds, or (pooled) a single study for all folds. Turn 0
uses the method's defaults; the seed of later turns depends only on the study's name and the turn. A trial keeps its
turn once it has ended, in whatever way; the turn of a process that died becomes available again.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Any

import optuna
import psutil
from optuna.trial import FrozenTrial, TrialState

from bench.plan.cells import PARTS, Cell, Trial
from bench.registry import UserError
from bench.seeding import seed_from
from bench.tuning.space import Space
from bench.tuning.storage import Storage
from bench.tuning.strategies import GivenValues, make_pruner, make_sampler

FACTS, TRIALS = "augbench", "trials"  # of a study: what it was made with, and its number of trials
TURN, ALIVE, REASON = (
    "augbench",
    "alive",
    "reason",
)  # of a trial: turn, owner and settings; time of the last heartbeat; why it ended
SILENT_SECONDS = 600.0  # after so long without a heartbeat, a process on another machine is considered dead
Turns = Mapping[int, FrozenTrial]


@dataclass(frozen=True)
class Search:
    """How studies are searched; nothing here affects the value of a trial."""

    trials: int
    sampler: str = "tpe"
    pruner: str = "median"
    seed: int = 0


@dataclass(frozen=True)
class Extent:
    """What each trial of a study is trained and scored on: label draws of one fold, or of all folds."""

    folds: tuple[int, ...]
    repeats: int
    pooled: bool = False

    @property
    def fold(self) -> int | None:
        """The fold that the settings are for; None if they are for all folds."""
        return None if self.pooled else self.folds[0]

    def steps(self) -> list[Trial]:
        """The trainings of one trial, in the order in which they are reported to a pruner."""
        return [Trial(fold, repeat) for repeat in range(self.repeats) for fold in self.folds]

    def to_json(self) -> dict[str, Any]:
        what = {"how": "pooled", "folds": len(self.folds)} if self.pooled else {"how": "nested", "fold": self.fold}
        return {**what, "repeats": self.repeats}


def extents(folds: int, repeats: int, pooled: bool) -> list[Extent]:
    """The studies of one method; together, one trial of each covers every fold and label draw."""
    if pooled:
        return [Extent(tuple(range(folds)), repeats, pooled=True)]
    return [Extent((fold,), repeats) for fold in range(folds)]


@dataclass(frozen=True)
class Turn:
    """A trial that this process has taken."""

    trial: optuna.Trial
    number: int
    cell: Cell
    twin: FrozenTrial | None = None  # an earlier trial with the same settings


def study_name(cell: Cell, fold: int | None = None) -> str:
    """The name of the study of an untuned cell."""
    method = f"{cell.label} ({cell.features}, {cell.splits})"
    return method if fold is None else f"{method}, fold {fold}"


def study_facts(cell: Cell, space: Space, validation: str, extent: Extent) -> dict[str, Any]:
    """Everything that a study's values depend on, as it is stored with the study."""
    parts = cell.to_json()
    labels = {part: cell.part_label(part) for part in PARTS}
    facts = {key: parts[key] for key in ("dataset", "features", "splits", "k", "training", "versions")}
    facts |= {**labels, "validation": validation, **extent.to_json(), "space": space.to_json()}
    return json.loads(json.dumps(facts))  # as read from a storage


class MethodStudy:
    """A study of one cell's method, shared by all processes that work on it."""

    def __init__(
        self, storage: Storage, cell: Cell, space: Space, extent: Extent, validation: str, search: Search
    ) -> None:
        self.storage, self.cell, self.space, self.search = storage, cell, space, search
        self.name, self.method, self.fold = study_name(cell, extent.fold), study_name(cell), extent.fold
        self.steps = extent.steps()
        facts = study_facts(cell, space, validation, extent)
        with storage.lock("turns"):
            self.study = storage.new_study(self.name)
            known = self.study.user_attrs
            if FACTS in known:
                check_same(self.name, facts_of(self.study), facts)
            elif self.study.get_trials(deepcopy=False):
                raise UserError(f"the study '{self.name}' was not made by bench tune; choose another --storage")
            else:
                self.study.set_user_attr(FACTS, facts)
            if known.get(TRIALS, 0) < search.trials:
                self.study.set_user_attr(TRIALS, search.trials)
        self.study.pruner = make_pruner(search.pruner)

    def turns(self) -> Turns:
        return turns_of(self.study)

    def take(self) -> Turn | None:
        """Start the next free turn within the budget; None if there is none left for this process."""
        with self.storage.lock("turns"):
            self._release_the_dead()
            taken = turns_of(self.study)
            number = next((n for n in range(self.search.trials) if n not in taken), None)
            if number is None:
                return None
            trial = self._ask(number)
            settings = self.space.settings(trial.params)
            trial.set_user_attr(
                TURN, {"turn": number, "owner": own_identity(), "settings": settings, "at": time.time()}
            )
        # The objective is deterministic, so a repeated proposal need not be run again.
        twin = next((t for t in taken.values() if t.user_attrs[TURN]["settings"] == settings), None)
        return Turn(trial, number, self.space.apply(self.cell, trial.params), twin)

    def _ask(self, number: int) -> optuna.Trial:
        distributions = self.space.distributions()
        if number == 0:
            start = self.space.start()
            self.study.sampler = GivenValues(start)
            return self.study.ask({name: distributions[name] for name in start})
        seed = seed_from("tuning", self.name, self.search.seed, number)
        self.study.sampler = make_sampler(self.search.sampler, seed)
        return self.study.ask(distributions)

    def _release_the_dead(self) -> None:
        """Release the turns of processes that have died. While the lock is held, a trial without an owner is one of
        those.
        """
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            mark = trial.user_attrs.get(TURN)
            if mark is None or not seems_alive(mark["owner"], trial.user_attrs.get(ALIVE, mark["at"])):
                self.study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)

    def sign_of_life(self, turn: Turn) -> None:
        turn.trial.set_user_attr(ALIVE, time.time())

    def report(self, turn: Turn, step: int, accuracy: float) -> bool:
        """Store the accuracy of one training; returns whether to prune the trial. The defaults are never pruned."""
        turn.trial.report(accuracy, step)
        return turn.number > 0 and turn.trial.should_prune()

    def complete(self, turn: Turn, accuracies: Sequence[float]) -> None:
        self.study.tell(turn.trial, fmean(accuracies), skip_if_finished=True)
        self.storage.settle()

    def give_up(self, turn: Turn, reason: str) -> None:
        """End a pruned trial."""
        turn.trial.set_user_attr(REASON, reason)
        self.study.tell(turn.trial, state=TrialState.PRUNED, skip_if_finished=True)
        self.storage.settle()

    def fail(self, turn: Turn, reason: str) -> None:
        """End a trial whose settings cannot be trained; its turn is used up."""
        turn.trial.set_user_attr(REASON, reason)
        self.study.tell(turn.trial, state=TrialState.FAIL, skip_if_finished=True)

    def hand_back(self, turn: Turn) -> None:
        """Leave a trial unfinished; its turn becomes available again."""
        self.study.tell(turn.trial, state=TrialState.FAIL, skip_if_finished=True)

    def repeat_twin(self, turn: Turn) -> None:
        """End a trial with the result of an earlier one with the same settings."""
        twin = turn.twin
        assert twin is not None
        if twin.state == TrialState.COMPLETE:
            for step, value in twin.intermediate_values.items():
                turn.trial.report(value, step)
            turn.trial.set_user_attr(REASON, f"same settings as trial {twin.number}")
            self.study.tell(turn.trial, twin.value, skip_if_finished=True)
        else:
            self.give_up(turn, f"same settings as trial {twin.number}")


def facts_of(study: optuna.Study) -> dict[str, Any]:
    """The facts of a study; studies that do not say how they were made date from when all were pooled."""
    return {"how": "pooled", **study.user_attrs[FACTS]}


def turns_of(study: optuna.Study) -> dict[int, FrozenTrial]:
    """The trials that occupy a turn: those running, those that ended, and those that failed through their own fault."""
    found = {}
    for trial in study.get_trials(deepcopy=False):
        mark = trial.user_attrs.get(TURN)
        failed = trial.state == TrialState.FAIL and REASON not in trial.user_attrs
        if mark is not None and not failed:
            found[int(mark["turn"])] = trial
    return dict(sorted(found.items()))


def ended(turns: Turns) -> list[FrozenTrial]:
    """The trials that have ended, in order."""
    over = [trial for trial in turns.values() if trial.state.is_finished()]
    return sorted(over, key=lambda trial: (str(trial.datetime_complete), trial.number))


def best_of(turns: Turns) -> FrozenTrial | None:
    """The complete trial with the best value; if tied, the earliest turn, so the defaults come first."""
    complete = [(number, trial) for number, trial in turns.items() if trial.state == TrialState.COMPLETE]
    return max(complete, key=lambda item: (item[1].value or 0.0, -item[0]), default=(0, None))[1]


def check_same(name: str, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse to continue a study that was made with different facts."""
    for key, value in wanted.items():
        if stored.get(key) == value:
            continue
        was, now = _difference(stored.get(key), value)
        what = {"space": "search space", "k": "label budget"}.get(key, key)
        raise UserError(
            f"the study '{name}' was made with another {what} ({was}, now {now}); use the same value again, "
            "or choose another --storage"
        )


def _difference(was: Any, now: Any) -> tuple[str, str]:
    """The first value in which two structures differ, in short."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        key = next(key for key in [*was, *now] if was.get(key) != now.get(key))
        inner = _difference(was.get(key), now.get(key))
        return f"{key} {inner[0]}".replace("search ", ""), inner[1]
    return json.dumps(was), json.dumps(now)


@lru_cache(maxsize=1)
def _identity(pid: int) -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": pid, "born": psutil.Process(pid).create_time()}


def own_identity() -> dict[str, Any]:
    """An identifier of this process, so that others can tell whether it is alive."""
    return _identity(os.getpid())


def seems_alive(owner: Mapping[str, Any], last_sign: float) -> bool:
    """Whether a trial's process is alive: according to the system on this machine, and to heartbeats on others."""
    if owner["host"] != socket.gethostname():
        return time.time() - last_sign < SILENT_SECONDS
    try:
        process = psutil.Process(owner["pid"])
        return abs(process.create_time() - owner["born"]) < 2.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
