"""One self-contained HTML page about a workspace: no network access, light and dark, all external text escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from bench.plan.cells import PARTS
from bench.registry import UserError
from bench.results.frame import Results
from bench.results.verification import NOT_VERIFIED
from tables import figures
from tables.compare import Comparison, NothingToCompare, compare, contradiction_words
from tables.completeness import Share, shares
from tables.explorer import Curves, as_json, payload
from tables.formats import POOLED_HEADS, pooled_words
from tables.frames import drawn_datasets
from tables.grid import Grid, Request, fill
from tables.latex import TEMPLATES
from tables.selection import Index, Pick, base_label, social_features
from tables.specs import LONG_NAMES, Coordinate, words_of
from tables.statistics import FEWEST
from tables.style import Style, drawing, inline_svg
from tables.verdict import Verdict, verdict
from tables.wanted import specs_for
from tables.wording import KINDS, caption, notes, noun, pooled_lines, pooled_notes, seconds, shown

SCRIPTS = ("report.js", "explorer.js")
TITLES = {
    "10labelrate": "Methods at 10 labels per class",
    "Match": "Ablation: balanced graph sampling",
    "GAE": "Ablation: the structural auto-encoder",
    "GNN_Baseline": "Ablation: backbones",
    "Pool": "Ablation: readouts",
    "main_exp": "Methods by number of labels",
    "learners": "Learners with and without a network",
    "learners_by_k": "Learners by number of labels",
    "custom": "Cells beside the paper's",
}
_INK = "#010203"  # placeholder for the page's text color in drawings


@dataclass(frozen=True)
class Drawing:
    """The lines of some datasets, with the ranks of the methods over them."""

    panels: list[tuple[str, Markup]]
    legend: list[tuple[str, Markup]]
    hollow: bool
    diagrams: list[dict[str, Any]]


@dataclass(frozen=True)
class Section:
    """Everything with one kind of node features, which tables must not mix."""

    title: str
    anchor: str
    grids: list[Grid]
    figures: list[Drawing]
    comparison: Comparison | None
    verdict: Verdict
    forests: Mapping[int, Markup]  # the differences with their intervals, by label rate


def render(
    results: Results,
    requests: Sequence[Request],
    title: str = "augbench report",
    curves: Curves | None = None,
    home: str = "",
    verified: str = NOT_VERIFIED,
) -> str:
    """The whole page: one part per request, and one table with every cell; `home` is a page to link back to.

    The table of cells contains every cell, whatever the requests select: it is filtered in the browser. `verified` is
    the result of `bench verify` (`bench.results.verification`).
    """
    index = Index(results)
    if not len(results.trials):
        raise UserError("there are no trials to report on yet; start with: bench run")
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            title=title,
            home=home,
            data=Markup(as_json(payload(index.results, requests[0].metric or "accuracy", curves))),
            noun=noun(requests[0].metric),
            settings=" and ".join(requests[0].settings),
            ran=_ran(results),
            facts=[*facts_of(results), ("verified", verified)],
            sections=[_section(index, part, name) for name, part in _variants(results, requests)],
            costs=_costs(results),
            failures=_failures(results),
            skipped=[(_skipped_words(item), str(item.get("reason", ""))) for item in results.skipped],
            provenance=_side_by_side([dict(_flatten(entry)) for entry in results.provenance]),
        )
    )


def environment() -> jinja2.Environment:
    """Templates of pages: external text is escaped; our style and script are embedded in the page."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.globals |= {
        "shown": shown,
        "caption": caption,
        "notes": notes,
        "kinds": KINDS,
        "titles": TITLES,
        "pooled_heads": POOLED_HEADS,
        "pooled_lines": pooled_lines,
        "pooled_words": pooled_words,
        "pooled_notes": pooled_notes,
        "grid_title": grid_title,
        "contradiction_words": contradiction_words,
        "seconds": seconds,
        "style": Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        "script": Markup("".join((TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)),
    }
    return found


def grid_title(grid: Grid) -> str:
    """A heading for a table, with its file name."""
    name, _, part = grid.name.partition("-")
    return f"{TITLES[name]}{f' ({part})' if part else ''}" if name in TITLES else grid.name


def _variants(results: Results, requests: Sequence[Request]) -> list[tuple[str, Request]]:
    """A section for each kind of computed features, unless the user selected some."""
    kinds = social_features(results)
    first = requests[0]
    if "features" in first.pick.where or len(kinds) < 2:
        return [(request.pick.where.get("features", ""), request) for request in requests]
    return [(kind, replace(first, pick=Pick({**first.pick.where, "features": kind}, first.pick.mix))) for kind in kinds]


def _section(index: Index, request: Request, name: str) -> Section:
    grids = [fill(index, spec, request) for spec in specs_for(index, (), request.settings)]
    grids = [grid for grid in grids if any(entry.value.n for entry in grid.entries)]
    anchor = "".join(letter if letter.isalnum() else "-" for letter in name) or "results"
    datasets = sorted(drawn_datasets(index, request.settings[0]))
    parts = [[d for d in datasets if d in LONG_NAMES], [d for d in datasets if d not in LONG_NAMES]]
    sources = [partial(figures.curves, index, request, datasets=part) for part in parts if part]
    sources.append(partial(figures.learner_curves, index, request))
    drawn = [_drawing(source, f"{anchor}{place}") for place, source in enumerate(sources)]
    try:
        comparison = compare(index, replace(request, settings=request.settings[:1]))
    except NothingToCompare:
        comparison = None
    title = f"Features: {name}" if name else "Results"
    said = verdict(index, request)
    forests = {one.k: _forest(said.frame, one.k, anchor) for one in said.maps if said.frame is not None}
    return Section(title, anchor, grids, [d for d in drawn if d], comparison, said, forests)


def _forest(frame: pd.DataFrame, k: int, anchor: str) -> Markup:
    return Markup(inline_svg(figures.forest_figure(frame, k, ink=_INK), f"{anchor}-forest{k}", _INK))


def _drawing(source: Callable[[], figures.Curves], salt: str) -> Drawing | None:
    try:
        data = source()
    except figures.NothingToDraw:
        return None
    rates = figures.ranking_rates(data)
    if not data.with_lines and not rates:
        return None
    return Drawing(
        _panels(data, salt),
        [(m, _swatch(style, f"{salt}-m{i}")) for i, (m, style) in enumerate(data.styles("currentColor").items())],
        bool((data.points["trials"] < data.points["planned"]).any()),
        [_diagram(data, k, salt, k == (10 if 10 in rates else rates[-1])) for k in rates],
    )


def _panels(data: figures.Curves, salt: str) -> list[tuple[str, Markup]]:
    """A picture for each dataset with several label rates; all span as many points."""
    from matplotlib.figure import Figure

    with drawing(_INK, 10):
        drawn = [(name, Figure(figsize=(4.4, 3.2), layout="constrained")) for name in data.with_lines]
        axes = [figure.subplots() for _, figure in drawn]
        for (name, _), ax in zip(drawn, axes, strict=True):
            figures.draw_panel(ax, data, name, _INK)
        if axes:
            figures.share_spans(axes)
        return [
            (LONG_NAMES.get(name, name), Markup(inline_svg(figure, f"{salt}-p{place}", _INK)))
            for place, (name, figure) in enumerate(drawn)
        ]


def _swatch(style: Style, salt: str) -> Markup:
    """A short piece of a method's line with its marker, for the legend."""
    from matplotlib.figure import Figure

    ink = _INK if style.color == "currentColor" else style.color
    figure = Figure(figsize=(0.5, 0.16))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    (line,) = ax.plot([0, 1, 2], [0, 0, 0], color=ink, linewidth=1.3)
    line.set_dashes(style.dashes or (None, None))
    ax.plot([1], [0], marker=style.marker, color=ink, markersize=6)
    return Markup(inline_svg(figure, salt, _INK))


def _diagram(data: figures.Curves, k: int, anchor: str, unfolded: bool) -> dict[str, Any]:
    found = figures.rank_methods(data, k)
    assert found is not None  # ranking_rates offers no other label rate
    drawn = {
        "ranks": figures.ranks_figure(found, k, ink=_INK),
        "cd": figures.critical_difference_figure(found, k, ink=_INK),
    }
    svgs = {name: Markup(inline_svg(figure, f"{anchor}-{name}{k}", _INK)) for name, figure in drawn.items()}
    return {
        "k": k,
        "open": unfolded,
        **svgs,
        "blocks": [LONG_NAMES.get(name, name) for name in found.blocks],
        "dropped": [*found.dropped_blocks, *found.dropped_methods],
        "friedman": found.p_friedman,
        "few": len(found.blocks) < FEWEST,
    }


def facts_of(results: Results) -> list[tuple[str, str]]:
    """What was run, in a few numbers."""
    status = results.trials["status"].value_counts()
    planned = sum(len(found) for found in results.planned.values())
    spent = results.trials[["seconds.augment", "seconds.train"]].astype(float).sum().sum()
    datasets = sorted(results.cells["dataset"].unique())
    done = int(status.get("done", 0))
    found = [
        ("trials finished", f"{done} of {planned}"),
        ("cells", str(len(results.cells))),
        ("datasets", ", ".join(LONG_NAMES.get(name, name) for name in datasets)),
        ("grids", ", ".join(results.grids) or "none planned"),
        ("hours of augmentation and training", f"{spent / 3600:.1f}"),
    ]
    found += [(f"grid {share.grid}", share.words.partition(": ")[2]) for share in grid_shares(results)]
    for name in ("failed", "diverged", "skipped"):
        if status.get(name, 0):
            found.append((f"trials {name}", str(int(status[name]))))
    if "finished" in results.trials and results.trials["finished"].notna().any():
        found.append(("last trial", str(results.trials["finished"].dropna().astype(str).max())[:16].replace("T", " ")))
    return found


def _ran(results: Results) -> str:
    """How much there is, in one line: trials of those planned, and cells of the whole of what was set out to run."""
    (name, trials), (_, cells) = facts_of(results)[:2]
    whole = grid_shares(results)[:1]
    return "; ".join([f"{trials} planned {name}", whole[0].words if whole else f"{cells} cells"])


def grid_shares(results: Results) -> list[Share]:
    """How much of each whole grid is there, whatever was planned of it."""
    counts: dict[Coordinate, tuple[int, int]] = {}
    for key, cell in results.cells.iterrows():
        facts = {str(name): value for name, value in cell.items()}
        parts: dict[str, Any] = {part: base_label(facts, part) for part in PARTS}
        place = Coordinate(str(cell["dataset"]), int(cell["k"]), **parts)
        held = (len(results.done(str(key))), results.planned_trials(str(key)))
        counts[place] = max(counts.get(place, (0, 0)), held)
    return shares(results.grids, counts)


def _costs(results: Results) -> list[dict[str, Any]]:
    frame = results.tidy()
    frame = frame[frame["status"] == "done"]
    found = []
    frame["model"] = frame["backbone"].where(frame["backbone"] != "", frame["learner"])
    for (dataset, augmenter, model), part in frame.groupby(["dataset", "augmenter", "model"]):
        augment, train = part["seconds.augment"].astype(float), part["seconds.train"].astype(float)
        found.append(
            {
                "dataset": LONG_NAMES.get(str(dataset), str(dataset)),
                "augmenter": "plain training" if augmenter == "none" else words_of(str(augmenter), "augmenter"),
                "backbone": words_of(str(model), "backbone"),
                "trials": len(part),
                "augment": augment.mean(),
                "train": train.mean(),
                "total": float(augment.sum() + train.sum()) / 3600,
            }
        )
    return found


def _failures(results: Results) -> list[dict[str, Any]]:
    """Failed trials by reason, with the first place where it occurred."""
    frame = results.tidy()
    frame = frame[frame["status"] != "done"].copy()
    frame["reason"] = frame["reason"].fillna("no reason recorded").astype(str)
    found = []
    for (status, reason), part in frame.groupby(["status", "reason"]):
        first = part.iloc[0]
        model = f"{first['backbone']} {first['readout']}" if first["backbone"] else first["learner"]
        where = f"{first['dataset']} k={first['k']} {first['augmenter']} {model}"
        where += f", fold {first['fold']}, repeat {first['repeat']}"
        found.append({"status": status, "reason": reason, "count": len(part), "first": where})
    return sorted(found, key=lambda item: -item["count"])


def _skipped_words(item: Mapping[str, Any]) -> str:
    cell = item.get("cell")
    if not isinstance(cell, Mapping):
        return str(cell)
    return " ".join(f"{k}={v['label'] if isinstance(v, Mapping) and 'label' in v else v}" for k, v in cell.items())


def _side_by_side(entries: Sequence[Mapping[str, str]]) -> list[tuple[str, list[str]]]:
    """A line for each fact with its value in each entry, or one value where all have the same."""
    names = dict.fromkeys(name for entry in entries for name in entry)
    lines = [(name, [entry.get(name, "") for entry in entries]) for name in names]
    return [(name, values[:1] if len(set(values)) == 1 else values) for name, values in lines]


def _flatten(entry: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in entry.items():
        if isinstance(value, Mapping):
            found += _flatten(value, f"{prefix}{name}.")
        else:
            words: Sequence[str] = value if isinstance(value, list) else [value]
            found.append((f"{prefix}{name}", ", ".join(map(str, words))))
    return found
