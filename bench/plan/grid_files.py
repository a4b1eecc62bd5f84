"""Grid files: grids in TOML with the names of the command-line options, validated before anything runs.

Top-level axes form a product; `[[block]]` tables form several, each with its own axes in addition to the shared ones. A
block may also have the axes `presets`, `features` and `training = { select = ["last", "best-val"] }`.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from augmenters import AUGMENTERS
from bench.datasets import resolve_dataset
from bench.learning import LEARNERS
from bench.plan.grids import Grid, product
from bench.plan.plugin_cache import Resolver
from bench.protocol.features import FEATURES
from bench.protocol.registries import METRICS
from bench.protocol.training import Training, preset
from bench.registry import UserError, show, unknown
from models import BACKBONES, READOUTS
from tables.layouts import Layout
from tables.specs import Coordinate

AXES = {"datasets": str, "augmenters": str, "k": int, "backbones": str, "readouts": str, "learners": str}
VARIED = {"presets": str, "features": str, "training": dict}  # additional axes of a block
LARGEST_FILE = 2**24  # bytes
MOST_CELLS = 1_000_000
OWN_TABLES = {"block": list, "training": dict, "space": dict, "set": dict, "labels": dict, "table": dict}
SINGLE = {"name": str, "features": str, "splits": str, "metric": str, "folds": int, "repeats": int, "preset": str}


def read_grid(path: Path, data_root: Path) -> Grid:
    """The grid of a file; errors contain the line number."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"the grid file {path} is larger than {LARGEST_FILE} bytes; write a smaller one")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"there is no grid file {path}; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the grid file {path}: {error}; it must be UTF-8 text") from error
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from error
    return _Reader(path, text, data_root).grid(raw)


class _Reader:
    """Validates a parsed grid file; errors refer to the line of the key or value."""

    def __init__(self, path: Path, text: str, data_root: Path) -> None:
        self.path, self.lines = path, text.splitlines()
        self.resolver = Resolver()
        self.checks: dict[str, Callable[[Any], Any]] = {
            "datasets": lambda value: resolve_dataset(value, data_root),
            "augmenters": lambda value: self.resolver.resolve(AUGMENTERS, value),
            "backbones": lambda value: self.resolver.resolve(BACKBONES, value),
            "readouts": lambda value: self.resolver.resolve(READOUTS, value),
            "learners": lambda value: self.resolver.resolve(LEARNERS, value),
            "k": _check_k,
            "name": _check_name,
            "preset": preset,
            "features": _check_features,
            "metric": lambda value: value == "auto" or METRICS.resolve(value),
            "folds": lambda value: Grid("check", (), folds=value),
            "repeats": lambda value: Grid("check", (), repeats=value),
        }

    def grid(self, raw: Mapping[str, Any]) -> Grid:
        blocks, training = raw.get("block", []), raw.get("training", {})
        tables = {key: self.table(raw.get(key, {}), key) for key in ("set", "labels", "table")}
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise self.error("must be written as [[block]] tables", "block")
        if not isinstance(training, dict):
            raise self.error("must be a [training] table", "training")
        top = {key: value for key, value in raw.items() if key not in OWN_TABLES}
        self.check_keys(top, {**AXES, **SINGLE, **OWN_TABLES})
        single = {key: self.value(key, top[key], SINGLE[key]) for key in SINGLE if key in top}
        shared = {key: self.axis(key, top[key]) for key in AXES if key in top}
        cells: list[Coordinate] = []
        for number, block in enumerate(blocks or [{}]):
            self.check_keys(block, {**AXES, **VARIED}, number)
            own = {key: value for key, value in block.items() if key in AXES}
            axes = {**shared, **{key: self.axis(key, value, number) for key, value in own.items()}}
            varied = self.varied(block, number)
            if "datasets" not in axes:
                raise UserError(f'{self.path}: no datasets; add a line such as datasets = ["PROTEINS"]')
            if len(cells) + math.prod(len(values) for values in (*axes.values(), *varied.values())) > MOST_CELLS:
                raise UserError(f"{self.path}: the axes give more than {MOST_CELLS} cells; use fewer values")
            choices = [tuple(sorted(zip(varied, one, strict=True))) for one in itertools.product(*varied.values())]
            cells.extend(replace(cell, where=where) for where in choices for cell in product(**axes))
        self.check_training(training)
        self.resolver.save()
        name = single.pop("name", self.path.stem)
        _check_name(name)
        space = self.space(raw.get("space", {}))
        made = Grid(name, tuple(dict.fromkeys(cells)), training=training, space=space, **single)
        made = replace(made, labels=self.labels(tables["labels"]), layout=self.layout(tables["table"], name))
        return self.changed(made, self.space(tables["set"]))

    def varied(self, block: Mapping[str, Any], number: int) -> dict[str, list[str]]:
        """The presets, features and training settings that a block varies, named as in a cell."""
        found = {}
        for key, name in (("presets", "preset"), ("features", "features")):
            if key in block:
                found[name] = [self.value(name, item, str, number) for item in self.listed(block[key], key, number)]
        training = block.get("training", {})
        if not isinstance(training, dict):
            raise self.error("must be a table, such as { select = ['last', 'best-val'] }", "training", block=number)
        for name, value in training.items():
            values = self.listed(value, "training", number)
            for item in values:
                self.check_training({name: item})
            found[name] = [show(item) for item in values]
        return found

    def listed(self, value: Any, key: str, number: int) -> list[Any]:
        values = value if isinstance(value, list) else [value]
        if not values:
            raise self.error("is empty; give one value or more", key, block=number)
        return values

    def table(self, value: Any, key: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(f"must be a [{key}] table", key)
        return value

    def labels(self, table: Mapping[str, Any]) -> dict[str, str]:
        for key, value in table.items():
            if type(value) is not str or not value.strip():
                raise self.error(f"a label is text in quotes, not {value!r}; quote a name that has a dot", key)
        return dict(table)

    def layout(self, table: Mapping[str, Any], name: str) -> Layout | None:
        """The [table] that the grid describes."""
        if not table:
            return None
        self.check_keys(table, {"rows": list, "columns": list, "caption": str, "name": str})
        axes = {}
        for key in ("rows", "columns"):
            value = table.get(key, list(getattr(Layout(), key)))
            names = value if isinstance(value, list) else [value]
            if not all(type(one) is str for one in names):
                raise self.error("takes properties in quotes, such as augmenter.eps", key)
            axes[key] = tuple(part.strip() for one in names for part in one.split(","))
        caption = self.value("caption", table.get("caption", ""), str)
        title = re.sub(r"[^\w.-]+", "-", self.value("name", table.get("name", name), str))
        try:
            return Layout(axes["rows"], axes["columns"], title, caption)
        except UserError as error:
            raise self.error(str(error), "table") from error

    def changed(self, grid: Grid, settings: Mapping[str, str]) -> Grid:
        """The grid with the changes of its [set] table."""
        from bench.plan.changes import Changes, changed_grid

        if not settings:
            return grid
        try:
            values = {name: tuple(text.split("|")) for name, text in settings.items()}
            return changed_grid(grid, Changes(values))
        except UserError as error:
            raise self.error(str(error), "set") from error

    def space(self, table: Any, owner: str = "") -> dict[str, str]:
        """The [space] table in the syntax of `bench tune --space`; in TOML, `gcn.layers = 4` is a nested table."""
        if not isinstance(table, dict):
            raise self.error("must be a [space] table", "space")
        found: dict[str, str] = {}
        for key, value in table.items():
            if isinstance(value, dict):
                if owner.count(".") > 4:
                    raise self.error("has tables in tables in tables; write plug-in.setting = value", "space")
                found |= self.space(value, f"{owner}{key}.")
            elif isinstance(value, list):
                found[f"{owner}{key}"] = "|".join(show(item) for item in value)
            else:
                found[f"{owner}{key}"] = show(value)
        return found

    def check_keys(self, table: Mapping[str, Any], known: Mapping[str, type], block: int | None = None) -> None:
        for key in table:
            if key not in known:
                raise self.error(str(unknown("key", key, known)), key, block=block)

    def check_training(self, training: Mapping[str, Any]) -> None:
        for key, value in training.items():
            try:
                Training().with_settings({key: value})
            except UserError as error:
                raise self.error(str(error), key) from error

    def axis(self, key: str, value: Any, block: int | None = None) -> list[Any]:
        values = value if isinstance(value, list) else [value]
        if not values:
            raise self.error("is empty; give one value or more", key, block=block)
        return [self.value(key, item, AXES[key], block) for item in values]

    def value(self, key: str, value: Any, kind: type, block: int | None = None) -> Any:
        if type(value) is not kind:
            words = "whole numbers" if kind is int else "text in quotes"
            raise self.error(f"takes {words}, not {value!r}", key, value, block)
        try:
            self.checks.get(key, str)(value)
        except UserError as error:
            raise self.error(str(error), key, value, block) from error
        return value

    def error(self, reason: str, key: str, value: Any = None, block: int | None = None) -> UserError:
        line = self.line_of(key, value, block)
        place = f"{self.path} line {line}" if line else str(self.path)
        return UserError(f"{place}: {key}: {reason}")

    def line_of(self, key: str, value: Any, block: int | None) -> int | None:
        """The line of a key, or of one of its values if a list spans several lines."""
        heads = [n for n, text in enumerate(self.lines) if re.match(r"\s*\[\[\s*block\s*\]\]", text)]
        start = heads[block] if block is not None and block < len(heads) else 0
        named = re.compile(rf"\s*\[*\s*[\"']?{re.escape(key)}[\"']?\s*(=|\])")
        found = next((n for n in range(start, len(self.lines)) if named.match(self.lines[n])), None)
        if found is None:
            return None
        for n in range(found, len(self.lines) if value is not None else found):
            if n > found and re.match(r"\s*(\[|[\w\"'-]+\s*=)", self.lines[n]):
                break  # the next key or table
            text = self.lines[n].partition("=")[2] if n == found else self.lines[n]
            if str(value) in text:
                return n + 1
        return found + 1


def _check_k(value: int) -> None:
    if value < 1:
        raise UserError(f"{value} is not a label budget; give at least one labeled graph per class")


def _check_name(value: str) -> None:
    """The name is used for an MLflow experiment and a folder."""
    if not value.isprintable() or not 0 < len(value.strip()) <= 200 or value in (".", ".."):
        raise UserError(
            f"{value[:50]!r} cannot be the name of a grid; use 1 to 200 letters, digits, spaces and punctuation marks"
        )


def _check_features(value: str) -> None:
    if value not in (*FEATURES, "auto"):
        raise unknown("features", value, (*FEATURES, "auto"))
