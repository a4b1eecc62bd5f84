"""`bench status --grid`: what a ledger lacks of a whole grid, whether or not it was planned."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.datasets import cheap_info
from bench.plan.cells import Cell
from bench.plan.grids import Grid
from bench.plan.identity import REGISTRIES
from bench.plan.plugin_cache import Resolver
from bench.plan.staleness import Here
from bench.protocol.training import featureless
from bench.registry import UserError
from bench.results.ledger import LedgerState
from bench.words import counted
from tables.specs import Coordinate

_PARTS = ("augmenter", "backbone", "readout", "learner")
Place = tuple[Coordinate, str]  # a cell as a grid names it, and its training preset


@dataclass(frozen=True)
class Holding:
    """What a ledger has of one cell: finished trials, and whether other versions produced them."""

    done: int
    stale: bool


@dataclass(frozen=True)
class GridShare:
    """A grid and the progress of each of its cells."""

    grid: Grid
    held: Mapping[Coordinate, Holding]

    @property
    def trials(self) -> int:
        """The number of trials of a complete cell."""
        return self.grid.folds * self.grid.repeats

    @property
    def missing(self) -> list[Coordinate]:
        return [place for place, holding in self.held.items() if holding.done < self.trials]

    @property
    def words(self) -> str:
        complete, size = len(self.held) - len(self.missing), counted(len(self.held), "cell")
        head = f"grid {self.grid.name}, preset {self.grid.preset}: {complete} of {size}"
        return f"{head}, missing:" if self.missing else f"{head}, nothing is missing"


def print_grid_status(state: LedgerState, grid: Grid, data: Path, console: Console) -> None:
    """Print how many cells of the grid are complete and, by dataset, which are not."""
    known = _held(state, data)
    share = share_of(grid, known, data)
    lines = [share.words, *(f"  {line}" for line in missing_lines(share))]
    stale = sum(holding.stale for holding in share.held.values())
    if stale:
        lines.append(f"{counted(stale, 'cell')} measured with other versions than those here: a run measures them anew")
    for preset in dict.fromkeys(name for _, name in known if name != grid.preset):
        other = share_of(replace(grid, preset=preset), known, data) if _is_plain(preset) else None
        if other is not None and any(holding.done for holding in other.held.values()):
            complete = len(other.held) - len(other.missing)
            lines.append(f"with --preset {preset}: {complete} of {counted(len(other.held), 'cell')}")
    for line in lines:
        for part in wrapped_line(line, console.width):
            console.print(part, markup=False, highlight=False, soft_wrap=True)


def wrapped_line(line: str, width: int) -> list[str]:
    """The line, wrapped; names and settings are not broken."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _is_plain(preset: str) -> bool:
    from bench.protocol.training import PRESETS

    return preset in PRESETS


def _held(state: LedgerState, data: Path) -> dict[Place, list[tuple[Cell, Holding]]]:
    """The recorded cells as a grid names them; tuned cells are separate and fill no grid."""
    here, found = Here(data), dict[Place, list[tuple[Cell, Holding]]]()
    for key, cell in state.cells.items():
        done = len(state.done(key))
        if done and not cell.tuned:
            place = Coordinate(cell.dataset, cell.k, *map(cell.part_label, _PARTS))
            entry = (cell, Holding(done, bool(here.differs(cell))))
            found.setdefault((place, cell.training.preset), []).append(entry)
    return found


def share_of(grid: Grid, known: Mapping[Place, Sequence[tuple[Cell, Holding]]], data: Path) -> GridShare:
    """The best recorded result for each cell of the grid; nothing for cells without one."""
    resolver, held = Resolver(), {}
    for at in grid.cells:
        training, features = grid.settled(at)
        wanted = {features} if features != "auto" else _usual_features(at.dataset, training.preset, data)
        found = known.get((_canonical(at, resolver), training.preset), ())
        fitting = [
            holding for cell, holding in found if cell.features in wanted and grid.splits in ("auto", cell.splits)
        ]
        held[at] = max(fitting, key=lambda one: (one.done, not one.stale), default=Holding(0, False))
    return GridShare(grid, held)


def _usual_features(dataset: str, preset: str, data: Path) -> set[str]:
    try:
        known = cheap_info(dataset, data).has_features
    except UserError:  # a path from another machine, for example
        known = None
    return {None: {"native", featureless(preset)}, True: {"native"}, False: {featureless(preset)}}[known]


def _canonical(at: Coordinate, resolver: Resolver) -> Coordinate:
    """The labels of a cell in the ledger: settings in canonical order, defaults left out."""
    labels: dict[str, Any] = {
        part: resolver.resolve(REGISTRIES[part], spec).choice.label
        for part in _PARTS
        if ":" in (spec := str(getattr(at, part)))
    }
    return replace(at, where=(), **labels)


def missing_lines(share: GridShare) -> list[str]:
    """The incomplete cells by dataset; cells that differ only in k share a line."""
    size: dict[str, int] = {}
    for place in share.held:
        size[place.dataset] = size.get(place.dataset, 0) + 1
    lines = []
    for dataset, total in size.items():
        places = [place for place in share.missing if place.dataset == dataset]
        begun = [place for place in places if share.held[place].done]
        if len(places) == total and not begun:
            lines.append(f"{dataset}: {'its only cell' if total == 1 else f'all {total} cells'}")
        elif places:
            lines.append(f"{dataset}: {len(places)} of {counted(total, 'cell')}")
            lines += [f"  {line}" for line in _by_method(place for place in places if place not in begun)]
            for place in begun:
                trials = f"{share.held[place].done} of {share.trials} trials"
                lines.append(f"  k = {place.k}; {_model(place)}: {place.augmenter}, {trials}")
    return lines


def _by_method(places: Iterable[Coordinate]) -> list[str]:
    """One line for all methods that lack the same label budgets with the same model."""
    budgets: dict[tuple[str, str], list[int]] = {}
    for place in places:
        budgets.setdefault((_model(place), place.augmenter), []).append(place.k)
    methods: dict[tuple[str, str], list[str]] = {}
    for (model, augmenter), ks in budgets.items():
        methods.setdefault((", ".join(map(str, sorted(ks))), model), []).append(augmenter)
    return [f"k = {ks}; {model}: {', '.join(names)}" for (ks, model), names in methods.items()]


def _model(place: Coordinate) -> str:
    """The model that is trained, and what else the grid varies about it."""
    model = f"{place.backbone} {place.readout}" if place.backbone else place.learner
    return " ".join([model, *map("=".join, place.where)])
