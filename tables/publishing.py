"""All figures that a ledger has data for, by file name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from bench.registry import UserError
from tables import figures
from tables.compare import compare
from tables.frames import rates
from tables.grid import Request
from tables.own_specs import LEARNERS_BY_K
from tables.selection import Index


def all_figures(
    index: Index, request: Request, model: tuple[str, str], datasets: Sequence[str], width: float
) -> Iterator[tuple[str, Any]]:
    """Yields names and figures; figures without data are left out, unless none has data.

    `model`: the backbone and readout whose methods are shown. Learners without a network have figures of their own.
    """
    beside = list(_of_learners(index, request, datasets, width))
    try:
        data = figures.curves(index, request, *model, datasets)
    except UserError:
        if not beside:
            raise
    else:
        yield from _of_methods(data, width)
        yield from _beside_the_paper(index, request, width)
    yield from beside


def _of_methods(data: figures.Curves, width: float) -> Iterator[tuple[str, Any]]:
    frame = data.points
    several: list[tuple[str, Callable[[], Any]]] = [
        ("main_exp", lambda: figures.label_rate_figure(data, width)),
        ("main_exp-differences", lambda: figures.difference_curves_figure(data, width)),
    ]
    for k in sorted(int(rate) for rate in frame["k"].unique()):
        several += [
            (f"differences-k{k}", lambda k=k: figures.forest_figure(frame, k, width)),  # type: ignore[misc]
            (f"heat-map-k{k}", lambda k=k: figures.heat_map_figure(frame, k, width)),  # type: ignore[misc]
            (f"cost-k{k}", lambda k=k: figures.cost_figure(frame, k, width)),  # type: ignore[misc]
        ]
    yield from _drawn(several)
    for k in figures.ranking_rates(data):
        found = figures.rank_methods(data, k)
        if found is not None:
            yield f"ranks-k{k}", figures.ranks_figure(found, width)
            yield f"critical-difference-k{k}", figures.critical_difference_figure(found)


def _of_learners(index: Index, request: Request, datasets: Sequence[str], width: float) -> Iterator[tuple[str, Any]]:
    try:
        data = figures.learner_curves(index, request, datasets)
    except figures.NothingToDraw:
        return
    several: list[tuple[str, Callable[[], Any]]] = [
        (LEARNERS_BY_K.name, lambda: figures.label_rate_figure(data, width))
    ]
    for k in rates(data.points):
        draw = partial(figures.forest_figure, data.points, k, width)
        several.append((f"learners-differences-k{k}", draw))
    yield from _drawn(several)


def _drawn(several: Iterable[tuple[str, Callable[[], Any]]]) -> Iterator[tuple[str, Any]]:
    for name, draw in several:
        try:
            yield name, draw()
        except figures.NothingToDraw:
            continue


def _beside_the_paper(index: Index, request: Request, width: float) -> Iterator[tuple[str, Any]]:
    try:
        frame = figures.paper_frame(compare(index, request))
    except UserError:  # nothing to compare, or cells of the paper's tables that cannot be combined
        return
    for table in dict.fromkeys(frame["table"]):
        yield f"paper-{table}", figures.dumbbell_figure(frame, table, width)
