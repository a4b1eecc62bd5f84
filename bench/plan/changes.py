"""A user's changes to a grid or table: settings of its parts, and additional methods.

A grid and the table of the same name are changed by the same functions, so that what is run is what is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from augmenters import AUGMENTERS
from bench.datasets import resolve_dataset
from bench.learning import LEARNERS
from bench.plan.grids import NETWORK, Grid
from bench.plan.plugin_cache import Resolver
from bench.protocol.training import preset, training_settings
from bench.registry import Choice, Registry, UserError, show, unknown
from models import BACKBONES, READOUTS
from tables.layouts import Described, Layout, arranged
from tables.specs import Coordinate, Row, TableSpec, method_name

REGISTRIES: dict[str, Registry] = {
    "augmenter": AUGMENTERS,
    "backbone": BACKBONES,
    "readout": READOUTS,
    "learner": LEARNERS,
}
TRAINING = "training"
Part = TypeVar("Part", Row, Coordinate)  # both have an augmenter, a backbone, a readout and a learner


@dataclass(frozen=True)
class Changes:
    """Settings by `part.setting`, each with its values, and methods to add."""

    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    added: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.settings or self.added)


def read_settings(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse `training.lr=0.001`, `augmenter.eps=0.05|0.1|0.2`: names with one or several values."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        for piece in re.split(r",(?=\s*[\w.+-]+=)", text):
            name, equals, values = (part.strip() for part in piece.partition("="))
            given = tuple(dict.fromkeys(value.strip() for value in values.split("|")))
            if not name or not equals or not all(given):
                raise UserError(f"--set {text}: cannot read '{piece}'; write part.setting=value, as training.lr=0.001")
            name = f"{TRAINING}.{name}" if name in training_settings() else name
            if name in found:
                raise UserError(f"--set {name} is given twice; write its values as {name}=A|B")
            found[name] = given
    return found


def read_labels(texts: Sequence[str]) -> dict[str, str]:
    """Parse `hidenodes=Hide`; a name with settings contains equals signs itself, so the last one counts."""
    found = {}
    for text in texts:
        name, equals, label = (part.strip() for part in text.rpartition("="))
        if not equals or not name or not label:
            raise UserError(f"--label {text}: cannot read it; write NAME=LABEL, as hidenodes=Hide")
        found[name] = label
    return found


def changed_grid(grid: Grid, changes: Changes) -> Grid:
    """The grid with every setting changed in the cells that have it, and with the added methods."""
    resolver = Resolver()
    training, settings = _training(changes.settings)
    cells: Iterable[Coordinate] = _with_added(grid.cells, changes.added, resolver)
    cells = _with_settings(cells, settings, resolver)
    single = {name: values[0] for name, values in training.items() if len(values) == 1}
    for name, values in training.items():
        if len(values) > 1:
            cells = [
                replace(cell, where=tuple(sorted({**dict(cell.where), name: value}.items())))
                for cell in cells
                for value in values
            ]
    resolver.save()
    return replace(
        grid,
        cells=tuple(dict.fromkeys(cells)),
        training={**grid.training, **single},
    )


def changed_spec(spec: TableSpec, changes: Changes) -> TableSpec:
    """A table with its rows changed in the same way; training settings only affect which cells are selected."""
    resolver = Resolver()
    _, settings = _training(changes.settings)
    several = next((name for name, values in changes.settings.items() if len(values) > 1), None)
    if several is not None:
        raise UserError(f"{spec.name} shows one value of {several} per place; show several with --rows {several}")
    groups = _groups_with_added(spec, changes.added, resolver)
    renamed: dict[Row, Row] = {}
    rows = [row for group in groups for row in group] + list(spec.beside)
    for row in rows:
        (changed,) = _with_settings([row], settings, resolver, rows)
        renamed[row] = changed
    resolver.save()
    return replace(
        spec,
        groups=tuple(tuple(renamed[row] for row in group) for group in groups),
        beside=tuple(renamed[row] for row in spec.beside),
        reference=renamed.get(spec.reference, spec.reference) if spec.reference else None,
    )


def training_picks(settings: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Training settings as a selection among the cells of a ledger."""
    training, _ = _training(settings)
    offered = training_settings()
    return {name: show(offered[name].check(values[0], TRAINING)) for name, values in training.items()}


def own_table(grid: Grid, root: Path) -> TableSpec:
    """The table that a grid describes: it lists exactly the cells that the grid runs, so the two cannot disagree."""
    layout = grid.layout or _usual_layout(grid)
    layout = replace(layout, labels={**grid.labels, **layout.labels})
    return arranged(layout, described(grid, root), as_given=True)


def grid_pick(grid: Grid) -> dict[str, str]:
    """The selection of a grid's cells in a ledger: those with its training, features and splits."""
    usual = preset(grid.preset).with_settings(grid.training)
    varied = {name for at in grid.cells for name, _ in at.where}
    if varied:
        found = {name: show(getattr(usual, name)) for name in training_settings() if name not in varied}
    else:
        found = {"preset": usual.preset}
    return found | {name: getattr(grid, name) for name in ("features", "splits") if getattr(grid, name) != "auto"}


def _usual_layout(grid: Grid) -> Layout:
    """Methods by dataset and label rate, with everything else that the grid varies in the rows."""
    models = [part for part in ("backbone", "readout", "learner") if len({getattr(at, part) for at in grid.cells}) > 1]
    name = re.sub(r"[^\w.-]+", "-", grid.name)
    varied = dict.fromkeys(f"{TRAINING}.{one}" for at in grid.cells for one, _ in at.where)
    return Layout(("augmenter", *models, *varied), ("dataset", "k"), name)


def described(grid: Grid, root: Path) -> list[Described]:
    """The cells of a grid with their properties, before anything is planned or run."""
    resolver = Resolver()
    found = []
    for at in grid.cells:
        labels = {part: getattr(at, part) for part in REGISTRIES if getattr(at, part)}
        choices = {part: resolver.resolve(REGISTRIES[part], label).choice for part, label in labels.items()}
        properties = {
            f"{part}.{name}": show(value) for part, choice in choices.items() for name, value in choice.settings.items()
        }
        training, _ = grid.settled(at)
        properties |= {f"{TRAINING}.{name}": show(getattr(training, name)) for name in training_settings()}
        canonical: dict[str, Any] = {part: choice.label for part, choice in choices.items()}
        place = replace(at, dataset=resolve_dataset(at.dataset, root).label, **canonical)
        found.append(Described(place, {part: choice.name for part, choice in choices.items()}, properties))
    resolver.save()
    return found


def _training(settings: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """The changed training settings, validated and normalized, and the other settings."""
    offered, training, rest = training_settings(), {}, {}
    for name, values in settings.items():
        part, _, setting = name.partition(".")
        if part != TRAINING:
            rest[name] = values
            continue
        if setting not in offered:
            raise unknown("training setting", setting, offered)
        training[setting] = tuple(show(offered[setting].check(value, TRAINING)) for value in values)
    return training, rest


def _with_settings(
    parts: Iterable[Part],
    settings: Mapping[str, tuple[str, ...]],
    resolver: Resolver,
    among: Iterable[Part] | None = None,
) -> list[Part]:
    """Each cell or row with the settings that it has; a setting that none of them has is an error."""
    found = list(parts)
    for name, values in settings.items():
        owner, _, setting = name.partition(".")
        looked_at = list(found if among is None else among)
        if not any(_owners(name, one, resolver) for one in looked_at):
            raise _nobody_has(name, owner, setting, looked_at, resolver)
        found = [changed for one in found for changed in _changed(one, _owners(name, one, resolver), values, resolver)]
    return list(dict.fromkeys(found))


def _owners(name: str, one: Part, resolver: Resolver) -> list[tuple[str, str, Choice]]:
    """The parts of a cell that have a setting: the part, the setting's name there, and the current choice."""
    owner, _, setting = name.partition(".")
    found = []
    for part, registry in REGISTRIES.items():
        if not getattr(one, part):
            continue
        choice = resolver.resolve(registry, getattr(one, part)).choice
        own = setting if owner in (part, choice.name) else name  # `dropedge.p` of `dropedge+maskattr`
        if own in choice.settings:
            found.append((part, own, choice))
    return found


def _changed(
    one: Part, places: Sequence[tuple[str, str, Choice]], values: Sequence[str], resolver: Resolver
) -> list[Part]:
    if not places:
        return [one]
    found = []
    for value in values:
        parts: dict[str, Any] = {}
        for part, setting, choice in places:
            written = {key: show(held) for key, held in choice.settings.items()} | {setting: value}
            text = ",".join(f"{key}={held}" for key, held in written.items())
            parts[part] = resolver.resolve(REGISTRIES[part], f"{choice.name}:{text}").choice.label
        found.append(replace(one, **parts))
    return found


def _nobody_has(name: str, owner: str, setting: str, looked_at: Sequence[Part], resolver: Resolver) -> UserError:
    """The error for a setting that no part has, with the closest known ones."""
    there: dict[str, set[str]] = {part: set() for part in REGISTRIES}
    plugins = set()
    for one in looked_at:
        for part, registry in REGISTRIES.items():
            if getattr(one, part):
                choice = resolver.resolve(registry, getattr(one, part)).choice
                there[part] |= {key for key in choice.settings}
                plugins.add(choice.name)
                there.setdefault(choice.name, set()).update(choice.settings)
    if not setting or owner not in there:
        known = {*(f"{part}.{key}" for part in REGISTRIES for key in there[part])}
        known |= {f"{TRAINING}.{key}" for key in training_settings()}
        return unknown("setting", name, known) if setting == "" else unknown("part", owner, {*there, TRAINING})
    if not there[owner]:
        return UserError(f"no {owner} here has any setting, so {name} would change nothing; leave it out")
    return unknown(f"setting of {'every ' if owner in REGISTRIES else ''}{owner} here", setting, there[owner])


def _with_added(cells: Sequence[Coordinate], added: Sequence[str], resolver: Resolver) -> list[Coordinate]:
    found = list(cells)
    for word in added:
        part, label = _resolved(word, resolver)
        for cell in cells:
            if part == "learner":
                found.append(replace(cell, augmenter="none", backbone="", readout="", learner=label))
            elif cell.backbone:
                found.append(replace(cell, augmenter=label))
    return list(dict.fromkeys(found))


def _resolved(word: str, resolver: Resolver) -> tuple[str, str]:
    """The part that a name refers to, an augmenter or a learner, and its label."""
    name = word.partition(":")[0]
    if name in LEARNERS.entries() and name not in AUGMENTERS.entries() and name != NETWORK:
        return "learner", resolver.resolve(LEARNERS, word).choice.label
    return "augmenter", resolver.resolve(AUGMENTERS, word).choice.label


def _groups_with_added(spec: TableSpec, added: Sequence[str], resolver: Resolver) -> tuple[tuple[Row, ...], ...]:
    """Rows for the added methods: in the group of their model if there is exactly one, else in a new group below."""
    groups = [list(group) for group in spec.groups]
    known = {(row.augmenter, row.backbone, row.readout, row.learner) for row in spec.rows}
    models = list(dict.fromkeys((row.backbone, row.readout, row.learner) for row in spec.rows if row.backbone))
    below: list[Row] = []
    for word in added:
        part, label = _resolved(word, resolver)
        if part == "learner":
            below.append(Row(method_name("none", "", "", label), "none", "", "", label))
            continue
        for model in models:
            if (label, *model) in known:
                continue
            homes = [g for g in groups if any((r.backbone, r.readout, r.learner) == model for r in g)]
            alone = len(homes) == 1 and all((r.backbone, r.readout, r.learner) == model for r in homes[0])
            name = method_name(label) if alone or len(models) == 1 else method_name(label, *model)
            (homes[0] if alone else below).append(Row(name, label, *model))
    return tuple(tuple(group) for group in (*groups, below) if group)
