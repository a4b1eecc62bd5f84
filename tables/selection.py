"""Selects the ledger cell for a coordinate of a table.

A ledger may contain the same coordinate several times: with other features, splits, presets, or versions of the code.
No choice is made silently. Either the user's selection leaves one cell, or the error lists the choices. All cells of
one table must agree, unless the user names what may differ (and the table says so).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from bench.plan.cells import PARTS
from bench.registry import UserError, show, unknown
from bench.results.frame import Results
from bench.results.records import SCORES
from tables.layouts import BESIDE, Described
from tables.specs import DEFINING_SETTINGS, Coordinate
from tables.statistics import Paired, paired

SETTINGS = ("default", "tuned")
PUBLISHED = "published"  # any split family that does not come from the harness
OWN_SPLITS = "stratified"
_VERSIONED = (*PARTS, "dataset", "splits", "metric")
METRIC_FACETS = frozenset({"metric", "metric-version"})


@dataclass(frozen=True)
class Pick:
    """The user's selection: values of facets (`latest` is allowed), and facets that may differ within a table."""

    where: Mapping[str, str] = field(default_factory=dict)
    mix: frozenset[str] = frozenset()


def facets(results: Results) -> dict[str, str]:
    """The names by which cells can be selected, and the column behind each."""
    names = {"features": "features", "splits": "splits", "tuning": "tuned_how", "metric": "metric"}
    for column in results.cells.columns:
        group, _, name = str(column).partition(".")
        if group == "training":
            names[name] = str(column)
        elif group == "versions":
            names[f"{name}-version" if name in _VERSIONED else name] = str(column)
    return names


def base_label(cell: Mapping[str, Any], part: str) -> str:
    """The label by which a cell looks up its row: for a tuned cell, the label before tuning."""
    label = str(cell[part])
    if not cell["tuned"]:
        return label
    base = cell.get("tuned_from" if part == "augmenter" else f"{part}.tuned_from")
    if isinstance(base, str):
        return base
    name, _, settings = label.partition(":")
    kept = [item for item in settings.split(",") if item.partition("=")[0] in DEFINING_SETTINGS]
    return f"{name}:{','.join(kept)}" if kept else name


def preset_of(cell: Mapping[str, Any]) -> str:
    """The name of a cell's training; for a tuned cell, the one that its search started from."""
    return str(cell["training.preset"])


class Index:
    """The cells of a ledger by coordinate and settings."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.facets = facets(results)
        self.cells: dict[str, dict[str, Any]] = {
            str(key): {str(n): v for n, v in row.items()} for key, row in results.cells.to_dict(orient="index").items()
        }
        self._at: dict[tuple[Coordinate, str], list[str]] = {}
        for key, cell in self.cells.items():
            parts = (base_label(cell, part) for part in ("augmenter", "backbone", "readout", "learner"))
            place = Coordinate(str(cell["dataset"]), int(cell["k"]), *parts)
            self._at.setdefault((place, SETTINGS[int(cell["tuned"])]), []).append(key)
        finished = results.trials.get("finished")
        self._newest: dict[str, Any] = {}
        self._paired: dict[tuple[str, str, str], Paired] = {}
        self._using: dict[int, Index] = {}
        self._all: Index | None = None  # the index of which this one uses some label draws
        if finished is not None:
            newest = finished.astype(str).groupby(results.trials["cell"]).max()
            self._newest = {str(key): value for key, value in newest.items()}

    def using(self, draws: int) -> Index:
        """The same with only the first label draws of each fold; 0 for all of them."""
        if not draws or not self.results.has_more_than(draws):
            return self
        if draws not in self._using:
            self._using[draws] = Index(self.results.first_draws(draws))
            self._using[draws]._all = self
        return self._using[draws]

    def left_out(self, keys: Iterable[str | None]) -> int:
        """How many recorded label draws per fold these cells have beyond those in use."""
        if self._all is None:
            return 0
        held = [key for key in keys if key is not None]
        every = max((self._all.results.draws(key) for key in held), default=0)
        return every - max((self.results.draws(key) for key in held), default=0)

    def paired(self, key: str, reference: str, metric: str) -> Paired:
        """One cell against another on their common trials; cached, because many tables use it."""
        known = self._paired.get((key, reference, metric))
        if known is None:
            known = paired(self.results.values(key, metric), self.results.values(reference, metric))
            self._paired[key, reference, metric] = known
        return known

    def coordinates(self, settings: Sequence[str] = SETTINGS) -> list[Coordinate]:
        """Every coordinate that has a cell."""
        return list(dict.fromkeys(place for place, kind in self._at if kind in settings))

    def check_metric(self, name: str) -> None:
        """Reject a score that no trial has; empty means the cells' primary metric."""
        columns = [str(column) for column in self.results.trials.columns]
        recorded = [*SCORES, *(one.removeprefix("scores.") for one in columns if one.startswith("scores."))]
        if name and name not in recorded:
            raise unknown("metric", name, recorded)

    def metrics_at(self, place: Coordinate, pick: Pick) -> set[str]:
        """The primary metrics of the selected cells at a coordinate."""
        found = [self._at.get((place, kind), []) for kind in SETTINGS]
        for name, value in pick.where.items():
            found = [self._narrow(keys, name, value) if name in self.facets else keys for keys in found]
        return {str(self.cells[key]["metric"]) for keys in found for key in keys}

    def described(self, settings: Sequence[str], pick: Pick) -> list[Described]:
        """The selected cells with their properties in words; tuned cells without what was tuned."""
        found = []
        for (place, kind), keys in self._at.items():
            if kind not in settings:
                continue
            for name, value in pick.where.items():
                keys = self._narrow(keys, name, value)
            found += [_described(place, self.cells[key]) for key in keys]
        return found

    def choose(self, wanted: Iterable[Coordinate], settings: str, pick: Pick) -> dict[Coordinate, str | None]:
        """The one cell for each coordinate; None if there is none."""
        for name in (*pick.where, *pick.mix):
            if name not in self.facets:
                raise unknown("property of cells", name, self.facets)
        return {place: self._one(place, settings, pick) for place in wanted}

    def _one(self, place: Coordinate, settings: str, pick: Pick) -> str | None:
        keys = self._at.get((replace(place, where=()), settings), [])
        for name, value in place.where:
            column = self.facets.get(name, "")
            keys = [key for key in keys if show(_plain(self.cells[key].get(column))) == value]
        for name, value in pick.where.items():
            keys = self._narrow(keys, name, value)
        if len(keys) > 1:
            raise self._ambiguous(f"{place} ({settings})", keys)
        return keys[0] if keys else None

    def _narrow(self, keys: list[str], name: str, value: str) -> list[str]:
        column = self.facets[name]
        if value == "latest":
            newest = max((self._newest.get(key, "") for key in keys), default="")
            values = {show(self.cells[key][column]) for key in keys if self._newest.get(key, "") == newest}
            return [key for key in keys if show(self.cells[key][column]) in values]
        found = [key for key in keys if _matches(self.cells[key], name, column, value)]
        return found or [key for key in keys if _is_beside(self.cells[key], name, value)]

    def _ambiguous(self, what: str, keys: Sequence[str]) -> UserError:
        for name, column in self.facets.items():
            values = _values(self.cells[key][column] for key in keys)
            if len(values) > 1:
                option = f"--{name}" if name in ("features", "splits", "preset") else f"--where {name}="
                glue = " " if option.endswith(name) else ""
                return UserError(
                    f"{what} has {len(keys)} cells that differ in {name} ({', '.join(values)}); "
                    f"choose one with {option}{glue}{values[0]}"
                )
        settings = _values(self.cells[key][f"{part}.settings"] for key in keys for part in PARTS)
        return UserError(
            f"{what} has {len(keys)} cells with different settings of the method ({'; '.join(settings)}); "
            "keep one of them in a separate workspace"
        )

    def check_agreement(self, keys: Iterable[str | None], pick: Pick) -> list[str]:
        """Reject a table of differing cells; returns differences that the user allows, in words for the caption."""
        seen: dict[tuple[str, str], set[str]] = {}
        for key in keys:
            if key is not None:
                for scope, value in self._facts(self.cells[key]):
                    seen.setdefault(scope, set()).add(value)
        mixed: dict[str, set[str]] = {}
        for (name, within), values in seen.items():
            if len(values) == 1:
                continue
            if name not in pick.mix:
                where = f" of {within}" if within else ""
                raise UserError(
                    f"one table cannot hold cells of different {name}{where} ({', '.join(sorted(values))}); choose "
                    f"with --where {name}={min(values)}, or allow it with --mix {name}"
                )
            mixed.setdefault(name, set()).update(values)
        return [f"{name}: {', '.join(sorted(values))}" for name, values in sorted(mixed.items())]

    def _facts(self, cell: Mapping[str, Any]) -> list[tuple[tuple[str, str], str]]:
        """What must agree, and within which scope: the whole table, one dataset, or one method."""
        facts = []
        for name, column in self.facets.items():
            value, scope = show(_plain(cell[column])), ""
            if column.startswith("versions.") and value == "none":
                continue  # an engine, a library or a part that this cell does not have
            if name == "features":
                scope = "" if value != "native" else str(cell["dataset"])
                facts.append((("features", str(cell["dataset"])), value))
            elif name == "splits":
                own = value == OWN_SPLITS
                facts.append((("splits", ""), OWN_SPLITS if own else PUBLISHED))
                scope = "social datasets" if value.startswith("COLLABORATIVE") else str(cell["dataset"])
            elif name == "tuning":
                if not cell["tuned"]:
                    continue
            elif name == "engine":  # not every engine can train every model, so models may differ in it
                scope = " ".join(str(cell[part]) for part in ("learner", "backbone", "readout"))
            elif name == "engine-version":
                scope = str(cell["versions.engine"])
            elif (part := name.removesuffix("-version")) in _VERSIONED:
                scope = str(cell[f"{part}.name"] if part in PARTS else cell["dataset"])
                if part == "splits":
                    scope = f"{scope} {cell['splits']}"
            elif name == "preset":
                value = preset_of(cell)
            elif column.startswith("training.") and cell["tuned"]:
                continue  # what was tuned differs by design
            facts.append(((name, scope), value))
        return facts


def _described(place: Coordinate, cell: Mapping[str, Any]) -> Described:
    names = {part: str(cell[f"{part}.name"]) for part in PARTS}
    properties = {name: str(cell[name]) for name in BESIDE}
    if not cell["tuned"]:
        for part in PARTS:
            held = json.loads(cell[f"{part}.settings"])
            properties |= {f"{part}.{name}": show(value) for name, value in held.items()}
        trained = {name: value for name, value in cell.items() if name.startswith("training.")}
        properties |= {name: show(_plain(value)) for name, value in trained.items() if name != "training.preset"}
    return Described(place, names, properties)


def _matches(cell: Mapping[str, Any], name: str, column: str, value: str) -> bool:
    held = preset_of(cell) if name == "preset" else show(_plain(cell[column]))
    return held == value or (name == "splits" and value == PUBLISHED and held != OWN_SPLITS)


def _is_beside(cell: Mapping[str, Any], name: str, value: str) -> bool:
    """Whether a selection does not apply to this cell, such as computed features to a dataset with native ones."""
    if name == "features":
        return bool(cell["features"] == "native")
    if name == "splits":
        social = str(cell["splits"]).startswith("COLLABORATIVE")
        return (value.startswith("COLLABORATIVE") and cell["splits"] == "CHEMICAL") or (value == "CHEMICAL" and social)
    if name == "tuning":
        return not cell["tuned"]
    return name.removesuffix("-version") in _VERSIONED


def _plain(value: Any) -> Any:
    """Missing values as None, whole floats as ints: the same values from a ledger and from a Parquet file."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _values(values: Iterable[Any]) -> list[str]:
    return sorted({show(_plain(value)) for value in values})


def social_features(results: Results) -> list[str]:
    """The kinds of computed node features in the ledger; each requires a table of its own."""
    return sorted({str(value) for value in results.cells["features"].dropna()} - {"native"})
