"""How complete each grid is, relative to the whole grid rather than to what was planned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tables.own_specs import EVERY_NAME, needed
from tables.specs import FIGURE, TABLES, Coordinate

FULL = "full"
COMPLETE = 30  # trials of a cell of a named grid; draws added for precision beyond them make no cell incomplete


@dataclass(frozen=True)
class Share:
    """The complete cells of one grid, and the total number."""

    grid: str
    complete: int
    cells: int
    absent: tuple[str, ...]  # datasets without any results

    @property
    def words(self) -> str:
        lacking = f"; nothing of {', '.join(self.absent)}" if self.absent else ""
        return (
            f"grid {self.grid}: {self.complete} of {self.cells} cell{'' if self.cells == 1 else 's'} complete{lacking}"
        )


def shares(grids: Iterable[str], counts: Mapping[Coordinate, tuple[int, int]]) -> list[Share]:
    """For each named grid that was run; `counts` has the finished and the planned trials of every cell on record.

    Where all grids of the paper were run one by one, the grid of all its cells comes first.
    """
    found = []
    named = dict.fromkeys(grids)
    whole = {*TABLES, FIGURE.name} <= set(named)
    for name in dict.fromkeys([FULL, *named] if whole else named):
        if name not in (*EVERY_NAME, FULL):
            continue
        cells = needed(name)
        held = {place: counts.get(place, (0, 0)) for place in cells}
        complete = sum(0 < done >= min(planned, COMPLETE) for done, planned in held.values())
        some = {place.dataset for place, (done, _) in held.items() if done}
        absent = tuple(dict.fromkeys(place.dataset for place in cells if place.dataset not in some))
        found.append(Share(name, complete, len(cells), absent))
    return found
