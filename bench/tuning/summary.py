"""What a stored study says, as plain data: for the status, the mirror and the figures."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState

from bench.tuning.storage import Storage
from bench.tuning.study import FACTS, REASON, TRIALS, TURN, best_of, ended, turns_of

STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "given up", TrialState.FAIL: "failed"}
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class TrialFacts:
    """One trial that is over."""

    number: int
    turn: int
    state: str
    value: float | None  # mean over all folds; none unless complete
    folds: tuple[float, ...]
    settings: dict[str, Any]
    seconds: float
    reason: str


@dataclass(frozen=True)
class StudyFacts:
    """A study in sum; `wanted` is the number of trials it is to have, `default` the value of the first one."""

    name: str
    facts: dict[str, Any]
    wanted: int
    running: int
    trials: tuple[TrialFacts, ...]
    best: TrialFacts | None
    default: float | None

    def count(self, state: str) -> int:
        return sum(trial.state == state for trial in self.trials)

    @property
    def seconds(self) -> float:
        return sum(trial.seconds for trial in self.trials)

    def curve(self) -> list[float]:
        """The best value after each trial, in the order in which they ended; nan before the first complete one."""
        best, points = math.nan, []
        for trial in self.trials:
            if trial.value is not None and not trial.value <= best:
                best = trial.value
            points.append(best)
        return points


def studies_in(storage: Storage) -> list[StudyFacts]:
    """Every study of ours, by name."""
    studies = [storage.study(name) for name in storage.names()]
    return [summarise(study) for study in studies if FACTS in study.user_attrs]


def summarise(study: optuna.Study) -> StudyFacts:
    """Read a study."""
    turns, known = turns_of(study), study.user_attrs
    best, first = best_of(turns), turns.get(0)
    over = ended(turns)
    complete = first is not None and first.state == TrialState.COMPLETE
    return StudyFacts(
        name=study.study_name,
        facts=known[FACTS],
        wanted=int(known.get(TRIALS, 0)),
        running=len(turns) - len(over),
        trials=tuple(trial_facts(trial) for trial in over),
        best=None if best is None else trial_facts(best),
        default=first.value if complete and first is not None else None,
    )


def trial_facts(trial: FrozenTrial) -> TrialFacts:
    span = (trial.datetime_complete, trial.datetime_start)
    return TrialFacts(
        number=trial.number,
        turn=int(trial.user_attrs[TURN]["turn"]),
        state=STATES[trial.state],
        value=trial.value if trial.state == TrialState.COMPLETE else None,
        folds=tuple(value for _, value in sorted(trial.intermediate_values.items())),
        settings=trial.user_attrs[TURN]["settings"],
        seconds=(span[0] - span[1]).total_seconds() if span[0] and span[1] else 0.0,
        reason=str(trial.user_attrs.get(REASON, "")),
    )


def importances(study: optuna.Study) -> dict[str, float]:
    """How much each setting decides the value (PED-ANOVA, shares of 1); empty while there is too little to tell."""
    values = {t.value for t in turns_of(study).values() if t.state == TrialState.COMPLETE}
    if len(values) < 3:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())


def spark(curve: Sequence[float], width: int = 24) -> str:
    """A curve in a line of text, from its lowest value to its highest."""
    points = [value for value in curve if not math.isnan(value)]
    if not points:
        return ""
    if len(points) > width:
        points = [points[round(i * (len(points) - 1) / (width - 1))] for i in range(width)]
    low, high = min(points), max(points)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in points)
