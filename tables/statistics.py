"""The statistics behind the tables, each a small pure function.

Spread: the sample standard deviation over a cell's trials (ddof = 1; the paper does not say which it prints, and at
30 trials the two differ by 1.7 %). Accuracies come as fractions; nothing here knows of percent.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

DDOF = 1
LEVEL = 0.95
ALPHA = 0.05
TEST_TO_TRAIN = 1 / 9  # ten folds: one part tested, nine not; the correction of Nadeau and Bengio (2003) needs it
_DIGITS = 12  # 0.6 - 0.5 and 0.7 - 0.6 are the same difference, whatever the floating point says


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation of n values; NaN where n is too small for one."""

    mean: float
    std: float
    n: int

    @property
    def standard_error(self) -> float:
        return self.std / math.sqrt(self.n) if self.n else math.nan


def summary(values: Sequence[float] | pd.Series[float]) -> Summary:
    """Mean and spread over trials."""
    numbers = np.asarray(values, dtype=float)
    n = len(numbers)
    return Summary(float(numbers.mean()) if n else math.nan, float(numbers.std(ddof=DDOF)) if n > DDOF else math.nan, n)


@dataclass(frozen=True)
class Paired:
    """A method against a reference on the trials that both have finished."""

    n: int
    mean: float
    low: float
    high: float
    p_wilcoxon: float
    corrected_low: float
    corrected_high: float
    p_corrected: float


def paired(values: pd.Series[float], reference: pd.Series[float], test_to_train: float = TEST_TO_TRAIN) -> Paired:
    """The mean difference with a 95 % t interval, Wilcoxon's p, and the corrected resampled t beside them.

    The plain interval takes trials as independent; folds share training graphs, so the corrected one, whose variance
    is (1/n + test/train) s^2, is wider and the safer of the two.
    """
    if not values.index.equals(reference.index):
        both = values.index.intersection(reference.index)
        values, reference = values.loc[both], reference.loc[both]
    differences = np.round(values.to_numpy(dtype=float) - reference.to_numpy(dtype=float), _DIGITS)
    n = len(differences)
    if n < 2:
        mean = float(differences[0]) if n else math.nan
        return Paired(n, mean, *([math.nan] * 6))
    mean, std = float(differences.mean()), float(differences.std(ddof=1))
    quantile = float(stats.t.ppf((1 + LEVEL) / 2, n - 1))
    plain, corrected = std / math.sqrt(n), std * math.sqrt(1 / n + test_to_train)
    return Paired(
        n,
        mean,
        mean - quantile * plain,
        mean + quantile * plain,
        wilcoxon(differences),
        mean - quantile * corrected,
        mean + quantile * corrected,
        _two_sided(mean, corrected, n - 1),
    )


def _two_sided(mean: float, error: float, freedom: int) -> float:
    if error == 0:  # every difference is the same: no doubt at all, or nothing to doubt
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean) / error, freedom))


def wilcoxon(differences: np.ndarray) -> float:
    """Two-sided signed-rank p; zero differences are dropped, as in Wilcoxon's own treatment; 1 when all are zero."""
    if len(differences) < 2:
        return math.nan
    if not np.any(differences):
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small samples: the p is large, which is all there is to say
        return float(stats.wilcoxon(differences).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment; missing values (NaN) are no tests and stay missing."""
    adjusted = [math.nan] * len(p_values)
    tests = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    running = 0.0
    for done, (p, place) in enumerate(tests):
        running = max(running, min(1.0, (len(tests) - done) * p))
        adjusted[place] = running
    return adjusted


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over blocks (1 is best), Friedman's p, Nemenyi's pairwise p and his critical difference."""

    mean_ranks: pd.Series[float]
    p_friedman: float
    p_pairs: pd.DataFrame
    critical_difference: float
    blocks: tuple[str, ...]
    dropped_blocks: tuple[str, ...]
    dropped_methods: tuple[str, ...]


def ranking(means: pd.DataFrame) -> Ranking | None:
    """Rank methods (columns) within each block (row), ties sharing the mean rank; None where nothing can be ranked.

    A method without any value is left out, then a block in which a remaining method is missing: both are named.
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
    return Ranking(
        ranks.mean().sort_values(kind="stable"),
        friedman,
        pairs,
        critical_difference(methods, blocks),
        tuple(map(str, complete.index)),
        tuple(str(name) for name in means.index if name not in complete.index),
        tuple(str(name) for name in means.columns if name not in complete.columns),
    )


def critical_difference(methods: int, blocks: int, alpha: float = ALPHA) -> float:
    """Nemenyi's: two mean ranks further apart than this differ (Demšar 2006)."""
    quantile = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * blocks))
