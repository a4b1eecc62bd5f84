"""The paper's numbers, and where they contradict each other, as data.

`numbers.csv`: every mean and standard deviation of the five tables, in percent, as printed. `contradictions.csv`:
configurations with two values, and sentences of the text that the tables do not support.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tables.specs import Coordinate

TRIALS = 30  # 3 runs on each of 10 folds (the paper's "Comparison Results")


@dataclass(frozen=True)
class Number:
    """One printed number, in percent."""

    table: str
    row: str
    coordinate: Coordinate
    mean: float
    std: float
    bold: bool


@dataclass(frozen=True)
class Contradiction:
    """Two printed numbers that cannot both be right, or that contradict the text."""

    kind: str
    coordinate: Coordinate
    table: str
    other: Coordinate
    other_table: str
    statement: str
    values: tuple[float, float, float, float]  # mean, std, and mean, std of the other number

    def touches(self, coordinate: Coordinate) -> bool:
        return coordinate in (self.coordinate, self.other)


def _rows(name: str) -> list[dict[str, str]]:
    with files(__package__).joinpath(name).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@cache
def numbers() -> tuple[Number, ...]:
    """Every number of the paper's five tables, in order."""
    return tuple(
        Number(
            row["table"],
            row["row"],
            Coordinate(row["dataset"], int(row["k"]), row["augmenter"], row["backbone"], row["readout"]),
            float(row["mean"]),
            float(row["std"]),
            row["bold"] == "1",
        )
        for row in _rows("numbers.csv")
    )


@cache
def contradictions() -> tuple[Contradiction, ...]:
    """Where the paper contradicts itself."""
    found = []
    for row in _rows("contradictions.csv"):
        place, rest = (row["dataset"], int(row["k"])), (row["backbone"], row["readout"])
        values = tuple(float(row[name]) for name in ("mean", "std", "other_mean", "other_std"))
        found.append(
            Contradiction(
                row["kind"],
                Coordinate(*place, row["augmenter"], *rest),
                row["table"],
                Coordinate(*place, row["other_augmenter"], *rest),
                row["other_table"],
                row["statement"],
                (values[0], values[1], values[2], values[3]),
            )
        )
    return tuple(found)
