"""Tables and figures as shown in notebooks and written to files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from markupsafe import Markup, escape

from bench.registry import UserError, unknown

if TYPE_CHECKING:
    import pandas as pd

    from bench.public.results import Results
    from bench.results.frame import Results as Frames
    from tables.grid import Grid, Request
    from tables.selection import Index


class Selection(TypedDict, total=False):
    """Which cells to show, with the options of `bench tables`."""

    metric: str
    settings: str | Sequence[str]  # default, tuned, or both
    where: Mapping[str, Any]
    mix: Sequence[str]
    strict: bool


class TableOptions(Selection, total=False):
    """Which cells to show, and how the table looks."""

    mark: str
    labels: Mapping[str, str]
    caption: str
    name: str


class Table:
    """A filled table: `to_latex()`, `to_markdown()`, `to_csv()`, `to_frame()`; notebooks render it directly.

    `kind` is values, differences (to plain training, on the same trials) or cost.
    """

    def __init__(self, grid: Grid, index: Index) -> None:
        self.grid, self.index = grid, index

    def to_latex(self, path: str | Path | None = None, kind: str = "values", style: str = "booktabs") -> str:
        """One table environment; the styles are booktabs and paper."""
        from tables import latex

        return _written(latex.table(self.grid, kind, style), path)

    def to_markdown(self, path: str | Path | None = None, kind: str = "values") -> str:
        """A Markdown table with its caption and notes."""
        from tables import formats

        return _written(formats.markdown(self.grid, kind), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """One line per cell with everything known about it, not rounded."""
        from tables import formats

        return _written(formats.tidy(self.grid, self.index).to_csv(index=False, float_format="%.12g"), path)

    def to_frame(self) -> pd.DataFrame:
        """The means, as fractions, with the table's rows and columns."""
        import pandas as pd

        spec = self.grid.spec
        spanned = any(column.span for column in spec.columns)
        heads = [(column.span, column.head) for column in spec.columns]
        columns = pd.MultiIndex.from_tuples(heads) if spanned else pd.Index([head for _, head in heads])
        rows = [[entry.value.mean for entry in line.entries] for line in self.grid.lines]
        return pd.DataFrame(rows, index=[line.name for line in self.grid.lines], columns=columns)

    def __repr__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        return str(_html(self.grid))


def filled(frames: Frames, rows: Any, columns: Any, options: TableOptions) -> Table:
    """A table of some properties by others, or the table with that name, from these results."""
    from tables.grid import fill
    from tables.layouts import Layout, arranged, having, relabeled
    from tables.own_specs import OWN_TABLES
    from tables.selection import Index
    from tables.specs import TABLES

    index = Index(frames)
    request, places = request_of(index, options)
    labels = dict(options.get("labels", {}))
    named = {**TABLES, **OWN_TABLES}
    if isinstance(rows, str) and rows in named and columns is None:
        return Table(fill(index, relabeled(named[rows], labels), request), index)
    down = _names(rows)
    over = tuple(name for name in Layout().columns if name not in down) if columns is None else _names(columns)
    layout = Layout(down, over, options.get("name", Layout().name), options.get("caption", ""), labels)
    spec = arranged(layout, having(index.described(request.settings, request.pick), places))
    return Table(fill(index, spec, request), index)


def page(results: Results, title: str, options: Selection, path: str | Path | None = None) -> str:
    """One self-contained HTML page about all of these results, with their loss curves."""
    from tables.selection import Index

    request, places = request_of(Index(results.frames), options)
    if places:
        raise UserError(f"where={next(iter(places))} chooses cells of a table; a report shows every cell")
    return _written(page_of(results, title, [request]), path)


def page_of(results: Results, title: str, requests: Sequence[Request]) -> str:
    """The same for one or several choices of cells, whose tables stand below each other."""
    from bench.results.verification import words_of
    from tables.explorer import Curves
    from tables.report import render

    curves, verified = Curves.of(results.state.records()), words_of(results.verifications)
    marked = [replace(request, mark="ties") for request in requests]
    return render(results.frames, marked, title, curves, verified=verified)


def request_of(index: Index, options: Selection) -> tuple[Request, dict[str, str]]:
    """The request that the keywords describe, and, separately, the properties that select cells of a table."""
    from bench.registry import show
    from tables.grid import Request
    from tables.selection import Pick

    for name in options:
        if name not in TableOptions.__annotations__ and name not in Selection.__annotations__:
            raise unknown("keyword", name, {**Selection.__annotations__, **TableOptions.__annotations__})
    where = {name: value if isinstance(value, str) else show(value) for name, value in options.get("where", {}).items()}
    facts = {name: value for name, value in where.items() if name in index.facets}
    places = {name: value for name, value in where.items() if name not in index.facets}
    pick = Pick(facts, frozenset(options.get("mix", ())))
    settings = _names(options.get("settings", "default"))
    mark = dict(options).get("mark", "best")
    return (
        Request(options.get("metric", "accuracy"), settings, str(mark), pick, options.get("strict", False)),
        places,
    )


def _names(given: Any) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else list(given)
    return tuple(part.strip() for text in texts for part in str(text).split(",") if part.strip())


def _html(grid: Grid) -> Markup:
    from tables.wording import caption, notes, shown

    columns, spanned = grid.spec.columns, any(column.span for column in grid.spec.columns)
    rows: list[Markup] = []
    if spanned:
        cells = [Markup('<th colspan="{}">{}</th>').format(width, name) for name, width in grid.spec.spans()]
        rows.append(Markup("<tr><th></th>{}</tr>").format(Markup("").join(cells)))
    heads = [Markup("<th>{}</th>").format(column.head) for column in columns]
    rows.append(Markup("<tr><th>{}</th>{}</tr>").format(grid.spec.corner, Markup("").join(heads)))
    for line in grid.lines:
        texts = [shown(entry, "values", grid.mark) for entry in line.entries]
        cells = [
            Markup("<td>{} {} {}</td>").format(
                Markup("<b>{}</b>").format(one.main) if one.bold else one.main, one.spread, " ".join(one.raised)
            )
            for one in texts
        ]
        rows.append(Markup("<tr><th>{}</th>{}</tr>").format(line.name, Markup("").join(cells)))
    below = Markup("<br>").join(escape(text) for text in notes(grid))
    return Markup("<table><caption>{}</caption>{}</table><p><small>{}</small></p>").format(
        caption(grid), Markup("").join(rows), below
    )


def _written(text: str, path: str | Path | None) -> str:
    """The text, also written to a file if one is given."""
    from tables.writing import whole_file

    if path is not None:
        place = Path(path).expanduser()
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(place) as part:
                part.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {place}: {error.strerror}; choose another path") from error
    return text


@dataclass(frozen=True)
class Picture:
    """A figure; `figure` is the matplotlib figure, which you can modify before saving."""

    figure: Any

    def save(self, path: str | Path) -> Path:
        """Save as pdf, svg or png, depending on the file extension."""
        from tables.style import FORMATS, save

        place = Path(path).expanduser()
        kind = place.suffix.removeprefix(".")
        if kind not in FORMATS:
            raise UserError(f"a figure cannot be written as {place.name}; end the name with {', '.join(FORMATS)}")
        return save(self.figure, place.parent, place.stem, [kind])[0]

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
        return stream.getvalue()


@dataclass(frozen=True)
class Plots:
    """The figures of some results."""

    frames: Frames

    def label_rate(
        self, datasets: Sequence[str] = (), backbone: str = "gcn", readout: str = "mean", **options: Unpack[Selection]
    ) -> Picture:
        """Every method over the number of labeled graphs per class, one panel per dataset."""
        from tables import figures
        from tables.selection import Index

        index = Index(self.frames)
        request, _ = request_of(index, options)
        return Picture(figures.label_rate_figure(figures.curves(index, request, backbone, readout, _names(datasets))))

    def differences(
        self,
        k: int | None = None,
        datasets: Sequence[str] = (),
        backbone: str = "gcn",
        readout: str = "mean",
        **options: Unpack[Selection],
    ) -> Picture:
        """Paired differences of each method to plain training with intervals, one panel per dataset.

        With several label rates, shows ten if available, otherwise the largest, unless `k` is given.
        """
        from tables.figures import forest_figure

        return Picture(forest_figure(*self._at(k, datasets, backbone, readout, options)))

    def heat_map(
        self,
        k: int | None = None,
        datasets: Sequence[str] = (),
        backbone: str = "gcn",
        readout: str = "mean",
        **options: Unpack[Selection],
    ) -> Picture:
        """The same differences as a map of methods by datasets."""
        from tables.figures import heat_map_figure

        return Picture(heat_map_figure(*self._at(k, datasets, backbone, readout, options)))

    def cost(
        self,
        k: int | None = None,
        datasets: Sequence[str] = (),
        backbone: str = "gcn",
        readout: str = "mean",
        **options: Unpack[Selection],
    ) -> Picture:
        """Each method's accuracy against its seconds per trial, a panel per dataset."""
        from tables.figures import cost_figure

        return Picture(cost_figure(*self._at(k, datasets, backbone, readout, options)))

    def _at(
        self, k: int | None, datasets: Sequence[str], backbone: str, readout: str, options: Selection
    ) -> tuple[pd.DataFrame, int]:
        """Every method of one model, and the label rate to draw."""
        from tables import figures
        from tables.frames import rates
        from tables.selection import Index

        index = Index(self.frames)
        request, _ = request_of(index, options)
        frame = figures.method_frame(index, request, backbone, readout, _names(datasets))
        there = rates(frame)
        if k is not None and k not in there:
            raise UserError(f"no finished trial has k={k}; there are: {', '.join(map(str, there))}")
        return frame, k if k is not None else 10 if 10 in there else there[-1]
