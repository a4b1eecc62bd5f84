"""How settings are proposed (samplers) and when a trial is pruned (pruners)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, NopPruner, WilcoxonPruner
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from bench.registry import Scalar, unknown

SAMPLERS = ("tpe", "gp", "random")
PRUNERS = ("median", "wilcoxon", "none")
STARTUP_TRIALS = 5  # complete trials required before pruning
FIRST_FOLDS = 3  # folds required before a trial is pruned


def make_sampler(name: str, seed: int) -> BaseSampler:
    """A sampler by name. Our samplers are created anew for each trial, so a resumed search draws the same values."""
    seed %= 2**32
    if name == "tpe":
        return TPESampler(seed=seed, multivariate=True, constant_liar=True)
    if name == "gp":
        return GPSampler(seed=seed, warn_independent_sampling=False)
    if name == "random":
        return RandomSampler(seed=seed)
    raise unknown("sampler", name, SAMPLERS)


def make_pruner(name: str) -> BasePruner:
    """A pruner by name; all of them use the accuracy of each fold."""
    if name == "median":
        return MedianOfFolds()
    if name == "wilcoxon":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return WilcoxonPruner(n_startup_steps=FIRST_FOLDS)
    if name == "none":
        return NopPruner()
    raise unknown("pruner", name, PRUNERS)


class GivenValues(BaseSampler):
    """Proposes given values: the method's defaults, for the first trial."""

    def __init__(self, values: Mapping[str, Scalar]) -> None:
        self.values = values

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self.values[param_name]


class MedianOfFolds(BasePruner):
    """Prunes a trial if its mean over the folds so far is below the median of complete trials on the same folds.

    Optuna's median pruner uses a trial's best report; folds differ so much in difficulty that an easy first fold would
    protect every trial.
    """

    def __init__(self, startup_trials: int = STARTUP_TRIALS, first_folds: int = FIRST_FOLDS) -> None:
        self.startup_trials, self.first_folds = startup_trials, first_folds

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        own = {step: value for step, value in trial.intermediate_values.items() if not math.isnan(value)}
        if len(own) < self.first_folds:
            return False
        others = [
            fmean(other.intermediate_values[step] for step in own)
            for other in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if own.keys() <= other.intermediate_values.keys()
        ]
        return len(others) >= self.startup_trials and fmean(own.values()) < median(others)
