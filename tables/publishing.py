"""Every figure that a ledger can fill, by the name of its file, each with a caption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from bench.registry import UserError
from tables import figures
from tables.compare import compare
from tables.figures.ranks import top_words
from tables.frames import rates
from tables.grid import Context, Request, context_of, draws_used
from tables.own_specs import LEARNERS_BY_K
from tables.selection import Index
from tables.specs import LONG_NAMES
from tables.wording import TEST, conditions, detectable_words, noun

_HOLM = f"significant at 5 % ({TEST}, Holm's correction over the methods of a dataset)"


@dataclass(frozen=True)
class Drawn:
    """A figure, the name of its file, and what a reader must know of it."""

    name: str
    figure: Any
    caption: str


@dataclass(frozen=True)
class _Source:
    """What the figures are drawn from."""

    index: Index
    request: Request
    width: float
    all_datasets: bool  # whether what is absent is missing, and not left out on purpose

    @property
    def noun(self) -> str:
        return noun(self.request.metric)

    def caption(self, text: str, part: pd.DataFrame) -> str:
        """The text, the conditions of the cells that are drawn, and what their differences can show."""
        return " ".join([text, *conditions(self._context(part)), detectable_words(part["paired"])]).strip()

    def _context(self, part: pd.DataFrame) -> Context:
        index, keys = self.index.using(draws_used(self.request, papers=True)), list(part["cell"])
        there = set(part["dataset"])
        papers = self.all_datasets and there <= set(LONG_NAMES)
        absent = tuple(name for name in LONG_NAMES if name not in there) if papers else ()
        return replace(context_of(index, keys), absent=absent, left_out=index.left_out(keys))


def all_figures(
    index: Index, request: Request, model: tuple[str, str], datasets: Sequence[str], width: float
) -> Iterator[Drawn]:
    """One figure after the other; what has nothing to show is left out, unless nothing has.

    `model`: the backbone and readout whose methods are shown. Learners without a network have figures of their own.
    """
    source = _Source(index, request, width, not datasets)
    beside = list(_of_learners(source, datasets))
    try:
        data = figures.curves(index, request, *model, datasets)
    except UserError:
        if not beside:
            raise
    else:
        yield from _of_methods(source, data)
        yield from _beside_the_paper(source)
    yield from beside


def _of_methods(source: _Source, data: figures.Curves) -> Iterator[Drawn]:
    frame, width, what = data.points, source.width, source.noun
    yield from _drawn(
        [
            ("main_exp", partial(figures.label_rate_figure, data, width), _over_rates(source, data)),
            (
                "main_exp-differences",
                partial(figures.difference_curves_figure, data, width),
                source.caption(
                    f"Paired difference of {what} to plain training by number of labeled graphs per class, in "
                    f"percentage points, with 95 % bands ({TEST}; not corrected for the number of methods).",
                    _with_lines(data),
                ),
            ),
        ]
    )
    for k in rates(frame):
        part = frame[frame["k"] == k]
        heat = f"Paired difference of {what} to plain training at k = {k}, in percentage points. *: {_HOLM}."
        cost = (
            f"Mean {what} at k = {k} with 95 % intervals over the folds, against seconds of augmentation and training "
            "per trial; the broken line is the level of plain training."
        )
        yield from _drawn(
            [
                (f"differences-k{k}", partial(figures.forest_figure, frame, k, width), _forest(source, part, k)),
                (f"heat-map-k{k}", partial(figures.heat_map_figure, frame, k, width), source.caption(heat, part)),
                (f"cost-k{k}", partial(figures.cost_figure, frame, k, width), source.caption(cost, part)),
            ]
        )
    for k in figures.ranking_rates(data):
        found, part = figures.rank_methods(data, k), frame[frame["k"] == k]
        if found is None:
            continue
        start = f"Mean ranks of the methods by {what} over {len(found.blocks)} datasets at k = {k}"
        top = top_words(found)
        ranks = f"{start}, with 95 % bootstrap intervals over datasets: {top}."
        nemenyi = f"{start}; a bar joins methods that Nemenyi's test does not distinguish at 5 %."
        yield Drawn(f"ranks-k{k}", figures.ranks_figure(found, k, width), source.caption(ranks, part))
        diagram = figures.critical_difference_figure(found, k, width)
        yield Drawn(f"critical-difference-k{k}", diagram, source.caption(nemenyi, part))


def _over_rates(source: _Source, data: figures.Curves) -> str:
    text = (
        f"Mean {source.noun} by number of labeled graphs per class. Grey: 95 % interval of plain training. Panels "
        "start at different heights but span the same number of points."
    )
    return source.caption(text, _with_lines(data))


def _with_lines(data: figures.Curves) -> pd.DataFrame:
    return data.points[data.points["dataset"].isin(data.with_lines)]


def _forest(source: _Source, part: pd.DataFrame, k: int, plain: str = "plain training") -> str:
    text = (
        f"Paired difference of {source.noun} to {plain} at k = {k}, in percentage points, with 95 % intervals. "
        f"Filled: {_HOLM}. Grey: within one point of {plain}."
    )
    return source.caption(text, part)


def _of_learners(source: _Source, datasets: Sequence[str]) -> Iterator[Drawn]:
    try:
        data = figures.learner_curves(source.index, source.request, datasets)
    except figures.NothingToDraw:
        return
    frame, width = data.points, source.width
    several: list[tuple[str, Callable[[], Any], str]] = [
        (LEARNERS_BY_K.name, partial(figures.label_rate_figure, data, width), _over_rates(source, data))
    ]
    for k in rates(frame):
        draw = partial(figures.forest_figure, frame, k, width, against="plain GCN", order=data.methods)
        several.append((f"learners-differences-k{k}", draw, _forest(source, frame[frame["k"] == k], k, "plain GCN")))
    yield from _drawn(several)


def _drawn(several: Iterable[tuple[str, Callable[[], Any], str]]) -> Iterator[Drawn]:
    for name, draw, caption in several:
        try:
            yield Drawn(name, draw(), caption)
        except figures.NothingToDraw:
            continue


def _beside_the_paper(source: _Source) -> Iterator[Drawn]:
    try:
        found = compare(source.index, source.request)
    except UserError:  # nothing to compare, or cells of the paper's tables that may not stand together
        return
    frame = figures.paper_frame(found)
    for table in dict.fromkeys(frame["table"]):
        text = (
            f"Our mean {source.noun} (filled) and that of the paper's table {table} (hollow), each with its 95 % "
            f"interval. {'; '.join(found.conditions)}."
        )
        yield Drawn(f"paper-{table}", figures.dumbbell_figure(frame, table, source.width), text)
