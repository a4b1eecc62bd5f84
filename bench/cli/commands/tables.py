"""The publishing commands: tables, figures, the comparison with the paper, and the report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.chosen_tables import TableChoice
from bench.cli.options import DEFAULT_WORKSPACE, AddOption, DataOption, LabelOption, SetOption, WorkspaceOption
from bench.registry import UserError, unknown
from tables.specs import PLACE

if TYPE_CHECKING:
    from bench.results.records import Record
    from tables.grid import Grid, Request
    from tables.selection import Index, Pick

FromOption = Annotated[
    Path | None,
    typer.Option("--from", help="Read trials from a Parquet or JSON Lines file instead of the workspace's ledger."),
]
OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write to. Default: WORKSPACE/tables.")]
MetricOption = Annotated[
    str, typer.Option(help="Metric: accuracy, balanced_accuracy, macro_f1 or any other that was recorded.")
]
FeaturesOption = Annotated[
    str,
    typer.Option(
        help="Node features of datasets that have none of their own; several, comma-separated, give one table each."
    ),
]
SplitsOption = Annotated[str, typer.Option(help="Split family, `published` or `stratified`.")]
PresetOption = Annotated[str, typer.Option(help="Training preset.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(help="Select cells by any property: torch=2.13, augmenter-version=latest. Repeatable."),
]
MixOption = Annotated[
    list[str] | None, typer.Option(help="Allow the cells of one table to differ in this property. Repeatable.")
]
DrawsOption = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        min=0,
        help="Label draws per fold to use; 0 uses all. Default: three in the paper's tables, all elsewhere.",
        show_default=False,
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Fail if cells have missing trials instead of showing n/N.")
]
MarkOption = Annotated[
    str,
    typer.Option(help="Mark the best, all ties with the best (ties), or differences to plain training (significance)."),
]
SettingsOption = Annotated[
    str, typer.Option(help="Settings to show: default, tuned, or default,tuned for both side by side.")
]
OneSettingsOption = Annotated[str, typer.Option("--settings", help="Settings to show: default or tuned.")]


def tables(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="10labelrate, Match, GAE, GNN_Baseline, Pool, main_exp, learners, learners_by_k, custom, or "
            "a grid file. Default: every table with results."
        ),
    ] = None,
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    source: FromOption = None,
    out: OutOption = None,
    style: Annotated[str, typer.Option(help="LaTeX style: paper or booktabs.")] = "paper",
    mark: MarkOption = "best",
    metric: Annotated[
        str, typer.Option(help="Metric: accuracy, balanced_accuracy, ...", show_default="the dataset's primary metric")
    ] = "",
    settings: SettingsOption = "default",
    features: FeaturesOption = "",
    splits: SplitsOption = "",
    preset: PresetOption = "",
    where: WhereOption = None,
    mix: MixOption = None,
    repeats: DrawsOption = None,
    strict: StrictOption = False,
    standalone: Annotated[
        bool, typer.Option("--standalone", help="Also write one LaTeX document that compiles on its own.")
    ] = False,
    document_class: Annotated[str, typer.Option(help="Document class for --standalone: article or llncs.")] = "article",
    export: Annotated[Path | None, typer.Option(help="Also write every trial to this parquet file.")] = None,
    rows: Annotated[
        str, typer.Option(help="Rows of a table of your own: properties such as augmenter.eps or augmenter,backbone.")
    ] = "",
    columns: Annotated[str, typer.Option(help="Columns of that table. Default with --rows: dataset,k.")] = "",
    name: Annotated[str, typer.Option(help="File name of that table.", show_default="own")] = "",
    caption: Annotated[str, typer.Option(help="Caption of that table.", show_default=False)] = "",
    set_: SetOption = None,
    add: AddOption = None,
    label: LabelOption = None,
    data: DataOption = None,
) -> None:
    """Write tables from the ledger: LaTeX, CSV, Markdown and a macro for each cell.

    Name the paper's tables, build your own with --rows and --columns, or pass a grid file that describes one.
    """
    from dataclasses import replace

    from rich.console import Console

    from tables import figures, formats, latex
    from tables.grid import fill
    from tables.style import save
    from tables.terminal import show_grid
    from tables.wording import KINDS, pooled_lines

    folder = out or workspace / "tables"
    index = _index(workspace, source)
    facts, places = _sorted_out(where, index)
    requests = _requests(_picks(features, splits, preset, facts, mix), settings, mark, metric, strict, repeats=repeats)
    choice = TableChoice(names or (), rows, columns, name, caption, places, set_ or (), add or (), label or (), data)
    choice.check()
    grids: list[Grid] = []
    for request in requests:
        filled = [fill(index, spec, own) for spec, own in choice.filled_with(index, request)]
        grids += [grid for grid in filled if names or any(entry.value.n for entry in grid.entries)]
    if not grids:
        raise UserError("no cell has the requested properties; `bench status` shows what there is")
    # render everything before writing anything, so that an error leaves no incomplete set of files
    texts: dict[str, str] = {}
    for grid in grids:
        for kind in KINDS:
            stem = grid.name if kind == "values" else f"{grid.name}-{kind}"
            texts[f"{stem}.tex"] = latex.table(grid, kind, style)
            texts[f"{stem}.md"] = formats.markdown(grid, kind)
        if over := pooled_lines(grid):
            texts[f"{grid.name}-overall.tex"] = latex.pooled(grid, over)
            texts[f"{grid.name}-overall.md"] = formats.pooled_markdown(over)
        texts[f"{grid.name}.csv"] = formats.tidy(grid, index).to_csv(index=False, float_format="%.12g")
    macros = f"{grids[0].name}-macros.tex" if choice.own else "macros.tex"  # keeps the other macros
    texts[macros] = latex.macros(grids)
    if standalone:
        bodies = [texts[file] for file in texts if file.endswith(".tex") and file != macros]
        beside = {"main_exp.pdf": latex.figure_caption(metric or "accuracy")}
        document = f"{grids[0].name}-standalone.tex" if choice.own else "standalone.tex"
        texts[document] = latex.standalone(bodies, texts[macros], document_class, {} if choice.own else beside)
        try:
            drawn = (
                None
                if choice.own
                else figures.label_rate_figure(figures.curves(index, replace(requests[0], metric=metric or "accuracy")))
            )
        except figures.NothingToDraw as nothing:
            _say(f"without the figure: {nothing}")
        else:
            if drawn is not None:
                save(drawn, folder, "main_exp", ["pdf"])
    _write(folder, texts)
    if export is not None:
        from bench.results.archive import write_archive

        write_archive(_records(workspace, source), export)
    console = Console()
    for grid in grids:
        show_grid(grid, console)
    _say(f"{len(texts)} files in {folder}")


def figures(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    source: FromOption = None,
    out: OutOption = None,
    datasets: Annotated[
        str, typer.Option(help="Datasets to draw, with commas. Default: the paper's that are there.")
    ] = "",
    backbone: Annotated[str, typer.Option(help="Backbone whose lines are drawn.")] = "gcn",
    readout: Annotated[str, typer.Option(help="Readout whose lines are drawn.")] = "mean",
    formats: Annotated[str, typer.Option("--formats", help="pdf, svg, png.")] = "pdf,svg,png",
    width: Annotated[str, typer.Option(help="text, or column for one column of a two-column page.")] = "text",
    metric: MetricOption = "accuracy",
    settings: OneSettingsOption = "default",
    features: FeaturesOption = "",
    splits: SplitsOption = "",
    preset: PresetOption = "",
    where: WhereOption = None,
    mix: MixOption = None,
    repeats: DrawsOption = None,
    strict: StrictOption = False,
) -> None:
    """Plot differences to plain training, label rates, ranks, costs, learners, and our results against the paper's."""
    from tables import style
    from tables.publishing import all_figures

    index = _index(workspace, source)
    folder = out or workspace / "tables"
    kinds = _words(formats)
    for kind in kinds:
        if kind not in style.FORMATS:
            raise UserError(f"figures cannot be written as '{kind}'; choose from {', '.join(style.FORMATS)}")
    if width not in style.WIDTHS:
        raise unknown("width of a figure", width, style.WIDTHS)
    picks = _picks(features, splits, preset, where, mix)
    for request in _requests(picks, settings, "best", metric, strict, one=True, repeats=repeats):
        drawn = all_figures(index, request, (backbone, readout), _words(datasets), style.WIDTHS[width])
        for name, figure in drawn:
            for path in style.save(figure, folder, f"{name}{request.suffix}", kinds):
                _say(str(path))


def compare(
    names: Annotated[list[str] | None, typer.Argument(help="Tables of the paper. Default: all five.")] = None,
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    source: FromOption = None,
    out: OutOption = None,
    settings: OneSettingsOption = "default",
    features: FeaturesOption = "",
    splits: SplitsOption = "",
    preset: PresetOption = "",
    where: WhereOption = None,
    mix: MixOption = None,
    repeats: DrawsOption = None,
) -> None:
    """Compare our results with the paper's: difference, noise, verdict, and the paper's own contradictions."""
    from rich.console import Console

    from tables import compare as comparing
    from tables.specs import TABLES
    from tables.terminal import show_comparison

    for name in names or ():
        if name not in TABLES:
            raise unknown("table of the paper", name, TABLES)
    index = _index(workspace, source)
    console, texts = Console(), {}
    for request in _requests(_picks(features, splits, preset, where, mix), settings, "best", one=True, repeats=repeats):
        found = comparing.compare(index, request, names or ())
        texts[f"compare{request.suffix}.md"] = comparing.markdown(found)
        texts[f"compare{request.suffix}.tex"] = comparing.latex(found)
        for name in dict.fromkeys(line.theirs.table for line in found.lines):
            texts[f"compare-{name}{request.suffix}.md"] = comparing.side_by_side(found, name)
        show_comparison(found, console)
    _write(out or workspace / "tables", texts)
    _say(f"{len(texts)} files in {out or workspace / 'tables'}")


def report(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    source: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Read trials from a parquet or JSON-lines file; with --site may be repeated."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File. Default: WORKSPACE/report.html.")] = None,
    site: Annotated[
        Path | None,
        typer.Option(help="Write a static site to this folder instead: an index and a report for each --from."),
    ] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "augbench report",
    mark: MarkOption = "ties",
    metric: MetricOption = "accuracy",
    settings: SettingsOption = "default",
    features: FeaturesOption = "",
    splits: SplitsOption = "",
    preset: PresetOption = "",
    where: WhereOption = None,
    mix: MixOption = None,
    repeats: DrawsOption = None,
) -> None:
    """Write one self-contained HTML page: verdict, differences, cells, tables, comparison with the paper, provenance.

    With --site, write a folder with one such page per result set and an index that compares them.
    """
    from bench.results.frame import Results
    from bench.results.ledger import LedgerState
    from bench.results.verification import verified_words
    from tables.explorer import Curves
    from tables.report import render
    from tables.site import ResultSet, names_of
    from tables.site import site as pages

    sources = source or [workspace]
    if len(sources) > 1 and site is None:
        raise UserError(f"--from was given {len(sources)} times; a report shows one result set; use --site for several")
    if site is not None and out is not None:
        raise UserError("--out names the file of one report and --site a folder of several; give one of them")
    requests = _requests(_picks(features, splits, preset, where, mix), settings, mark, metric, repeats=repeats)
    sets = []
    for name, path in zip(names_of(sources), sources, strict=True):
        curves = Curves()
        state = LedgerState.of(curves.watch(_records(workspace, path)))
        sets.append(ResultSet(name, Results.from_state(state), curves, verified_words(path, state)))
    if site is not None:
        texts = pages(sets, requests, title)
        _write(site, texts)
        _say(f"{len(texts)} pages in {site}")
        return
    (one,), place = sets, out or workspace / "report.html"
    _write(place.parent, {place.name: render(one.results, requests, title, one.curves, verified=one.verified)})
    _say(str(place))


def _index(workspace: Path, source: Path | None) -> Index:
    from bench.results.frame import from_records
    from tables.selection import Index

    return Index(from_records(_records(workspace, source, curves=False)))


def _records(workspace: Path, source: Path | None, curves: bool = True) -> Iterable[Record]:
    from bench.results.workspace import records_at

    return records_at(source or workspace, curves)


def _sorted_out(where: list[str] | None, index: Index) -> tuple[list[str], dict[str, str]]:
    """The conditions on cells: facets, which tell cells of a ledger apart, and properties that select among them."""
    facts, places = [], {}
    for item in where or ():
        name, equals, value = (part.strip() for part in item.partition("="))
        if equals and value and name not in index.facets and ("." in name or name in PLACE):
            places[name] = value
        else:
            facts.append(item)
    return facts, places


def _picks(features: str, splits: str, preset: str, where: list[str] | None, mix: list[str] | None) -> dict[str, Pick]:
    """The cells that the options select: one pick per kind of features, by the suffix that it adds to file names."""
    from tables.selection import Pick

    picked: dict[str, str] = {}
    for item in where or ():
        name, equals, value = (part.strip() for part in item.partition("="))
        if not name or not equals or not value:
            raise UserError(f"--where {item} cannot be read; write --where property=value")
        picked[name] = value
    picked |= {name: value for name, value in (("splits", splits), ("preset", preset)) if value}
    variants, mixed = _words(features), frozenset(mix or ())
    if not variants:
        return {"": Pick(picked, mixed)}
    only = len(variants) == 1
    return {"" if only else f"-{one}": Pick({**picked, "features": one}, mixed) for one in variants}


def _requests(
    picks: dict[str, Pick],
    settings: str,
    mark: str,
    metric: str = "accuracy",
    strict: bool = False,
    one: bool = False,
    repeats: int | None = None,
) -> list[Request]:
    """The requests that the options describe, one per pick."""
    from tables.grid import Request

    kinds = _words(settings)
    if not kinds or (one and len(kinds) > 1):
        raise UserError(f"--settings {settings} is not valid here; give default or tuned")
    return [Request(metric, tuple(kinds), mark, pick, strict, suffix, repeats) for suffix, pick in picks.items()]


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _write(folder: Path, texts: dict[str, str]) -> None:
    from tables.writing import whole_file

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with whole_file(folder / name) as part:
                part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; choose another --out") from error


def _say(text: str) -> None:
    typer.echo(text)
