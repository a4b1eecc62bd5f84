"""All that goes by a name on the command line, and what there is to say of each; nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial

from bench.registry import Registry, show, unknown
from bench.words import counted


@dataclass(frozen=True)
class Named:
    """One name of one kind. The same name may stand for things of several kinds, as `quick` does."""

    kind: str
    name: str
    summary: str
    lines: Callable[[], list[str]]  # what `bench list NAME` adds; worked out only for the one that is asked for
    origin: str = ""  # of a plug-in: built in, or whose

    @property
    def head(self) -> str:
        """What it is, in one line."""
        kind = f"{self.kind}, {self.origin}" if self.origin else self.kind
        return f"({kind}): {self.summary}"


def every_name() -> Iterator[Named]:
    """Everything that `bench list` shows, kind by kind."""
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
    """Everything of that name."""
    known = list(every_name())
    found = [one for one in known if one.name == name]
    if not found:
        raise unknown("name", name, dict.fromkeys(one.name for one in known))
    return found


def grid_names() -> tuple[str, ...]:
    """Every grid that goes by a name."""
    return tuple(one.name for one in _grids())


def _plugins(registry: Registry) -> Iterator[Named]:
    for entry in registry.entries().values():
        yield Named(registry.kind, entry.name, entry.summary, partial(_settings, registry, entry.name), entry.origin)


def _settings(registry: Registry, name: str) -> list[str]:
    return [f"{one.name:<12} {one.domain}; default {show(one.default)}" for one in registry.settings(name).values()]


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
        "augmenters": "every method but the controls on the paper's datasets, k = 10, gcn",
        "full": "all of the paper's cells",
        **{name: "the cells of the paper's " + ("figure" if name == "main_exp" else "table") for name in NAMES},
        **dict.fromkeys(OWN_TABLES, "plain learners and networks beside the paper's best augmenter"),
        LEARNERS_BY_K.name: "learners, plain networks and GDM Acc over the label rates",
        STUDY.stem: "readings of what the paper leaves open, one against the other",
    }
    for name, summary in summaries.items():
        yield Named("grid", name, summary, partial(_grid_lines, name))


def _grid_lines(name: str) -> list[str]:
    """How many cells and trials a grid has, and the values of each of its axes."""
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
    """The rows and columns that a table prints."""
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
