"""What of a study is measured: its cells without a trial, and those that are short of some."""

from __future__ import annotations

from collections import Counter

from bench.plan.grids import Grid
from bench.protocol.training import featureless
from bench.results.ledger import LedgerState
from tables.specs import LONG_NAMES


def holes(state: LedgerState, grid: Grid) -> list[str]:
    """How many of a grid's cells are complete, and where the others are; empty if all of them are."""
    done: dict[tuple[object, ...], int] = {}
    for key, cell in state.cells.items():
        parts = (cell.part_label(part) for part in ("augmenter", "backbone", "readout", "learner"))
        place = (cell.dataset, cell.k, *parts, cell.training, cell.features)
        done[place] = max(done.get(place, 0), len(state.done(key)))
    short: list[str] = []
    absent: list[str] = []
    whole = grid.folds * grid.repeats
    for at in grid.cells:
        training, features = grid.settled(at)
        kinds = ("native", featureless(training.preset)) if features == "auto" else (features,)
        place = (at.dataset, at.k, at.augmenter, at.backbone, at.readout, at.learner, training)
        count = max(done.get((*place, kind), 0) for kind in kinds)
        if count < whole:
            (short if count else absent).append(at.dataset)
    if not short and not absent:
        return []
    complete = len(grid.cells) - len(short) - len(absent)
    found = [f"The study is not finished: {complete} of its {len(grid.cells)} cells have all {whole} trials."]
    found += [f"Without a trial: {_by_dataset(absent)}."] if absent else []
    if short:
        found.append(f"With fewer than {whole}: {_by_dataset(short)}; those with trials still to run are left out.")
    return found


def _by_dataset(names: list[str]) -> str:
    counts = Counter(names)
    return ", ".join(f"{count} on {LONG_NAMES.get(name, name)}" for name, count in counts.items())
