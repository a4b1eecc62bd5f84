"""Label draws are added until intervals are narrow: by width alone, the same for all methods, fewest draws first."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.execution.precision import Precision, columns, expected_jobs, next_step, verdict
from bench.plan.cells import Cell, Trial
from bench.plan.grids import Grid
from bench.plan.planner import Plan
from bench.registry import UserError
from bench.results.ledger import LedgerState
from bench.results.records import Record
from tables.specs import Coordinate
from tables.statistics import stopping_half_width

NOISE = {"PROTEINS": 0.02, "NCI1": 0.06}


def value(place: Coordinate, fold: int, repeat: int) -> float:
    return round(0.5 + random.Random(f"{place} {fold} {repeat}").gauss(0, NOISE[place.dataset]), 6)


class World:
    """A ledger whose trials are made up when they are asked for."""

    def __init__(self, fake: ModuleType, names: tuple[str, ...] = ("none", "dropedge", "dropnode")) -> None:
        self.fake = fake
        self.places = [Coordinate(dataset, 10, name) for dataset in NOISE for name in names]
        self.records: list[Record] = [fake.cell(place) for place in self.places]
        cells = tuple(LedgerState.of(self.records).cells.values())
        self.plan = Plan(Grid("g", tuple(self.places), folds=10, repeats=2), cells, ())

    @property
    def state(self) -> LedgerState:
        return LedgerState.of(self.records)

    def run(self, jobs: list[tuple[Cell, Trial]]) -> None:
        for cell, t in jobs:
            place = Coordinate(cell.dataset, cell.k, cell.augmenter.label)
            self.records.append(self.fake.trial(cell.key, t.fold, t.repeat, value(place, t.fold, t.repeat)))

    def go_on(self, wanted: Precision) -> list[int]:
        """Every step's label draws, until there is none."""
        steps = []
        while (step := next_step(self.plan, self.state, wanted)) is not None:
            jobs = step.plan.pending(self.state, retry=False)
            assert jobs, "a step that adds nothing would never end"
            self.run(jobs)
            steps.append(step.plan.grid.repeats)
        return steps


@pytest.fixture
def world(fake: ModuleType) -> World:
    made = World(fake)
    made.run(made.plan.pending(made.state))
    return made


def test_it_goes_on_until_every_interval_is_narrow_and_no_further(world: World) -> None:
    wanted = Precision(1.5)
    before = {c.plain.dataset: c.half_width(world.state) for c in columns(world.plan.cells)}
    steps = world.go_on(wanted)
    assert steps and steps == sorted(steps)
    for column in columns(world.plan.cells):
        assert column.half_width(world.state) <= 1.5
        draws = {len(world.state.done(cell.key)) for cell in column.cells}
        assert len(draws) == 1, "all methods of a column have the same trials"
        if before[column.plain.dataset] <= 1.5:
            assert draws == {20}, "a column that was narrow from the start gets nothing"
    assert verdict(world.plan, world.state, wanted) == "every difference to plain training is known to ±1.5 points"
    assert world.go_on(wanted) == []


def test_an_interrupted_step_goes_on_where_it_was(world: World) -> None:
    wanted = Precision(2.0)
    step = next_step(world.plan, world.state, wanted)
    assert step is not None
    jobs = step.plan.pending(world.state, retry=False)
    done = jobs[: len(jobs) // 3]
    world.run(done)
    again = next_step(world.plan, world.state, wanted)
    assert again is not None and again.plan.grid.repeats <= step.plan.grid.repeats
    assert not {(c.key, t) for c, t in again.plan.pending(world.state, False)} & {
        (c.key, t) for c, t in jobs[: len(jobs) // 3]
    }


def test_the_cap_ends_it_and_is_said(world: World) -> None:
    wanted = Precision(0.1, most=4)
    assert world.go_on(wanted)[-1] == 4
    assert all(len(world.state.done(cell.key)) == 40 for cell in world.plan.cells)
    assert "2 of 2 columns are less precise than ±0.1 points after 4 label draws" in verdict(
        world.plan, world.state, wanted
    )


def test_the_columns_with_the_fewest_draws_come_first(world: World) -> None:
    wide = next(c for c in columns(world.plan.cells) if c.plain.dataset == "NCI1")
    world.run([(cell, Trial(fold, 2)) for cell in wide.cells for fold in range(10)])
    step = next_step(world.plan, world.state, Precision(0.1))
    assert step is not None and [c.plain.dataset for c in step.columns] == ["PROTEINS"]


def test_what_it_may_cost_is_known_beforehand(world: World) -> None:
    wanted = Precision(1.0)
    jobs, unknown = expected_jobs(world.plan, world.state, wanted)
    assert not unknown and all(trial.repeat >= 2 for _, trial in jobs)
    column = columns(world.plan.cells)[1]  # the noisier one
    draws = math.ceil(2 * (column.half_width(world.state) / 1.0) ** 2)
    mine = [trial for cell, trial in jobs if cell.key == column.plain.key]
    assert len(mine) == 10 * (min(draws, 50) - 2)


def test_the_width_is_the_wider_of_two_by_scipy() -> None:
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([range(10), range(3)], names=["fold", "repeat"])
    for spread in (0.0, 0.1):  # folds alike, folds apart
        d = pd.Series(rng.normal(0, 0.05, 30) + np.repeat(rng.normal(0, spread, 10), 3), index).round(6)
        means = d.groupby(level=0).mean()
        halves = [stats.t.ppf(0.975, len(x) - 1) * stats.sem(x) for x in (means, d)]
        assert stopping_half_width(d) == pytest.approx(max(halves))


def test_methods_that_only_fail_end_it(world: World) -> None:
    bad = world.plan.cells[1]
    world.records = [r for r in world.records if getattr(r, "cell", None) != bad.key]
    world.records += [world.fake.trial(bad.key, fold, r, None) for fold in range(10) for r in range(2)]
    step = next_step(world.plan, world.state, Precision(1.0))
    assert step is None or all(bad not in column.cells for column in step.columns)


def test_mistakes_are_told(fake: ModuleType) -> None:
    with pytest.raises(UserError, match="--precision 0 is not a width"):
        Precision(0)
    alone = World(fake, ("dropedge", "dropnode"))
    with pytest.raises(UserError, match="PROTEINS k=10 gcn mean has none; add -a none"):
        columns(alone.plan.cells)
    plain = World(fake, ("none",))
    with pytest.raises(UserError, match="add another method"):
        columns(replace(plain.plan).cells)
