"""A ledger as one compressed table: a row a trial for whoever opens it with pandas, and the ledger's lines back out.

Whatever a trial says is a column; its cell stands beside it, flat for readers (`augmenter`, `training.lr`, ...) and as
the ledger's own line (`cell_record`), so that nothing is lost and a published file can be verified, merged and resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.registry import UserError
from bench.results.frame import Collected, Trial, flat_cell
from bench.results.records import flaw
from bench.temporary import replacing

if TYPE_CHECKING:
    import pyarrow

_METADATA = b"augbench"
_MOST_ROWS = 5_000_000
_NESTED = ("seconds", "generated")
_CURVE = ("curve.epochs", "curve.losses")
_ORDER = ("dataset", "k", "augmenter", "backbone", "readout", "features", "cell", "fold", "repeat")


def write_archive(records: Iterable[Mapping[str, Any]], path: Path) -> None:
    """All trials in one file, retries resolved; planned ones that were not run are rows with the status `pending`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = Collected.of(records)
    rows = sorted(
        _rows(found), key=lambda row: [*(row[name] for name in _ORDER), row["cell"], row["fold"], row["repeat"]]
    )
    columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    rest = {"provenance": found.provenance, "plans": found.plans}
    try:
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UserError(f"the trials do not fit into one table ({error}); a column needs values of one kind") from error
    table = table.replace_schema_metadata({_METADATA: json.dumps(rest).encode()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            pq.write_table(table, part, compression="zstd", compression_level=19)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}; choose another place") from error


def _rows(found: Collected) -> Iterator[dict[str, Any]]:
    for key, cell in found.cells.items():
        facts = {**flat_cell(cell), "cell_record": json.dumps(cell, separators=(",", ":"))}
        for fold, repeat in sorted(found.planned.get(key, ())):
            trial = found.trials.get((key, fold, repeat))
            pending = {"cell": key, "fold": fold, "repeat": repeat, "status": "pending"}
            yield {**(pending if trial is None else _flat(trial)), **facts}


def _flat(trial: Trial) -> dict[str, Any]:
    flat = {name: value for name, value in trial.items() if name not in ("type", "curve", *_NESTED)}
    for group in _NESTED:
        flat |= {f"{group}.{name}": value for name, value in (trial.get(group) or {}).items()}
    if trial.get("curve"):
        flat |= zip(_CURVE, zip(*trial["curve"], strict=True), strict=True)
    return flat


def read_archive(path: Path) -> list[dict[str, Any]]:
    """The ledger's lines that the file was made of, in the order in which a ledger has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_metadata(path).num_rows
        if rows > _MOST_ROWS:  # a few bytes can say that a value is repeated billions of times
            raise UserError(f"{path} has {rows} rows, more than the {_MOST_ROWS} that are read at once; split it")
        table = pq.read_table(path)
    except UserError:
        raise
    except (OSError, ValueError, TypeError, KeyError, MemoryError, pa.ArrowException) as error:
        raise UserError(f"{path} cannot be read as a parquet file of trials ({error}); write it anew") from error
    try:
        return [_checked(record) for record in _records(table)]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise UserError(f"{path} is not a file of trials ({error}); write one with bench tables --export") from error


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    wrong = flaw(record)
    if wrong:
        raise ValueError(f"a record of it cannot be used, {wrong}")
    return record


def _records(table: pyarrow.Table) -> Iterator[dict[str, Any]]:
    rest = json.loads((table.schema.metadata or {})[_METADATA])
    yield from ({"type": "provenance", **record} for record in rest["provenance"])
    cells: dict[str, dict[str, Any]] = {}
    trials = []
    beside: set[str] = set()
    for row in table.to_pylist():
        key = row["cell"]
        if key not in cells:
            cells[key] = json.loads(row["cell_record"])
            beside = {*flat_cell(cells[key]), "cell_record"}
        if row["status"] != "pending":
            trials.append(_deep({name: value for name, value in row.items() if name not in beside}))
    yield from cells.values()
    yield from rest["plans"]
    yield from trials


def _deep(row: dict[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = {"type": "trial"}
    epochs, losses = (row.pop(name, None) for name in _CURVE)
    for name, value in row.items():
        group, _, inner = name.partition(".")
        if value is None and name != "reason":
            continue
        if group in _NESTED and inner:
            record.setdefault(group, {})[inner] = value
        else:
            record[name] = value
    if record["status"] == "done":
        record = {**{group: {} for group in _NESTED}, **record}  # a method that generates nothing has no figures
    if epochs is not None:
        record["curve"] = [list(point) for point in zip(epochs, losses, strict=True)]
    return record
