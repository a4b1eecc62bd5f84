"""The catalogue behind `bench list`: every name that the command line accepts. Imports nothing heavy."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from augmenters.composition import part_names
from bench.registry import Entry, Registry, Setting, show, unknown
from bench.words import counted


@dataclass(frozen=True)
class Named:
    """One entry of the catalogue. A name has one entry per kind: `quick` is both a grid and a preset."""

    kind: str
    name: str
    summary: str
    lines: Callable[[], list[str]]  # the extra lines of `bench list NAME`; computed only when requested
    origin: str = ""  # of a plug-in: "built in", or the package that provides it

    @property
    def head(self) -> str:
        """A one-line description."""
        kind = f"{self.kind}, {self.origin}" if self.origin else self.kind
        return f"({kind}): {self.summary}"


def every_name() -> Iterator[Named]:
    """All entries that `bench list` shows, kind by kind."""
    from augmenters import AUGMENTERS
    from bench.datasets import DATASETS
    from bench.learning import LEARNERS
    from bench.protocol.registries import METRICS, SPLITTERS
    from models import BACKBONES, READOUTS

    for registry in (LEARNERS, AUGMENTERS, BACKBONES, READOUTS, DATASETS, METRICS, SPLITTERS):
        yield from _plugins(registry)
        if registry is DATASETS:
            yield from _own_datasets()
    yield from _presets()
    yield from _grids()
    yield from _tables()


def named(name: str) -> list[Named]:
    """The entries with this name, which may be a composition of augmenters."""
    from augmenters import AUGMENTERS

    known = list(every_name())
    found = [one for one in known if one.name == name]
    if not found and len(part_names(name)) > 1:
        return [_plugin(AUGMENTERS, AUGMENTERS.entry(name))]
    if not found:
        raise unknown("name", name, dict.fromkeys(one.name for one in known))
    return found


def grid_names() -> tuple[str, ...]:
    """The names of all grids."""
    return tuple(one.name for one in _grids())


def _plugins(registry: Registry) -> Iterator[Named]:
    for entry in registry.entries().values():
        yield _plugin(registry, entry)


def _plugin(registry: Registry, entry: Entry) -> Named:
    about = _augmenter_lines if registry.kind == "augmenter" else _settings
    return Named(registry.kind, entry.name, entry.summary, partial(about, registry, entry.name), entry.origin)


def _settings(registry: Registry, name: str) -> list[str]:
    settings = registry.settings(name).values()
    width = max([12, *(len(one.name) for one in settings)])
    return [f"{one.name:<{width}} {one.domain}; default {show(one.default)}{_searched(one)}" for one in settings]


def _searched(setting: Setting) -> str:
    """The part that `bench tune` searches, where it is another than all that is allowed."""
    tune = setting.tune
    if tune is None:
        return ""
    if tune.low is None or tune.high is None:
        return f"; tuned over {', '.join(map(show, tune.choices or setting.choices or (False, True)))}"
    return f"; tuned from {show(tune.low)} to {show(tune.high)}{', log scale' if tune.log else ''}"


_WHEN = {"offline": "once, before training", "epoch": "anew in each epoch", "batch": "inside each training step"}


def _augmenter_lines(registry: Registry, name: str) -> list[str]:
    """How it works and its settings; first what its file says of it, which names the paper."""
    cls: Any = registry.load(name)
    facts = [_WHEN.get(cls.when, cls.when)]
    facts += ["its graphs stand beside the originals"] if cls.mode == "append" else []
    facts += ["labels are mixed"] if cls.labels == "mixed" else []
    facts += ["makes edge weights"] if cls.weighted else []
    written = inspect.getdoc(sys.modules[cls.__module__]) if len(part_names(name)) == 1 else None
    about = " ".join((written or "").partition("\n\n")[0].split())
    own = [about] if about else []
    return [*own, f"{'works':<12} {'; '.join(facts)}", *_settings(registry, name)]


def own_datasets() -> list[str]:
    """The sets in the data root that no registry names: imported, or stored from Python."""
    from bench.datasets import DATASETS
    from bench.datasets.loading import present_tu_sets
    from bench.datasets.paths import data_root
    from bench.datasets.stored import stored_names

    root = data_root(None)
    return sorted((present_tu_sets(root) | stored_names(root)) - set(DATASETS.names()))


def _own_datasets() -> Iterator[Named]:
    from bench.datasets import cheap_info
    from bench.datasets.paths import data_root

    for name in own_datasets():
        info = cheap_info(name, data_root(None))
        counts = [
            counted(number, thing) for number, thing in ((info.graphs, "graph"), (info.classes, "class")) if number
        ]
        words = f"in your data root{': ' * bool(counts)}{', '.join(counts)}"
        yield Named("dataset", name, words, partial(_dataset_lines, name))


def _dataset_lines(name: str) -> list[str]:
    """What `bench run` would take of a set in the data root."""
    from bench.datasets import cheap_info
    from bench.datasets.paths import data_root
    from bench.datasets.split_files import families_at_hand

    root = data_root(None)
    info = cheap_info(name, root)
    features = {True: "its own", False: "none; see --features", None: "not known before it is read"}
    return [
        f"{'features':<12} {features[info.has_features]}",
        f"{'metric':<12} {info.metric}",
        f"{'splits':<12} {', '.join([*families_at_hand(name, root), 'stratified'])}",
    ]


_PRESETS = {
    "paper": "800 epochs, a ReLU on the logits as in the paper's text; what the paper's grids run with",
    "standard": "800 epochs, linear logits; what most other grids run with",
    "quick": "100 epochs, linear logits",
}


def _presets() -> Iterator[Named]:
    from bench.protocol.training import PRESETS

    for name in PRESETS:
        yield Named("preset", name, _PRESETS[name], partial(_preset_lines, name))


def _preset_lines(name: str) -> list[str]:
    from bench.protocol.training import PRESETS, featureless

    facts = {key: value for key, value in asdict(PRESETS[name]).items() if key != "preset"}
    lines = [f"{key:<12} {show(value)}" for key, value in facts.items()]
    return [*lines, f"features of a dataset that has none: {featureless(name)}"]


def _grids() -> Iterator[Named]:
    from bench.plan.grids import STUDY
    from tables.own_specs import LEARNERS_BY_K, OWN_TABLES
    from tables.specs import NAMES

    summaries = {
        "quick": "every method once over on built-in data",
        "full": "all of the paper's cells",
        **{name: "the cells of the paper's " + ("figure" if name == "main_exp" else "table") for name in NAMES},
        **{name: f"the cells of the table {name}" for name in OWN_TABLES},
        LEARNERS_BY_K.name: "learners, plain networks and GDM Acc over the label rates",
        STUDY.stem: "readings of what the paper leaves open, one against the other",
    }
    for name, summary in summaries.items():
        yield Named("grid", name, summary, partial(_grid_lines, name))


def _grid_lines(name: str) -> list[str]:
    """The number of cells and trials of a grid, and the values of each axis."""
    from bench.plan.grids import AXES, named_grid

    grid = named_grid(name)
    size = counted(len(grid.cells), "cell")
    trials = counted(len(grid.cells) * grid.folds * grid.repeats, "trial")
    lines = [f"{size}, {trials} ({grid.folds} folds x {grid.repeats}, preset {grid.preset})"]
    for axis, part in AXES.items():
        values = dict.fromkeys(str(getattr(cell, part)) for cell in grid.cells)
        lines.append(f"{axis:<12} {', '.join(filter(None, values))}")
    return lines


def _tables() -> Iterator[Named]:
    from tables.own_specs import LEARNERS_BY_K, OWN_TABLES
    from tables.specs import FIGURE, MEASURE, TABLES

    tables = [("table", spec.name, spec.caption) for spec in (*TABLES.values(), *OWN_TABLES.values())]
    figures = [("figure", spec.name, spec.caption) for spec in (FIGURE, LEARNERS_BY_K)]
    for kind, name, caption in (*tables, *figures):
        caption = caption.replace(MEASURE, "accuracy").rstrip(".")
        yield Named(kind, name, f"{caption[0].upper()}{caption[1:]}", partial(_table_lines, name))


def _table_lines(name: str) -> list[str]:
    """The rows and columns of a table."""
    from tables.own_specs import LEARNERS_BY_K, OWN_TABLES
    from tables.specs import FIGURE, TABLES

    spec = TABLES.get(name) or OWN_TABLES.get(name)
    if spec is not None:
        rows = [row.name for row in (*spec.beside, *spec.rows)]
        columns = [f"{column.span} k={column.head}" if column.span else column.head for column in spec.columns]
    else:
        figure = FIGURE if name == FIGURE.name else LEARNERS_BY_K
        rows = [row.name for row in figure.rows]
        columns = [f"{title} k={', '.join(map(str, figure.rates))}" for _, title in figure.panels]
    return [f"{'rows':<12} {', '.join(rows)}", f"{'columns':<12} {'; '.join(columns)}"]
