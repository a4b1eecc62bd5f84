"""The tables to print: those that were asked for, or every one that has a cell of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.registry import UserError, unknown
from bench.results.records import SCORES
from tables.grid import reference_of
from tables.own_specs import (
    EVERY_NAME,
    LEARNERS_BY_K,
    OWN_TABLES,
    learners_by_k,
    needed,
    specified,
    trimmed,
    without_network_by_k,
)
from tables.selection import Index, Pick
from tables.specs import FIGURE, MEASURE, TABLES, Coordinate, TableSpec, full, generic

CUSTOM = "custom"


def specs_for(index: Index, names: Sequence[str], settings: Sequence[str], pick: Pick | None = None) -> list[TableSpec]:
    """The requested tables; by default, every one that has a cell of its own, and `custom` for the rest."""
    there = set(index.coordinates(settings))
    beyond, asked = there - specified(), bool(names)
    if not names:
        paper = set(full())
        names = [name for name in (*TABLES, FIGURE.name) if there & paper & set(needed(name))]
        names += _own_tables(there - paper)
        in_tables = {place for name in OWN_TABLES for place in needed(name)}
        names += [LEARNERS_BY_K.name] if (there - in_tables) & without_network_by_k() else []
        names += [CUSTOM] if beyond else []
        if not names:
            raise UserError(f"there are no {' or '.join(settings)} cells yet; start with: bench run")
    found: list[TableSpec] = []
    for name in dict.fromkeys(names):
        if name == CUSTOM:
            found += _custom(index, there, beyond, pick or Pick())
        elif name == FIGURE.name:
            shown = there & set(FIGURE.coordinates())
            found += generic(name, shown or FIGURE.coordinates(), FIGURE.caption)
        elif name == LEARNERS_BY_K.name:
            found += learners_by_k(there)
        elif name in TABLES:
            found.append(TABLES[name])
        elif name in OWN_TABLES:
            found.append(OWN_TABLES[name] if asked else trimmed(OWN_TABLES[name], there))
        else:
            raise unknown("table", name, (*EVERY_NAME, CUSTOM))
    return found


def _own_tables(left: set[Coordinate]) -> Iterator[str]:
    """Tables of our own, so that every cell is in one; what several of them have stands in the first."""
    for name in OWN_TABLES:
        if left & set(needed(name)):
            yield name
            left = left - set(needed(name))


def _custom(index: Index, there: set[Coordinate], beyond: set[Coordinate], pick: Pick) -> Iterator[TableSpec]:
    """Cells that no specification of the paper contains, with their plain training; one table per metric."""
    if not beyond:
        raise UserError("every cell is already in another table; leave out the name 'custom'")
    by_metric: dict[str, set[Coordinate]] = {}
    for place in beyond:
        for metric in index.metrics_at(place, pick):
            by_metric.setdefault(metric, set()).add(place)
    caption = f"{MEASURE} by method, dataset and number of labeled graphs per class (k)."
    for metric in sorted(by_metric, key=lambda name: (name != SCORES[0], name)):
        plain = {reference_of(place) for place in by_metric[metric]}
        name = CUSTOM if metric == SCORES[0] else f"{CUSTOM}-{metric}"
        yield from generic(name, by_metric[metric] | (plain & there), caption)
