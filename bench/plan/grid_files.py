"""A user's own grid: a TOML file with the words of the command line, checked before anything runs.

Top-level axes give a product; `[[block]]` tables give several, each with axes of its own over the shared ones.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from augmenters import AUGMENTERS
from bench.datasets import resolve_dataset
from bench.learning import LEARNERS
from bench.plan.grids import Grid, product
from bench.plan.plugin_cache import Resolver
from bench.protocol.features import FEATURES
from bench.protocol.training import Training, preset
from bench.registry import UserError, show, unknown
from models import BACKBONES, READOUTS
from tables.specs import Coordinate

AXES = {"datasets": str, "augmenters": str, "k": int, "backbones": str, "readouts": str, "learners": str}
LARGEST_FILE = 2**24  # bytes
MOST_CELLS = 1_000_000
SINGLE = {"name": str, "features": str, "splits": str, "folds": int, "repeats": int, "preset": str}


def read_grid(path: Path, data_root: Path) -> Grid:
    """The grid of a file; every mistake is told with its line."""
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
    """Checks a parsed grid file; errors carry the line of the key or value they speak of."""

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
            "folds": lambda value: Grid("check", (), folds=value),
            "repeats": lambda value: Grid("check", (), repeats=value),
        }

    def grid(self, raw: Mapping[str, Any]) -> Grid:
        blocks, training = raw.get("block", []), raw.get("training", {})
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise self.error("must be written as [[block]] tables", "block")
        if not isinstance(training, dict):
            raise self.error("must be a [training] table", "training")
        top = {key: value for key, value in raw.items() if key not in ("block", "training", "space")}
        self.check_keys(top, {**AXES, **SINGLE, "training": dict, "block": list, "space": dict})
        single = {key: self.value(key, top[key], SINGLE[key]) for key in SINGLE if key in top}
        shared = {key: self.axis(key, top[key]) for key in AXES if key in top}
        cells: list[Coordinate] = []
        for number, block in enumerate(blocks or [{}]):
            self.check_keys(block, AXES, number)
            axes = {**shared, **{key: self.axis(key, value, number) for key, value in block.items()}}
            if "datasets" not in axes:
                raise UserError(f'{self.path}: no datasets; add a line such as datasets = ["PROTEINS"]')
            if len(cells) + math.prod(len(values) for values in axes.values()) > MOST_CELLS:
                raise UserError(f"{self.path}: the axes give more than {MOST_CELLS} cells; name fewer values")
            cells.extend(product(**axes))
        self.check_training(training)
        self.resolver.save()
        name = single.pop("name", self.path.stem)
        _check_name(name)
        space = self.space(raw.get("space", {}))
        return Grid(name, tuple(dict.fromkeys(cells)), training=training, space=space, **single)

    def space(self, table: Any, owner: str = "") -> dict[str, str]:
        """The [space] table in the words of `bench tune --space`; `gcn.layers = 4` is a table in a table to TOML."""
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
        """The line of a key, or of one of its values where a list goes over several lines."""
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
        raise UserError(f"{value} is not a label budget; give one labelled graph per class or more")


def _check_name(value: str) -> None:
    """It becomes an experiment of MLflow and a folder."""
    if not value.isprintable() or not 0 < len(value.strip()) <= 200 or value in (".", ".."):
        raise UserError(f"{value[:50]!r} cannot be the name of a grid; use 1 to 200 letters, digits, blanks and signs")


def _check_features(value: str) -> None:
    if value not in (*FEATURES, "auto"):
        raise unknown("features", value, (*FEATURES, "auto"))
