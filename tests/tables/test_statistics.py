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

from tables.statistics import critical_difference, holm, paired, ranking, summary, wilcoxon


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


def test_paired_difference_agrees_with_scipy() -> None:
    a, b = random_series(1), random_series(2)
    found, reference = paired(a, b), stats.ttest_rel(a, b)
    interval = reference.confidence_interval(0.95)
    assert found.mean == pytest.approx((a - b).mean())
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.p_wilcoxon == pytest.approx(stats.wilcoxon((a - b).round(12)).pvalue)


def test_corrected_resampled_t_by_hand() -> None:
    a, b = random_series(3), random_series(4)
    d = (a - b).to_numpy()
    error = d.std(ddof=1) * math.sqrt(1 / 30 + 1 / 9)
    found = paired(a, b)
    assert found.p_corrected == pytest.approx(2 * stats.t.sf(abs(d.mean()) / error, 29))
    half = stats.t.ppf(0.975, 29) * error
    assert (found.corrected_low, found.corrected_high) == pytest.approx((d.mean() - half, d.mean() + half))
    assert found.corrected_high - found.corrected_low > found.high - found.low
    assert paired(a, b, test_to_train=0.0).p_corrected == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_only_common_trials_are_paired() -> None:
    a, b = random_series(5), random_series(6)
    found = paired(a.iloc[2:], b.iloc[:-4])
    assert found.n == 24
    assert found.mean == pytest.approx((a.iloc[2:-4] - b.iloc[2:-4]).mean())


def test_equal_values_leave_nothing_to_doubt() -> None:
    a = random_series(7)
    found = paired(a, a)
    assert (found.mean, found.low, found.high, found.p_wilcoxon, found.p_corrected) == (0, 0, 0, 1, 1)


def test_a_constant_difference_is_certain() -> None:
    a = random_series(8)
    found = paired(a + 0.1, a)
    assert found.mean == pytest.approx(0.1)
    assert found.p_corrected == 0
    assert found.p_wilcoxon == pytest.approx(stats.wilcoxon(np.full(30, 0.1)).pvalue)


def test_fewer_than_two_pairs_give_no_test() -> None:
    one = paired(series([0.6]), series([0.5]))
    assert one.n == 1 and one.mean == pytest.approx(0.1)
    assert math.isnan(one.low) and math.isnan(one.p_wilcoxon) and math.isnan(one.p_corrected)
    none = paired(series([0.6]), series([0.5, 0.4]).iloc[1:])
    assert none.n == 0 and math.isnan(none.mean)
    assert math.isnan(wilcoxon(np.array([0.1])))


def test_floating_point_makes_no_ranks() -> None:
    a, b = series([0.6, 0.7, 0.3, 0.9]), series([0.5, 0.6, 0.2, 1.0])
    assert paired(a, b).p_wilcoxon == pytest.approx(stats.wilcoxon([1, 1, 1, -1]).pvalue)


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


def test_two_trials_are_enough_for_an_interval_and_one_is_not() -> None:
    two = paired(series([0.6, 0.8]), series([0.5, 0.5]))
    assert two.mean == pytest.approx(0.2)
    half = float(stats.t.ppf(0.975, 1)) * np.std([0.1, 0.3], ddof=1)
    assert two.high - two.mean == pytest.approx(half / math.sqrt(2))
    assert two.corrected_high - two.mean == pytest.approx(half * math.sqrt(1 / 2 + 1 / 9))
    assert two.p_wilcoxon == pytest.approx(0.5)
    one = paired(series([0.6]), series([0.5]))
    assert one.mean == pytest.approx(0.1) and one.n == 1
    assert all(map(math.isnan, [one.low, one.high, one.p_wilcoxon, one.p_corrected]))


def test_differences_that_are_all_the_same_leave_no_doubt() -> None:
    apart = paired(series([0.5, 0.75, 1.0]), series([0.25, 0.5, 0.75]))  # to the last bit
    assert (apart.low, apart.high, apart.p_corrected) == (0.25, 0.25, 0.0)
    equal = paired(series([0.6, 0.7]), series([0.6, 0.7]))
    assert (equal.p_wilcoxon, equal.p_corrected) == (1.0, 1.0)


def test_few_trials_give_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    assert math.isnan(summary([0.5]).std) and math.isnan(paired(series([0.5]), series([0.4])).low)
    assert 0 < wilcoxon(np.array([0.1, 0.1, 0.0, -0.2])) <= 1
    assert not recwarn.list
