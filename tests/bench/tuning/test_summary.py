"""Studies in sum: values, curves, importances, and the folds of a method put together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import pytest

from bench.plan.cells import Cell
from bench.tuning.storage import Storage
from bench.tuning.summary import importances, methods_of, spark, studies_in, summarize


@pytest.fixture
def storage(tmp_path: Path, tuning: ModuleType) -> Storage:
    return Storage(tuning.url(tmp_path))


@pytest.fixture(scope="module")
def cell(tuning: ModuleType) -> Cell:
    made: Cell = tuning.cell()
    return made


def test_what_a_study_says_in_sum(storage: Storage, cell: Cell, tuning: ModuleType) -> None:
    study = tuning.study(storage, cell, 40, sampler="random", pruner="none")
    tuning.search([study])
    facts = summarize(study.study)
    curve = facts.curve()
    assert curve == sorted(curve) and len(curve) == 40 and curve[-1] == facts.best.value
    assert facts.count("complete") == 40 and facts.count("given up") == 0
    shares = importances(study.study)
    assert sum(shares.values()) == pytest.approx(1.0) and set(shares) <= set(study.space.distributions())
    assert max(shares, key=lambda name: shares[name]) == "training.lr", "the one that the pretended accuracy hangs on"


def test_a_methods_folds_are_put_together(storage: Storage, cell: Cell, tuning: ModuleType) -> None:
    def answer(work: Mapping[str, Any]) -> Any:
        bad = work["fold"] == 3 and work["cell"]["training"]["lr"] != 0.01
        return {"status": "failed", "reason": "boom"} if bad else tuning.pretended(work)

    made = tuning.by_fold(storage, cell, 5)
    tuning.search([*made[:2], tuning.study(storage, cell, 5)])
    first, pooled = methods_of(studies_in(storage))
    if first.how == "pooled":
        first, pooled = pooled, first
    assert (first.name, first.how, pooled.how) == (pooled.name, "nested", "pooled")
    assert (len(first.studies), first.ready, first.done, first.wanted) == (4, 2, 10, 20)
    assert first.default is None and first.best is None, "two folds have nothing yet"
    tuning.search(made, tuning.PretendingPool(answer=answer))
    whole = next(method for method in methods_of(studies_in(storage)) if method.how == "nested")
    assert [study.fold for study in whole.studies] == [0, 1, 2, 3] and whole.ready == 4
    assert whole.done == 20 and whole.count("failed") == 4
    assert whole.default == pytest.approx(fmean(study.default for study in whole.studies))
    assert whole.curve() == sorted(whole.curve()) and whole.curve()[-1] == pytest.approx(whole.best)
    assert " to " in whole.spread()["training.lr"], "the range over the folds"


def test_a_study_of_the_time_before_folds_had_their_own_is_a_pooled_one(
    storage: Storage, cell: Cell, tuning: ModuleType
) -> None:
    study = tuning.study(storage, cell, 2)
    facts = dict(study.study.user_attrs["augbench"])
    del facts["how"]
    study.study.set_user_attr("augbench", facts)
    tuning.search([tuning.study(storage, cell, 2)])
    [found] = methods_of(studies_in(storage))
    assert found.how == "pooled" and found.done == 2


def test_a_curve_fits_a_line() -> None:
    assert spark([]) == "" and spark([float("nan")]) == ""
    assert spark([0.5, 0.5]) == "▁▁"
    assert spark([0.0, 0.5, 1.0]) == "▁▅█"
    assert len(spark([i / 100 for i in range(100)])) == 24
