"""Search spaces: declared by `Tune` annotations of arguments, narrowed or fixed by the user.

Users write `setting=low..high`, `setting=a|b|c`, or `setting=value` to fix it, preceded by the owner's name if two
parts have a setting of that name: `gcn.width=16..64`, `gdm-unc.encoder=gsae|vgsae`, `training.lr=0.01`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from augmenters import AUGMENTERS
from bench.learning import LEARNERS
from bench.plan.cells import Cell
from bench.protocol.training import Training, base_preset, preset
from bench.registry import Choice, Registry, Scalar, Setting, UserError, show, signature_settings, unknown
from models import BACKBONES, READOUTS

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

REGISTRIES: dict[str, Registry] = {
    "learner": LEARNERS,
    "augmenter": AUGMENTERS,
    "backbone": BACKBONES,
    "readout": READOUTS,
}
TRAINING = "training"
DIGITS = 4  # significant digits of a searched number: the same short number is stored, shown and used


@dataclass(frozen=True)
class Dimension:
    """One searched setting: a range or choices. `start` is its value in the first trial.

    Without a start, the first trial uses the default even though it lies outside the range: a weight decay of 0 is not
    on a logarithmic scale.
    """

    part: str
    setting: Setting
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    choices: tuple[Scalar, ...] = ()
    start: tuple[Scalar] | None = None

    @property
    def name(self) -> str:
        """The same for every method, so that studies can be compared."""
        return f"{self.part}.{self.setting.name}"

    def distribution(self) -> BaseDistribution:
        """The Optuna distribution."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.setting.type is int:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def exact(self, value: Any) -> Scalar:
        """The value used for a sampler's proposal: short, and still within the range."""
        if isinstance(value, float) and not self.choices:
            return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)
        return value

    def to_json(self) -> Any:
        if self.choices:
            return {"choices": list(self.choices)}
        return {"low": self.low, "high": self.high, "log": self.log, "type": self.setting.type.__name__}


@dataclass(frozen=True)
class Space:
    """The search space of one method: what is searched, and what the user fixed."""

    dimensions: tuple[Dimension, ...]
    fixed: Mapping[str, Scalar] = field(default_factory=dict)  # `part.setting` -> value

    def distributions(self) -> dict[str, BaseDistribution]:
        return {dimension.name: dimension.distribution() for dimension in self.dimensions}

    def start(self) -> dict[str, Scalar]:
        """The method's defaults as parameters of the first trial, without those outside their range."""
        return {d.name: d.start[0] for d in self.dimensions if d.start is not None}

    def settings(self, params: Mapping[str, Any]) -> dict[str, Scalar]:
        """The parameters as they are used."""
        return {d.name: d.exact(params[d.name]) for d in self.dimensions if d.name in params}

    def apply(self, cell: Cell, params: Mapping[str, Any]) -> Cell:
        """The cell with these parameters; other settings keep their values."""
        return with_values(cell, {**self.fixed, **self.settings(params)})

    def to_json(self) -> dict[str, Any]:
        return {"search": {d.name: d.to_json() for d in self.dimensions}, "fixed": dict(self.fixed)}


def with_values(cell: Cell, values: Mapping[str, Scalar]) -> Cell:
    """The cell with some settings changed; `values` are by `part.setting`, as a study stores them."""
    changes: dict[str, dict[str, Scalar]] = {}
    for name, value in values.items():
        part, _, setting = name.partition(".")
        changes.setdefault(part, {})[setting] = value
    training = cell.training.with_settings(changes.pop(TRAINING, {}))
    chosen: dict[str, Any] = {
        part: _with_settings(part, getattr(cell, part), change) for part, change in changes.items()
    }
    return replace(cell, training=training, **chosen)


def _with_settings(part: str, choice: Choice, changes: Mapping[str, Scalar]) -> Choice:
    """A plug-in with some settings changed, validated and labeled as if a user had written them."""
    registry = REGISTRIES[part]
    offered = registry.settings(choice.name)
    values = {**choice.settings, **changes}
    written = [f"{key}={show(value)}" for key, value in values.items() if value != offered[key].default]
    return registry.resolve(f"{choice.name}:{','.join(written)}" if written else choice.name)


@dataclass(frozen=True)
class _Place:
    """A setting of a part of a cell, with its value and whether the user wrote that value."""

    part: str
    owner: str
    setting: Setting
    value: Scalar
    written: bool

    @property
    def name(self) -> str:
        return f"{self.owner}.{self.setting.name}"


def _places(cell: Cell) -> list[_Place]:
    usual = preset(base_preset(cell.training.preset))
    learner: Any = LEARNERS.load(cell.learner.name)
    places = [
        _Place(TRAINING, TRAINING, s, getattr(cell.training, key), getattr(cell.training, key) != getattr(usual, key))
        for key, s in signature_settings(Training).items()
        if key != "preset" and learner.trained
    ]
    for part, registry in REGISTRIES.items():
        choice: Choice | None = getattr(cell, part)
        if choice is None:
            continue
        for key, setting in registry.settings(choice.name).items():
            value = choice.settings[key]
            places.append(_Place(part, choice.name, setting, value, value != setting.default))
    return sorted(places, key=lambda place: place.name)


def space_for(cell: Cell, narrowing: Mapping[str, str]) -> Space:
    """The search space of a cell's method. Settings that the user wrote explicitly are not searched."""
    places = _places(cell)
    asked = {_meant(key, places, cell): text for key, text in narrowing.items() if _concerns(key, places)}
    dimensions, fixed = [], {}
    for place in places:
        if place in asked:
            if place.written:
                raise UserError(
                    f"{place.name} is {show(place.value)} in '{cell.label}' and also in the space; keep one of them"
                )
            found = _narrowed(place, asked[place])
            if found.choices and len(found.choices) == 1:
                fixed[found.name] = found.choices[0]
            else:
                dimensions.append(found)
        elif place.setting.tune is not None and not place.written:
            dimensions.append(_declared(place))
    if not dimensions:
        raise UserError(f"nothing is left to search for '{cell.label}'; fix fewer settings with --space")
    return Space(tuple(dimensions), fixed)


def read_narrowing(texts: Sequence[str]) -> dict[str, str]:
    """Parse `[owner.]setting=what` options, by key."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, what = (piece.strip() for piece in text.partition("="))
        if not key or not equals or not what:
            raise UserError(f"--space {text} cannot be read; write setting=low..high, setting=a|b, or setting=value")
        if key in found:
            raise UserError(f"--space names {key} twice; keep one")
        found[key] = what
    return found


def check_narrowing(narrowing: Mapping[str, str], cells: Sequence[Cell]) -> None:
    """Every key must refer to a setting of at least one method; otherwise, typos would go unnoticed."""
    known = [place for cell in cells for place in _places(cell)]
    for key in narrowing:
        if not _concerns(key, known):
            names = {place.name for place in known} | {place.setting.name for place in known}
            raise unknown("setting in the search space", key, names)


def _concerns(key: str, places: Sequence[_Place]) -> list[_Place]:
    owner, _, setting = key.rpartition(".")
    whole = [p for p in places if p.setting.name == key]  # settings of a composed augmenter contain the name of a part
    return whole or [p for p in places if p.setting.name == setting and owner in ("", p.owner, p.part)]


def _meant(key: str, places: Sequence[_Place], cell: Cell) -> _Place:
    matches = _concerns(key, places)
    if len(matches) > 1:
        names = " or ".join(place.name for place in matches)
        raise UserError(f"'{key}' in the space is ambiguous for '{cell.label}'; write {names}")
    return matches[0]


def _declared(place: _Place) -> Dimension:
    """The range or choices that the plug-in's author declared for the argument."""
    tune, setting = place.setting.tune, place.setting
    assert tune is not None
    choices = tune.choices or setting.choices or ((False, True) if setting.type is bool else ())
    if choices:
        for choice in choices:
            setting.check(choice, f"the search space of {place.name}")
        return _started(Dimension(place.part, setting, choices=tuple(choices)), place)
    if tune.low is None or tune.high is None or setting.type is str:
        raise UserError(
            f"{place.name} is declared with Tune() but has neither choices nor a range; write Tune(low, high)"
        )
    return _started(_range(place, tune.low, tune.high, tune.log), place)


def _narrowed(place: _Place, text: str) -> Dimension:
    """The user's range or choices; the first trial uses the value closest to the default."""
    setting, owner = place.setting, f"--space {place.name}={text}"
    low, dots, high = (piece.strip() for piece in text.partition(".."))
    if not dots:
        choices = tuple(dict.fromkeys(setting.check(piece.strip(), owner) for piece in text.split("|")))
        found = _started(Dimension(place.part, setting, choices=choices), place)
        return found if found.start is not None else replace(found, start=(choices[0],))
    if setting.choices or setting.type not in (int, float):
        raise UserError(f"{owner}: {setting.name} has no range; it takes {setting.domain}, written with | between them")
    ends = [setting.check(end, owner) for end in (low, high)]
    if not all(isinstance(end, int | float) for end in ends):
        raise UserError(f"{owner}: a range needs a number at each end; write {setting.name}=low..high")
    log = setting.tune.log if setting.tune else False
    dimension = _range(place, float(ends[0] or 0), float(ends[1] or 0), log)
    found = _started(dimension, place)
    if found.start is not None or isinstance(place.value, str | None):
        return found
    return replace(found, start=(setting.type(min(max(place.value, dimension.low), dimension.high)),))


def _range(place: _Place, low: float, high: float, log: bool) -> Dimension:
    for end in (low, high):
        place.setting.check(end, f"the search space of {place.name}")
    if low >= high:
        raise UserError(
            f"the search space {place.name}={low:g}..{high:g} is empty; the low end must be below the high end"
        )
    if log and low <= 0:
        raise UserError(
            f"the search space {place.name}={low:g}..{high:g} is searched on a logarithmic scale; "
            "the low end must be above 0"
        )
    return Dimension(place.part, place.setting, low=low, high=high, log=log)


def _started(dimension: Dimension, place: _Place) -> Dimension:
    """The dimension with the method's own value as its start, if that is in range."""
    value = place.value
    if dimension.choices:
        inside = value in dimension.choices
    else:
        inside = isinstance(value, int | float) and dimension.low <= value <= dimension.high
    return replace(dimension, start=(value,)) if inside else dimension
