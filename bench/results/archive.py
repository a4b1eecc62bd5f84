"""A ledger as one compressed table with a row per trial, from which the ledger's lines can be restored.

Everything recorded about a trial is a column. Its cell is stored as flat columns for readers (`augmenter`,
`training.lr`, ...) and as the ledger's own line (`cell_record`), so that nothing is lost and a published file can be
verified, merged and resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.registry import UserError
from bench.results.frame import NESTED, flat_cell, flat_trial, planned_trials, refuse_undescribed
from bench.results.ledger import LedgerState
from bench.results.records import CellRecord, Flaw, Record, TrialRecord, parse
from bench.temporary import replacing

if TYPE_CHECKING:
    import pyarrow

_METADATA = b"augbench"
_MOST_ROWS = 5_000_000
_CURVE = ("curve.epochs", "curve.losses")
_ORDER = ("dataset", "k", "learner", "augmenter", "backbone", "readout", "features", "cell", "fold", "repeat")


def write_archive(records: Iterable[Record], path: Path) -> None:
    """All trials in one file, retries resolved; planned trials that were not run are rows with status `pending`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    state = LedgerState.of(records)
    refuse_undescribed(state)
    rows = sorted(_rows(state), key=lambda row: [row[name] for name in _ORDER])
    columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    rest = {
        "provenance": [one.to_json() for one in state.provenance.values()],
        "plans": [plan.to_json() for plan in state.plans],
    }
    try:
        described = {name for cell in state.cells.values() for name in flat_cell(cell)}
        table = pa.table({name: _column(values, name in described) for name, values in columns.items()})
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise UserError(
            f"the trials do not fit into one table ({error}); all values of a column must have the same type"
        ) from error
    table = table.replace_schema_metadata({_METADATA: json.dumps(rest).encode()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            pq.write_table(table, part, compression="zstd", compression_level=19)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}; choose another path") from error


def _column(values: list[Any], described: bool) -> pyarrow.Array:
    """One column. Descriptions of cells may mix numbers and text; such a column is stored as text."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        if not described:
            raise
        return pa.array([None if value is None else str(value) for value in values])


def _rows(state: LedgerState) -> Iterator[dict[str, Any]]:
    planned = planned_trials(state)
    for key, cell in state.cells.items():
        line = json.dumps(CellRecord(key, cell).to_json(), separators=(",", ":"))
        by_fold = {fold: flat_cell(cell, fold) for fold, _ in planned.get(key, ())}
        found = {(trial.fold, trial.repeat): record for trial, record in state.trials.get(key, {}).items()}
        for fold, repeat in sorted(planned.get(key, ())):
            record = found.get((fold, repeat))
            pending = {"cell": key, "fold": fold, "repeat": repeat, "status": "pending"}
            yield {**(pending if record is None else _row(record)), **by_fold[fold], "cell_record": line}


def _row(record: TrialRecord) -> dict[str, Any]:
    row = flat_trial(record)
    if record.curve:
        row |= zip(_CURVE, zip(*record.curve, strict=True), strict=True)
    return row


def read_archive(path: Path) -> list[Record]:
    """The records that the file was made from, in the order of a ledger."""
    try:
        return [parse(raw) for raw in raw_records(path)]
    except Flaw as error:
        raise UserError(f"{path} is not a file of trials (a record cannot be used: {error})") from error


def raw_records(path: Path) -> list[dict[str, Any]]:
    """The file's records as they are, not validated."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_metadata(path).num_rows
        if rows > _MOST_ROWS:  # a few bytes can claim that a value is repeated billions of times
            raise UserError(f"{path} has {rows} rows, more than the limit of {_MOST_ROWS}; split it")
        table = pq.read_table(path)
    except UserError:
        raise
    except (OSError, ValueError, TypeError, KeyError, MemoryError, pa.ArrowException) as error:
        raise UserError(f"{path} cannot be read as a Parquet file of trials ({error}); write it again") from error
    try:
        return [*_raw(table)]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise UserError(f"{path} is not a file of trials ({error}); write one with bench tables --export") from error


def _raw(table: pyarrow.Table) -> Iterator[dict[str, Any]]:
    rest = json.loads((table.schema.metadata or {})[_METADATA])
    yield from ({**record, "type": "provenance"} for record in rest["provenance"])
    cells: dict[str, dict[str, Any]] = {}
    trials = []
    for row in table.to_pylist():
        key = row["cell"]
        if key not in cells:
            cells[key] = json.loads(row["cell_record"])
        if row["status"] != "pending":
            trials.append(_deep(row))
    yield from cells.values()
    yield from ({**record, "type": "plan"} for record in rest["plans"])
    yield from trials


_OWN = {name for name in TrialRecord.__dataclass_fields__ if name not in (*NESTED, "curve")}


def _deep(row: dict[str, Any]) -> dict[str, Any]:
    """A trial's own columns, in the ledger's nested form."""
    raw: dict[str, Any] = {"type": "trial"}
    for name, value in row.items():
        group, _, inner = name.partition(".")
        if value is None:
            continue
        if group in NESTED and inner:
            raw.setdefault(group, {})[inner] = value
        elif name in _OWN:
            raw[name] = value
    epochs, losses = (row.get(name) for name in _CURVE)
    if epochs is not None and losses is not None:
        raw["curve"] = [list(point) for point in zip(epochs, losses, strict=True)]
    return raw
