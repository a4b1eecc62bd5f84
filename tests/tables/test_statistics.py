"""Every statistic against scipy, statsmodels or a calculation by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from tables.statistics import (
    Paired,
    critical_difference,
    detectable_errors,
    fold_means,
    holm,
    over_datasets,
    paired,
    pooled,
    ranking,
    summary,
    three_way,
)


def series(values: list[float]) -> pd.Series[float]:
    places = [(place // 3, place % 3) for place in range(len(values))]
    return pd.Series(values, index=pd.MultiIndex.from_tuples(places, names=["fold", "repeat"]), dtype=float)


def random_series(seed: int, n: int = 30) -> pd.Series[float]:
    return series(np.random.default_rng(seed).normal(0.6, 0.05, n).round(4).tolist())


def test_mean_and_sample_standard_deviation() -> None:
    found = summary([0.5, 0.6, 0.7])
    assert found.mean == pytest.approx(0.6)
    assert found.std == pytest.approx(0.1)
    assert found.standard_error == pytest.approx(0.1 / math.sqrt(3))


def test_too_few_values_have_no_spread() -> None:
    assert (summary([0.5]).mean, summary([0.5]).n) == (0.5, 1)
    assert math.isnan(summary([0.5]).std) and math.isnan(paired(series([0.5]), series([0.4])).low)
    assert math.isnan(summary([]).mean) and math.isnan(summary([]).standard_error)


def by_fold(differences: pd.Series[float]) -> np.ndarray:
    return differences.groupby(level="fold").mean().to_numpy()


def test_the_test_is_scipys_t_over_the_means_of_folds() -> None:
    a, b = random_series(1), random_series(2)
    found, reference = paired(a, b), stats.ttest_1samp(by_fold(a - b), 0)
    interval = reference.confidence_interval(0.95)
    assert (found.n, found.folds) == (30, 10)
    assert found.mean == pytest.approx((a - b).mean())
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.p == pytest.approx(reference.pvalue)
    assert found.half_width == pytest.approx((interval.high - interval.low) / 2)


def test_with_one_draw_per_fold_it_is_the_paired_t() -> None:
    places = pd.MultiIndex.from_product([range(8), [0]], names=["fold", "repeat"])
    a, b = pd.Series(random_series(3).to_numpy()[:8], places), pd.Series(random_series(4).to_numpy()[:8], places)
    assert paired(a, b).p == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_folds_may_have_unequal_numbers_of_trials() -> None:
    a, b = random_series(5), random_series(6)
    found = paired(a.iloc[2:], b.iloc[:-4])
    common = (a - b).iloc[2:-4]
    assert found.n == 24
    assert found.mean == pytest.approx(by_fold(common).mean())
    assert found.p == pytest.approx(stats.ttest_1samp(by_fold(common), 0).pvalue)
    assert fold_means(np.array([3.0, 1.0, 2.0]), np.array([7, 2, 7])).tolist() == [1.0, 2.5]


def test_probabilities_of_worse_equal_and_better_are_baycomps() -> None:
    from baycomp.single import Posterior

    for seed in range(5):
        a, b = random_series(seed), random_series(seed + 50)
        means, found = by_fold(a - b), paired(a, b)
        posterior = Posterior(means.mean(), means.var(ddof=1) / 10, 9, 0.01)
        assert (found.worse, found.equal, found.better) == pytest.approx(posterior.probs())
    assert three_way(0.02, 0.0, 9) == Posterior(0.02, 0.0, 9, 0.01).probs() == (0, 0, 1)
    assert three_way(0.005, 0.0, 9) == (0, 1, 0)


@pytest.mark.parametrize("folds", [2, 3, 5, 10, 30])
def test_the_detectable_difference_has_the_power_it_says(folds: int) -> None:
    from statsmodels.stats.power import TTestPower

    effect = TTestPower().solve_power(nobs=folds, power=0.8, alpha=0.05)
    assert detectable_errors(folds) == pytest.approx(effect * math.sqrt(folds), rel=1e-5)


def test_equal_values_leave_nothing_to_doubt() -> None:
    a = random_series(7)
    found = paired(a, a)
    assert (found.mean, found.low, found.high, found.p, found.equal) == (0, 0, 0, 1, 1)
    apart = paired(a + 0.1, a)
    assert (apart.mean, apart.p, apart.better) == (pytest.approx(0.1), 0, 1)


def test_fewer_than_six_pairs_or_two_folds_give_no_test() -> None:
    five = paired(random_series(1).iloc[:5], random_series(2).iloc[:5])
    assert five.n == 5 and not math.isnan(five.low) and math.isnan(five.p)
    assert not math.isnan(paired(random_series(1).iloc[:6], random_series(2).iloc[:6]).p)
    one_fold = paired(series([0.6, 0.7, 0.8]), series([0.5, 0.5, 0.5]))
    assert one_fold.n == 3 and one_fold.mean == pytest.approx(0.2)
    assert all(map(math.isnan, [one_fold.low, one_fold.p, one_fold.equal, one_fold.detectable]))
    none = paired(series([0.6]), series([0.5, 0.4]).iloc[1:])
    assert none.n == 0 and math.isnan(none.mean)


def difference(mean: float, error: float, folds: int = 10) -> Paired:
    return Paired(30, folds, mean, math.nan, math.nan, 0.5, error=error)


def test_pooled_difference_by_hand() -> None:
    parts = [difference(0.02, 0.01), difference(-0.01, 0.02), difference(0.03, 0.01, folds=5)]
    found = pooled(parts)
    assert found is not None
    error = math.sqrt(0.01**2 + 0.02**2 + 0.01**2) / 3
    freedom = (6e-4) ** 2 / (0.01**4 / 9 + 0.02**4 / 9 + 0.01**4 / 4)
    assert found.mean == pytest.approx(0.04 / 3)
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, freedom) * error)
    assert found.p == pytest.approx(2 * stats.t.sf(found.mean / error, freedom))
    shift = found.detectable / error
    edge = stats.t.ppf(0.975, freedom)
    power = stats.nct.sf(edge, freedom, shift) + stats.nct.cdf(-edge, freedom, shift)
    assert power == pytest.approx(0.8), "what it calls detectable is found four times in five"
    assert pooled(parts[:1]) is None
    alone = paired(random_series(1), random_series(2))
    twice = pooled([alone, alone])
    assert twice is not None and twice.mean == pytest.approx(alone.mean)


def test_probabilities_over_datasets_agree_with_drawing_from_the_hierarchy() -> None:
    parts = [difference(0.02, 0.01), difference(0.0, 0.02), difference(0.03, 0.015), difference(-0.01, 0.01)]
    wide = stats.t.ppf(0.975, 9) / stats.norm.ppf(0.975)
    rng, count = np.random.default_rng(0), 400_000
    spread, center = rng.uniform(0, 0.25, count), rng.uniform(-0.3, 0.3, count)
    logs = sum(stats.norm.logpdf(part.mean, center, np.sqrt((wide * part.error) ** 2 + spread**2)) for part in parts)
    weights = np.exp(logs - logs.max())
    drawn = [float(weights[where].sum() / weights.sum()) for where in (center < -0.01, center > 0.01)]
    worse, equal, better = over_datasets(parts)
    assert [worse, better] == pytest.approx(drawn, abs=0.03)
    assert worse + equal + better == pytest.approx(1)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_agrees_with_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


def test_holm_by_hand_with_a_missing_test() -> None:
    assert holm([0.01, math.nan, 0.04, 0.03])[0] == pytest.approx(0.03)
    adjusted = holm([0.01, math.nan, 0.04, 0.03])
    assert math.isnan(adjusted[1])
    assert [adjusted[2], adjusted[3]] == pytest.approx([0.06, 0.06])
    assert holm([]) == []


def test_ranks_by_hand_with_ties() -> None:
    means = pd.DataFrame({"a": [0.9, 0.5, 0.7], "b": [0.8, 0.5, 0.6], "c": [0.1, 0.6, 0.5]}, index=["x", "y", "z"])
    found = ranking(means)
    assert found is not None
    assert found.mean_ranks.to_dict() == pytest.approx({"a": (1 + 2.5 + 1) / 3, "b": 6.5 / 3, "c": 7 / 3})
    assert found.p_friedman == pytest.approx(stats.friedmanchisquare(*means.to_numpy().T).pvalue)
    distance = abs(4.5 - 6.5) / 3 / math.sqrt(3 * 4 / (6 * 3))
    expected = stats.studentized_range.sf(distance * math.sqrt(2), 3, np.inf)
    assert found.p_pairs.loc["a", "b"] == pytest.approx(expected, abs=1e-6)


def test_critical_difference_is_demsars() -> None:
    # Demšar (2006), table 5a: q = 1.960 for two methods, 2.728 for five
    assert critical_difference(2, 10) == pytest.approx(1.960 * math.sqrt(2 * 3 / 60), abs=1e-3)
    assert critical_difference(5, 30) == pytest.approx(2.728 * math.sqrt(5 * 6 / 180), abs=1e-3)


def test_incomplete_blocks_and_empty_methods_are_left_out_by_name() -> None:
    means = pd.DataFrame({"a": [0.9, 0.5, 0.7], "b": [0.8, math.nan, 0.6], "c": [math.nan] * 3}, index=["x", "y", "z"])
    found = ranking(means)
    assert found is not None
    assert (found.blocks, found.dropped_blocks, found.dropped_methods) == (("x", "z"), ("y",), ("c",))
    assert math.isnan(found.p_friedman), "two methods are too few for Friedman"
    assert ranking(means.iloc[:1]) is None
    assert ranking(means[["a"]]) is None


def test_all_methods_equal_everywhere() -> None:
    found = ranking(pd.DataFrame({name: [0.5, 0.6] for name in "abc"}, index=["x", "y"]))
    assert found is not None
    assert set(found.mean_ranks) == {2.0}
    assert found.p_friedman == 1.0


def test_ranks_have_bootstrap_intervals_and_a_group_tied_for_the_top() -> None:
    rng = np.random.default_rng(1)
    means = pd.DataFrame(rng.normal(0.5, 0.01, (8, 4)), columns=list("abcd"))
    means["a"] += 0.02  # a and b are about as good, c and d are not
    means["b"] += 0.02
    means["d"] -= 0.05
    found = ranking(means)
    assert found is not None
    ranks = means.rank(axis="columns", ascending=False).to_numpy()
    draws = np.random.default_rng(5).integers(8, size=(4000, 8))
    low, high = np.percentile(ranks[draws].mean(axis=1), [2.5, 97.5], axis=0)
    order = list(found.intervals.index)
    assert found.intervals["low"].to_numpy() == pytest.approx([low["abcd".index(name)] for name in order], abs=0.13)
    assert found.intervals["high"].to_numpy() == pytest.approx([high["abcd".index(name)] for name in order], abs=0.13)
    assert set(found.top) == {"a", "b"}
    few = ranking(means.iloc[:5])
    assert few is not None and set(few.top) == set("abcd"), "five datasets tell nothing apart"
