"""The statistics behind the tables, as small pure functions; docs/statistics.md gives the reasons.

There is one test: Student's t over the means of the folds. Trials of a fold share test graphs, trials of different
folds hardly share anything, so folds are the independent units; their number determines the degrees of freedom.

Spread is the sample standard deviation over a cell's trials (ddof = 1; the paper does not say which one it prints, and
for 30 trials they differ by 1.7 %). Accuracies are fractions, never percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy import optimize, stats

DDOF = 1
LEVEL = 0.95
ALPHA = 0.05
POWER = 0.8  # for the smallest difference that counts as detectable
REGION = 0.01  # differences up to one point are practically none
FEWEST = 6  # pairs for a test: with five, even five gains of five would not be significant without assuming normality
_DIGITS = 12  # 0.6 - 0.5 and 0.7 - 0.6 are the same difference, in spite of floating point


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation of n values; NaN if n is too small."""

    mean: float
    std: float
    n: int

    @property
    def standard_error(self) -> float:
        return self.std / math.sqrt(self.n) if self.n else math.nan


def summary(values: Sequence[float] | pd.Series[float]) -> Summary:
    """Mean and standard deviation over trials."""
    numbers = np.asarray(values, dtype=float)
    n = len(numbers)
    return Summary(float(numbers.mean()) if n else math.nan, float(numbers.std(ddof=DDOF)) if n > DDOF else math.nan, n)


@dataclass(frozen=True)
class Paired:
    """A method against a reference, on the trials that both have finished."""

    n: int  # number of pairs of trials
    folds: int
    mean: float  # of the folds' mean differences
    low: float
    high: float
    p: float  # NaN with fewer than six pairs
    worse: float = math.nan  # probability that the method is worse by more than one point,
    equal: float = math.nan  # practically equal,
    better: float = math.nan  # better by more than one point
    error: float = math.nan  # standard error of the mean

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval."""
        return (self.high - self.low) / 2

    @property
    def detectable(self) -> float:
        """The smallest true difference that such a run would find significant four times in five."""
        return self.error * detectable_errors(self.folds) if self.folds > 1 else math.nan


def paired(values: pd.Series[float], reference: pd.Series[float]) -> Paired:
    """The mean difference over folds with its 95 % t interval, p-value, and probabilities of worse, equal and better.

    Both series are indexed by fold and repeat. With a single fold, the error is unknown.
    """
    if not values.index.equals(reference.index):
        both = values.index.intersection(reference.index)
        values, reference = values.loc[both], reference.loc[both]
    differences = np.round(values.to_numpy(dtype=float) - reference.to_numpy(dtype=float), _DIGITS)
    means = fold_means(differences, values.index.get_level_values(0).to_numpy())
    n, folds = len(differences), len(means)
    if folds < 2:
        return Paired(n, folds, float(means[0]) if folds else math.nan, *([math.nan] * 3))
    mean, error = float(means.mean()), float(means.std(ddof=1)) / math.sqrt(folds)
    half = float(stats.t.ppf((1 + LEVEL) / 2, folds - 1)) * error
    p = _two_sided(mean, error, folds - 1) if n >= FEWEST else math.nan
    return Paired(n, folds, mean, mean - half, mean + half, p, *three_way(mean, error, folds - 1), error)


def fold_means(differences: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """One mean per fold, in the order of the folds."""
    _, places = np.unique(folds, return_inverse=True)
    return np.round(np.bincount(places, differences) / np.bincount(places), _DIGITS) if len(folds) else differences


def error_over_folds(values: pd.Series[float]) -> tuple[int, float]:
    """The number of folds, and the standard error of the mean of values by fold and repeat."""
    means = fold_means(values.to_numpy(dtype=float), values.index.get_level_values(0).to_numpy())
    folds = len(means)
    return folds, float(means.std(ddof=1)) / math.sqrt(folds) if folds > 1 else math.nan


def interval(mean: float, error: float, folds: int) -> tuple[float, float]:
    """The 95 % t interval of a mean over folds."""
    half = float(stats.t.ppf((1 + LEVEL) / 2, folds - 1)) * error if folds > 1 else math.nan
    return mean - half, mean + half


def stopping_half_width(differences: pd.Series[float]) -> float:
    """The half-width used to decide whether to continue measuring: the wider of the intervals over folds and trials.

    Ten fold means estimate their own spread so roughly that stopping when it looks small would stop too early too
    often. The spread over trials is more stable, and that over folds matters if folds differ (docs/statistics.md).
    """
    values = np.round(differences.to_numpy(dtype=float), _DIGITS)
    folds, error = error_over_folds(differences)
    if folds < 2 or len(values) < FEWEST:
        return math.nan
    over_trials = float(values.std(ddof=1)) / math.sqrt(len(values))
    tails = (1 + LEVEL) / 2
    return max(float(stats.t.ppf(tails, folds - 1)) * error, float(stats.t.ppf(tails, len(values) - 1)) * over_trials)


def _two_sided(mean: float, error: float, freedom: float) -> float:
    if error == 0:  # all differences are equal: either certain, or nothing to test
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean) / error, freedom))


def three_way(mean: float, error: float, freedom: float, region: float = REGION) -> tuple[float, float, float]:
    """Posterior probabilities of worse, practically equal and better, under a flat prior (Benavoli et al. 2017)."""
    if error == 0:
        worse, better = float(mean < -region), float(mean > region)
    else:
        worse = float(stats.t.cdf(-region, freedom, mean, error))
        better = float(stats.t.sf(region, freedom, mean, error))
    return worse, max(0.0, 1 - worse - better), better


@cache
def detectable_errors(folds: float) -> float:
    """The detectable difference in standard errors: where the noncentral t has 80 % power at 5 %.

    One more than the degrees of freedom, which over several datasets are no whole number.
    """
    freedom = folds - 1
    edge = float(stats.t.ppf(1 - ALPHA / 2, freedom))

    def lacking(shift: float) -> float:
        wrong_side = np.nan_to_num(stats.nct.cdf(-edge, freedom, shift))  # too small to compute
        return float(stats.nct.sf(edge, freedom, shift) + wrong_side) - POWER

    return float(optimize.brentq(lacking, 0.1, 4 * edge))


@dataclass(frozen=True)
class Pooled:
    """The differences of one method on several datasets, combined."""

    datasets: int
    mean: float  # over these datasets, with equal weights
    low: float
    high: float
    p: float
    worse: float  # probabilities for the mean over datasets like these
    equal: float
    better: float
    detectable: float = math.nan  # the smallest true mean difference that is found significant four times in five


def pooled(parts: Sequence[Paired]) -> Pooled | None:
    """The mean difference over datasets; None if fewer than two of them have an interval.

    The interval refers to these datasets (Welch-Satterthwaite degrees of freedom). The probabilities refer to datasets
    like these, so they allow for effects that differ between datasets.
    """
    parts = [part for part in parts if part.error >= 0]
    count = len(parts)
    if count < 2:
        return None
    squares = np.array([part.error**2 for part in parts])
    freedoms = np.array([part.folds - 1 for part in parts])
    mean, error = float(np.mean([part.mean for part in parts])), math.sqrt(squares.sum()) / count
    freedom = float(squares.sum() ** 2 / (squares**2 / freedoms).sum()) if error else math.inf
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * error if error else 0.0
    p = _two_sided(mean, error, freedom) if sum(part.n for part in parts) >= FEWEST else math.nan
    least = error * detectable_errors(freedom + 1) if error else math.nan
    return Pooled(count, mean, mean - half, mean + half, p, *over_datasets(parts), least)


def over_datasets(parts: Sequence[Paired], region: float = REGION) -> tuple[float, float, float]:
    """Probabilities of worse, equal and better for the mean over a population of datasets, from a normal hierarchy.

    Effects of datasets are normal around that mean with an unknown spread; each is observed with its own error (a
    normal as wide as its 95 % t interval). Priors are flat on the mean and, up to a quarter, on the spread (Gelman et
    al., ch. 5). The posterior is integrated on a grid.
    """
    means = np.array([part.mean for part in parts])
    freedoms = np.array([part.folds - 1 for part in parts], dtype=float)
    tails = stats.t.ppf((1 + LEVEL) / 2, freedoms) / stats.norm.ppf((1 + LEVEL) / 2)
    variances = np.maximum((np.array([part.error for part in parts]) * tails) ** 2, 1e-12)
    spreads = np.linspace(0, 0.25, 2001)[:, None]
    weights = 1 / (variances + spreads**2)
    around = 1 / weights.sum(axis=1)
    center = (weights * means).sum(axis=1) * around
    logs = 0.5 * (np.log(around) + np.log(weights).sum(axis=1) - (weights * (means - center[:, None]) ** 2).sum(axis=1))
    density = np.exp(logs - logs.max())
    density /= density.sum()
    worse = float(density @ stats.norm.cdf(-region, center, np.sqrt(around)))
    better = float(density @ stats.norm.sf(region, center, np.sqrt(around)))
    return worse, max(0.0, 1 - worse - better), better


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment; missing values (NaN) are not tests and stay missing."""
    adjusted = [math.nan] * len(p_values)
    tests = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    running = 0.0
    for done, (p, place) in enumerate(tests):
        running = max(running, min(1.0, (len(tests) - done) * p))
        adjusted[place] = running
    return adjusted


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over blocks (1 is best) with bootstrap intervals, and the tests of Friedman and Nemenyi.

    `top` are the methods that cannot be distinguished from the one with the best mean rank.
    """

    mean_ranks: pd.Series[float]
    intervals: pd.DataFrame  # by method: low, high
    top: tuple[str, ...]
    p_friedman: float
    p_pairs: pd.DataFrame
    critical_difference: float
    blocks: tuple[str, ...]
    dropped_blocks: tuple[str, ...]
    dropped_methods: tuple[str, ...]


def ranking(means: pd.DataFrame) -> Ranking | None:
    """Rank methods (columns) within each block (row), with mean ranks for ties; None if nothing can be ranked.

    Methods without any value are left out, then blocks in which a remaining method is missing; both are reported.
    """
    with_values = means.dropna(axis="columns", how="all")
    complete = with_values.dropna(axis="index").round(_DIGITS)
    blocks, methods = complete.shape
    if blocks < 2 or methods < 2:
        return None
    ranks = complete.rank(axis="columns", ascending=False, method="average")
    from scikit_posthocs import posthoc_nemenyi_friedman

    pairs = posthoc_nemenyi_friedman(complete.to_numpy())
    pairs.index = pairs.columns = complete.columns
    friedman = math.nan
    if methods > 2:  # the test is defined for three or more
        equal = bool((ranks.nunique(axis="columns") == 1).all())
        friedman = 1.0 if equal else float(stats.friedmanchisquare(*complete.to_numpy().T).pvalue)
    mean_ranks = ranks.mean().sort_values(kind="stable")
    return Ranking(
        mean_ranks,
        *_bootstrap(ranks[mean_ranks.index]),
        friedman,
        pairs,
        critical_difference(methods, blocks),
        tuple(map(str, complete.index)),
        tuple(str(name) for name in means.index if name not in complete.index),
        tuple(str(name) for name in means.columns if name not in complete.columns),
    )


def critical_difference(methods: int, blocks: int, alpha: float = ALPHA) -> float:
    """Nemenyi's critical difference: the smallest significant distance of two mean ranks (Demšar 2006)."""
    quantile = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * blocks))


RESAMPLES = 4000


def _bootstrap(ranks: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """95 % percentile intervals of the mean ranks over resampled blocks, and the group tied for the top.

    A method is tied with the best unless the interval of the difference of their mean ranks is above zero; with fewer
    than six blocks, nothing can be distinguished from the best.
    """
    blocks, methods = ranks.shape
    draws = np.random.default_rng(0).integers(blocks, size=(RESAMPLES, blocks))
    found = ranks.to_numpy()[draws].mean(axis=1)
    edges = [100 * (1 - LEVEL) / 2, 100 * (1 + LEVEL) / 2]
    low, high = np.percentile(found, edges, axis=0)
    behind = np.percentile(found - found[:, :1], edges[0], axis=0)
    top = [place for place in range(methods) if blocks < FEWEST or behind[place] <= 0]
    names = [str(name) for name in ranks.columns]
    return pd.DataFrame({"low": low, "high": high}, index=ranks.columns), tuple(names[place] for place in top)
