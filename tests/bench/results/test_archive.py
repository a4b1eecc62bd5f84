"""A published file: every line of the ledger comes back out of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.registry import UserError
from bench.results.archive import read_archive, write_archive
from bench.results.ledger import LedgerState
from bench.results.records import CellRecord, Record, TrialRecord
from tables.specs import Coordinate

PLACE = Coordinate("PROTEINS", 10, "none")


def whole(fake: ModuleType) -> list[Record]:
    """A ledger with failures, missing trials, tuned cells, loss curves and a cell that cannot run."""
    places = [PLACE, Coordinate("IMDB-BINARY", 3, "gdm-acc:encoder=vgsae")]
    records = fake.ledger(places, folds=3, repeats=2, value=lambda p, f, r: None if f == 2 else fake.accuracy(p, f, r))
    records = [record for record in records if not (isinstance(record, TrialRecord) and record.fold == 1)]
    records += fake.tuned(places[:1], folds=2, repeats=1)
    records.append(fake.plan([], [0], [0], skipped=[{"cell": "a", "reason": "b"}], grid="x"))
    for record in records:
        if isinstance(record, TrialRecord) and record.done:
            record.curve = [[1, 16.609], [800, 10.0]]
            record.predicted = {"0": 0.25, "1": 0.75}
            record.engine, record.handed_over = "reference/cpu", "of its edge weights"
            record.generated = {} if record.repeat else record.generated
    return records


def test_every_line_comes_back(fake: ModuleType, tmp_path: Path) -> None:
    records = whole(fake)
    write_archive(records, tmp_path / "trials.parquet")
    before, after = LedgerState.of(records), LedgerState.of(read_archive(tmp_path / "trials.parquet"))
    assert after.cells == before.cells
    assert after.plans == before.plans
    assert after.provenance == before.provenance
    assert after.trials == before.trials
    assert any(record.curve for _, record in after.finished())


def test_a_second_writing_gives_the_same_bytes(fake: ModuleType, tmp_path: Path) -> None:
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    write_archive(whole(fake), one)
    write_archive(read_archive(one), two)
    assert one.read_bytes() == two.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.parquet", "two.parquet"]


def test_pandas_sees_a_row_a_trial_and_what_is_missing(fake: ModuleType, tmp_path: Path) -> None:
    write_archive(whole(fake), tmp_path / "trials.parquet")
    frame = pd.read_parquet(tmp_path / "trials.parquet")
    assert frame.groupby("status").size().to_dict() == {"done": 6, "failed": 4, "pending": 4}
    assert set(frame[frame["dataset"] == "IMDB-BINARY"]["augmenter"]) == {"gdm-acc:encoder=vgsae"}
    assert set(frame["training.epochs"]) == {800}


def test_a_trial_stands_beside_the_settings_of_its_own_fold(fake: ModuleType, tmp_path: Path) -> None:
    records = fake.tuned([Coordinate("PROTEINS", 10, "none")], folds=3, repeats=1)
    write_archive(records, tmp_path / "t.parquet")
    rows = pd.read_parquet(tmp_path / "t.parquet").sort_values("fold")
    assert rows["training.lr"].tolist() == [0.003, 0.004, 0.005]
    cells = [record for record in records if isinstance(record, CellRecord)]
    assert [one for one in read_archive(tmp_path / "t.parquet") if isinstance(one, CellRecord)] == cells


def test_a_retry_is_resolved(fake: ModuleType, tmp_path: Path) -> None:
    records = fake.ledger([PLACE], folds=1, repeats=1)
    key = next(record.key for record in records if isinstance(record, CellRecord))
    write_archive([*records, fake.trial(key, 0, 0, None)], tmp_path / "trials.parquet")
    trials = [record for record in read_archive(tmp_path / "trials.parquet") if isinstance(record, TrialRecord)]
    assert [trial.status for trial in trials] == ["done"]


def test_a_file_that_holds_no_trials_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_text("no parquet")
    with pytest.raises(UserError, match="cannot be read as a Parquet file"):
        read_archive(path)
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(UserError, match="is not a file of trials"):
        read_archive(path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("accuracy", 7.0, "its accuracy is 7.0"),
        ("seconds.train", -1.0, "its seconds is"),
        ("status", "x", "its status"),
    ],
)
def test_a_file_with_impossible_values_is_refused(
    fake: ModuleType, tmp_path: Path, column: str, value: Any, message: str
) -> None:
    path = tmp_path / "trials.parquet"
    write_archive(fake.ledger([PLACE], folds=2, repeats=1), path)
    table = pq.read_table(path)
    at = table.column_names.index(column)
    pq.write_table(table.set_column(at, column, pa.array([value] * table.num_rows)), path)
    with pytest.raises(UserError, match=f"a record cannot be used: {message}"):
        read_archive(path)


def test_values_that_no_column_holds_are_told(fake: ModuleType, tmp_path: Path) -> None:
    records = fake.ledger([PLACE], folds=1, repeats=1)
    records[-1].curve = [[2**70, 1.0]]
    with pytest.raises(UserError, match="the trials do not fit into one table"):
        write_archive(records, tmp_path / "trials.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(fake: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        write_archive(fake.ledger([PLACE], folds=1, repeats=1), tmp_path / "file" / "trials.parquet")


def test_versions_of_built_ins_and_of_ones_own_share_a_column(tmp_path: Path) -> None:
    """A built-in method has a number, anybody else's a text with a hash: one ledger may hold both."""
    cells = Planner(tmp_path).plan(Grid("mixed", product(["synthetic"], ["none", "dropedge"], [2]))).cells
    own = replace(cells[1], versions={**cells[1].versions, "augmenter": "path+a9de66652f57"})
    records = [CellRecord(cell.key, cell) for cell in (cells[0], own)]
    records += [TrialRecord(cell.key, 0, 0, "failed", "boom") for cell in (cells[0], own)]
    write_archive(records, tmp_path / "trials.parquet")
    back = LedgerState.of(read_archive(tmp_path / "trials.parquet"))
    assert back.cells == {cells[0].key: cells[0], own.key: own}
    assert set(pd.read_parquet(tmp_path / "trials.parquet")["versions.augmenter"]) == {"1", "path+a9de66652f57"}
