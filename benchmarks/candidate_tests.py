"""Candidate tests of a paired difference for the tables, each vectorized over many simulated experiments.

An experiment is a matrix of paired differences, folds by label draws. Each test takes a stack of them (the first axis)
and returns two-sided p-values and half-widths of 95 % intervals (NaN if a test has none).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from scipy import stats

Found = tuple[np.ndarray, np.ndarray]
Candidate = Callable[[np.ndarray], Found]
TEST_TO_TRAIN = 1 / 9
BOOTSTRAPS = 999


def _t(mean: np.ndarray, error: np.ndarray, freedom: np.ndarray | int) -> Found:
    safe = np.maximum(error, 1e-15)
    p = np.where(error > 0, 2 * stats.t.sf(np.abs(mean) / safe, freedom), np.where(mean == 0, 1.0, 0.0))
    return p, stats.t.ppf(0.975, freedom) * error


def t_over_trials(d: np.ndarray) -> Found:
    flat = d.reshape(len(d), -1)
    n = flat.shape[1]
    return _t(flat.mean(1), flat.std(1, ddof=1) / np.sqrt(n), n - 1)


def t_over_folds(d: np.ndarray) -> Found:
    means = d.mean(2)
    folds = means.shape[1]
    return _t(means.mean(1), means.std(1, ddof=1) / np.sqrt(folds), folds - 1)


def mixed_model(d: np.ndarray) -> Found:
    """REML with fold as random effect: for balanced data the mean squares, pooled if the variance component of folds is
    zero.
    """
    _, folds, repeats = d.shape
    n, means, grand = folds * repeats, d.mean(2), d.mean((1, 2))
    between = repeats * means.var(1, ddof=1)
    within = ((d - means[:, :, None]) ** 2).sum((1, 2)) / max(folds * (repeats - 1), 1)
    pooled = ((d - grand[:, None, None]) ** 2).sum((1, 2)) / (n - 1)
    varies = (between > within) | (repeats == 1)
    variance = np.where(varies, between, pooled)
    return _t(grand, np.sqrt(variance / n), np.where(varies, folds - 1, n - 1))


def corrected_t(d: np.ndarray) -> Found:
    """Nadeau and Bengio's corrected t test, with the variance (1/n + test/train) s^2."""
    flat = d.reshape(len(d), -1)
    n = flat.shape[1]
    return _t(flat.mean(1), flat.std(1, ddof=1) * np.sqrt(1 / n + TEST_TO_TRAIN), n - 1)


def wilcoxon(d: np.ndarray) -> Found:
    flat = np.round(d.reshape(len(d), -1), 12)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = stats.wilcoxon(flat, axis=1, method="asymptotic").pvalue
    return np.nan_to_num(p, nan=1.0), np.full(len(d), np.nan)


def sign_flips(d: np.ndarray) -> Found:
    """All sign flips of the fold means."""
    means = d.mean(2)
    signs = np.array(list(product((1, -1), repeat=means.shape[1])), dtype=float)
    reached = np.abs(means @ signs.T) >= np.abs(means.sum(1))[:, None] - 1e-12
    return reached.mean(1), np.full(len(d), np.nan)


def cluster_bootstrap(d: np.ndarray) -> Found:
    """Folds resampled with replacement, percentile interval; p is the smallest level whose interval excludes zero."""
    means = d.mean(2)
    folds = means.shape[1]
    draws = np.random.default_rng(1).multinomial(folds, np.full(folds, 1 / folds), BOOTSTRAPS) / folds
    found = means @ draws.T
    below = ((found <= 0).sum(1) + 1) / (BOOTSTRAPS + 1)
    above = ((found >= 0).sum(1) + 1) / (BOOTSTRAPS + 1)
    low, high = np.percentile(found, [2.5, 97.5], axis=1)
    return np.minimum(1.0, 2 * np.minimum(below, above)), (high - low) / 2


CANDIDATES: dict[str, Candidate] = {
    "t over trials": t_over_trials,
    "t over fold means": t_over_folds,
    "mixed model": mixed_model,
    "corrected t, 1/9": corrected_t,
    "Wilcoxon over trials": wilcoxon,
    "sign flips of folds": sign_flips,
    "cluster bootstrap": cluster_bootstrap,
}
