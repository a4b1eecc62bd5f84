"""Divides a plan among machines that share nothing: `--shard 3/8` is the third of eight equal parts."""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from augmenters import AUGMENTERS
from bench.plan.cells import Cell, Trial
from bench.registry import UserError

MOST_SHARDS = 10_000


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`.

    Trials of similar cost are distributed dataset by dataset, the largest first, always to the part with the least
    work. Each part thus gets its share of every dataset and label budget, whatever the cost of a dataset's trials. With
    measured costs, the parts would differ between machines.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse `3/8`."""
        found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count <= MOST_SHARDS:
            raise UserError(
                f"--shard {text} is not a valid part; write --shard 1/{count or 8} to --shard {count or 8}/"
                f"{count or 8}, with at most {MOST_SHARDS} parts"
            )
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, cells: Sequence[Cell], trials: Sequence[Trial]) -> frozenset[tuple[str, Trial]]:
        """The keys and trials of this part."""
        datasets: dict[str, dict[tuple[str, ...], list[Cell]]] = {}
        for cell in cells:
            datasets.setdefault(cell.dataset, {}).setdefault(_together(cell), []).append(cell)
        mine: set[tuple[str, Trial]] = set()
        overall = [0.0] * self.count
        for _, pieces in sorted(datasets.items()):
            ranked = sorted(pieces.items(), key=lambda piece: (-_cost(piece[1]), piece[0]))
            total = sum(_cost(piece) for piece in pieces.values()) * max(len(trials), 1)
            parts = [(0.0, overall[number], number) for number in range(self.count)]
            heapq.heapify(parts)
            for (_, piece), trial in itertools.product(ranked, trials):
                load, before, number = heapq.heappop(parts)
                if number == self.number - 1:
                    mine |= {(cell.key, trial) for cell in piece}
                heapq.heappush(parts, (load + _cost(piece) / total, before, number))
            for load, before, number in parts:
                overall[number] = before + load
        return frozenset(mine)


def _together(cell: Cell) -> tuple[str, ...]:
    """Cells whose trials share preparations, so that one machine runs them."""
    family = AUGMENTERS.entry(cell.augmenter.name).target
    return (cell.model, str(family), f"{cell.k}", cell.features, cell.splits, repr(cell.training))


def _cost(piece: Sequence[Cell]) -> float:
    """The cost of a trial relative to others of its dataset: it grows with the number of labeled graphs."""
    return float(len(piece) * (piece[0].k + 1))
