"""Stored studies as plain data, for the status, the mirror and the figures."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState

from bench.registry import show
from bench.tuning.storage import Storage
from bench.tuning.study import FACTS, REASON, TRIALS, TURN, best_of, ended, facts_of, turns_of

STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "given up", TrialState.FAIL: "failed"}
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class TrialFacts:
    """One trial that has ended."""

    number: int
    turn: int
    state: str
    value: float | None  # mean over all trainings; None unless complete
    accuracies: tuple[float, ...]  # of each training
    settings: dict[str, Any]
    seconds: float
    reason: str


@dataclass(frozen=True)
class StudyFacts:
    """A summary of a study; `wanted` is its planned number of trials, `default` the value of the first one."""

    name: str
    fold: int | None  # the fold that its settings are for; None if pooled
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
        """The best value after each trial, in the order in which they ended; NaN before the first complete one."""
        best, points = math.nan, []
        for trial in self.trials:
            if trial.value is not None and not trial.value <= best:
                best = trial.value
            points.append(best)
        return points


@dataclass(frozen=True)
class MethodFacts:
    """The studies of a method: one per fold, or a single pooled one. Values are means over the studies."""

    name: str
    how: str
    studies: tuple[StudyFacts, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """What all of its studies were made with."""
        return {name: value for name, value in self.studies[0].facts.items() if name != "fold"}

    @property
    def done(self) -> int:
        return sum(len(study.trials) for study in self.studies)

    @property
    def wanted(self) -> int:
        return sum(study.wanted for study in self.studies)

    @property
    def running(self) -> int:
        return sum(study.running for study in self.studies)

    @property
    def ready(self) -> int:
        """How many studies have all their trials and at least one complete one."""
        return sum(len(study.trials) >= study.wanted and study.best is not None for study in self.studies)

    @property
    def seconds(self) -> float:
        return sum(study.seconds for study in self.studies)

    @property
    def default(self) -> float | None:
        return _mean([study.default for study in self.studies])

    @property
    def best(self) -> float | None:
        return _mean([None if study.best is None else study.best.value for study in self.studies])

    def count(self, state: str) -> int:
        return sum(study.count(state) for study in self.studies)

    def curve(self) -> list[float]:
        """The best value after each trial; a shorter study counts with its last value, with NaN before its first."""
        curves = [study.curve() for study in self.studies]
        length = max(map(len, curves), default=0)
        if not all(curves):
            return [math.nan] * length
        return [fmean(curve[min(place, len(curve) - 1)] for curve in curves) for place in range(length)]

    def spread(self) -> dict[str, str]:
        """The best settings that differ from the defaults: a single value, the ends of a range, or the choices."""
        chosen = [study.best.settings for study in self.studies if study.best is not None and study.best.turn > 0]
        found = {}
        for name in dict.fromkeys(name for settings in chosen for name in settings):
            values = [settings[name] for settings in chosen if name in settings]
            numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
            ends = [min(values), max(values)] if numbers else sorted(set(values), key=str)
            glue = " to " if numbers else " or "
            found[name] = glue.join(dict.fromkeys(show(value) for value in ends))
        return found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def studies_in(storage: Storage) -> list[StudyFacts]:
    """All our studies, by name."""
    studies = [storage.study(name) for name in storage.names()]
    return [summarize(study) for study in studies if FACTS in study.user_attrs]


def methods_of(studies: Iterable[StudyFacts]) -> list[MethodFacts]:
    """Group studies that differ only in their fold."""
    found: dict[tuple[str, str], list[StudyFacts]] = {}
    for study in studies:
        name = study.name if study.fold is None else study.name.removesuffix(f", fold {study.fold}")
        found.setdefault((name, study.facts["how"]), []).append(study)
    return [MethodFacts(*key, tuple(sorted(held, key=lambda study: study.fold or 0))) for key, held in found.items()]


def summarize(study: optuna.Study) -> StudyFacts:
    """Summarize a study."""
    turns, known, facts = turns_of(study), study.user_attrs, facts_of(study)
    best, first = best_of(turns), turns.get(0)
    over = ended(turns)
    complete = first is not None and first.state == TrialState.COMPLETE
    return StudyFacts(
        name=study.study_name,
        fold=facts.get("fold"),
        facts=facts,
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
        accuracies=tuple(value for _, value in sorted(trial.intermediate_values.items())),
        settings=trial.user_attrs[TURN]["settings"],
        seconds=(span[0] - span[1]).total_seconds() if span[0] and span[1] else 0.0,
        reason=str(trial.user_attrs.get(REASON, "")),
    )


def importances(study: optuna.Study) -> dict[str, float]:
    """The importance of each setting (PED-ANOVA, shares of 1); empty if there are too few trials."""
    values = {t.value for t in turns_of(study).values() if t.state == TrialState.COMPLETE}
    if len(values) < 3:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())


def spark(curve: Sequence[float], width: int = 24) -> str:
    """A curve as a line of text, scaled from its lowest to its highest value."""
    points = [value for value in curve if not math.isnan(value)]
    if not points:
        return ""
    if len(points) > width:
        points = [points[round(i * (len(points) - 1) / (width - 1))] for i in range(width)]
    low, high = min(points), max(points)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in points)
