"""Parts of a plan: together everything, each trial once, and each part about as long as the others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import median
from types import ModuleType

import pytest

from bench.execution.worker import bundled
from bench.plan.cells import Trial
from bench.plan.planner import Planner
from bench.plan.sharding import Shard
from bench.registry import UserError
from bench.results.ledger import LedgerState
from bench.results.workspace import records_at

RESULTS = Path(__file__).resolve().parents[3] / "results" / "trials.parquet"


def test_parts_of_the_published_grids_take_equally_long() -> None:
    """By the median seconds of their trials, also where there are more parts than trials of a cell."""
    state = LedgerState.of(records_at(RESULTS))
    cells = list(state.cells.values())
    trials = [Trial(fold, repeat) for repeat in range(3) for fold in range(10)]
    spent = {key: median(sum(r.seconds.values()) for r in known.values()) for key, known in state.trials.items()}
    for count, excess in ((4, 1.05), (64, 1.25)):
        parts = [Shard(number, count).of(cells, trials) for number in range(1, count + 1)]
        assert Counter(job for part in parts for job in part) == Counter(
            (cell.key, t) for cell in cells for t in trials
        )
        seconds = [sum(spent[key] for key, _ in part) for part in parts]
        assert max(seconds) < excess * sum(seconds) / count


def test_a_plan_runs_its_own_part_alone(tools: ModuleType, tmp_path: Path) -> None:
    grid = tools.grid(["none", "gdm-rand", "gdm-unc"], k=[2, 5], folds=3)
    plan = Planner(tmp_path).plan(grid)
    nothing = LedgerState()
    parts = [type(plan)(plan.grid, plan.cells, (), shard=Shard(number, 4)) for number in range(1, 5)]
    assert [part.size for part in parts] == [len(part.pending(nothing)) for part in parts] == [4, 5, 5, 4]
    together = [job for part in parts for job in part.pending(nothing)]
    assert Counter((cell.key, trial) for cell, trial in together) == Counter(
        (cell.key, trial) for cell, trial in plan.pending(nothing)
    )
    # methods that share their pre-training stay together
    assert sum(len(bundled(part.pending(nothing))) for part in parts) == len(bundled(plan.pending(nothing)))


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "a/b", "-1/4", "1/20000", ""])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a valid part; write --shard 1/"):
        Shard.parse(text)


def test_a_part_as_it_is_written() -> None:
    assert Shard.parse(" 3/8 ") == Shard(3, 8)
    assert str(Shard(3, 8)) == "3/8"
