"""The tests that the simulations compare, against scipy and statsmodels."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import stats

FILE = Path(__file__).parents[2] / "benchmarks" / "candidate_tests.py"


@pytest.fixture(scope="module")
def tests() -> ModuleType:
    spec = importlib.util.spec_from_file_location("augbench_candidate_tests", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def worlds() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(0.5, 3, (6, 10, 3)) + rng.normal(0, 2, (6, 10, 1))


def test_plain_tests_are_scipys(tests: ModuleType, worlds: np.ndarray) -> None:
    flat, means = worlds.reshape(6, -1), worlds.mean(2)
    assert tests.t_over_trials(worlds)[0] == pytest.approx(stats.ttest_1samp(flat, 0, axis=1).pvalue)
    assert tests.t_over_folds(worlds)[0] == pytest.approx(stats.ttest_1samp(means, 0, axis=1).pvalue)
    ends = stats.ttest_1samp(means, 0, axis=1).confidence_interval(0.95)
    assert tests.t_over_folds(worlds)[1] == pytest.approx((ends.high - ends.low) / 2)
    by_scipy = [stats.wilcoxon(one, method="asymptotic").pvalue for one in flat]
    assert tests.wilcoxon(worlds)[0] == pytest.approx(by_scipy)


def test_sign_flips_are_scipys_permutations(tests: ModuleType, worlds: np.ndarray) -> None:
    for world, p in zip(worlds, tests.sign_flips(worlds)[0], strict=True):
        found = stats.permutation_test((world.mean(1),), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert p == pytest.approx(found.pvalue)


def test_the_mixed_model_is_statsmodels_reml(tests: ModuleType, worlds: np.ndarray) -> None:
    from statsmodels.regression.mixed_linear_model import MixedLM

    for world in worlds[:3]:
        frame = pd.DataFrame({"d": world.ravel(), "fold": np.repeat(np.arange(10), 3)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fold variance of zero lies on the boundary
            fitted = MixedLM(frame["d"], np.ones(30), frame["fold"]).fit(reml=True)
        half = tests.mixed_model(world[None])[1][0]
        freedom = 9 if 3 * world.mean(1).var(ddof=1) > world.var(1, ddof=1).mean() else 29
        assert half == pytest.approx(stats.t.ppf(0.975, freedom) * fitted.bse.iloc[0], rel=2e-2)


def test_the_corrected_t_by_hand(tests: ModuleType, worlds: np.ndarray) -> None:
    flat = worlds[0].ravel()
    error = flat.std(ddof=1) * np.sqrt(1 / 30 + 1 / 9)
    assert tests.corrected_t(worlds)[0][0] == pytest.approx(2 * stats.t.sf(abs(flat.mean()) / error, 29))


def test_the_bootstrap_interval_is_about_that_of_scipy(tests: ModuleType, worlds: np.ndarray) -> None:
    means = worlds[0].mean(1)
    ends = stats.bootstrap((means,), np.mean, method="percentile", rng=np.random.default_rng(0)).confidence_interval
    assert tests.cluster_bootstrap(worlds)[1][0] == pytest.approx((ends.high - ends.low) / 2, rel=0.08)
