"""The registry of plug-ins, used for every kind, and the syntax of their settings.

Imports only the standard library, so that any package can use it and the command line starts fast.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Scalar = bool | int | float | str | None
T = TypeVar("T")


class UserError(ValueError):
    """A mistake that the user can fix. One line with the value, the reason and the remedy; exit code 2."""

    def __init__(self, message: str) -> None:
        # Values come from files and arguments: line breaks and control characters in them are escaped.
        super().__init__("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message))


@dataclass(frozen=True)
class Within:
    """Bounds of a numeric setting, written in its annotation: `Annotated[float, Within(0, 1)]`."""

    low: float | None = None
    high: float | None = None
    above: bool = False  # whether the lower bound itself is excluded

    def admits(self, value: float) -> bool:
        """Whether the value is within the bounds."""
        if self.low is not None and (value <= self.low if self.above else value < self.low):
            return False
        return self.high is None or value <= self.high

    def __str__(self) -> str:
        floor = "" if self.low is None else f"{'above' if self.above else 'from'} {self.low:g}"
        ceiling = "" if self.high is None else f"{'up to' if self.above else 'to'} {self.high:g}"
        return f"{floor} {ceiling}".strip()


@dataclass(frozen=True)
class Tune:
    """The search range of a setting: a range of numbers, or choices (if empty, all values of a Literal)."""

    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Setting:
    """A constructor argument of a plug-in that users can set."""

    name: str
    type: type
    default: Scalar
    choices: tuple[Scalar, ...] = ()
    bounds: Within | None = None
    tune: Tune | None = None
    optional: bool = False

    @property
    def domain(self) -> str:
        if self.choices:
            return "|".join(show(c) for c in self.choices)
        words = {bool: "true|false", int: "a whole number", float: "a number", str: "text"}[self.type]
        words = f"{words} {self.bounds}" if self.bounds else words
        return f"{words}, or none" if self.optional else words

    def __str__(self) -> str:
        return f"{self.name} ({self.domain}; default {show(self.default)})"

    def check(self, value: Any, owner: str) -> Scalar:
        """Convert and validate a value; the error describes valid values."""
        try:
            return self._convert(value)
        except (ValueError, KeyError, OverflowError, TypeError):
            raise UserError(f"{owner}: {self.name}={show(value)} is not valid; it takes {self.domain}") from None

    def _convert(self, value: Any) -> Scalar:
        if isinstance(value, str) and self.type is not str:
            value = value.strip().lower()
        if self.optional and value in (None, "none"):
            return None
        if self.choices:
            for choice in self.choices:
                if show(choice) == show(value):
                    return choice
            raise ValueError
        if self.type is bool:
            return {"true": True, "false": False}[show(value)]
        if self.type is str and isinstance(value, str):
            return value
        if self.type is str or isinstance(value, bool) or value is None:
            raise ValueError
        number = self.type(value)
        if self.type is int and number != float(value):
            raise ValueError
        if not math.isfinite(number) or (self.bounds and not self.bounds.admits(number)):
            raise ValueError
        return number


def show(value: Scalar) -> str:
    """A setting's value as written on the command line."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def split_spec(text: str) -> tuple[str, dict[str, str]]:
    """Split `name:key=value,key=value` into the name and its raw settings; the name may be a path `module:Class`."""
    name, *rest = (part.strip() for part in text.strip().split(":"))
    if rest and "=" not in rest[0] and ("." in name or rest[0][:1].isupper()):
        name, rest = f"{name}:{rest[0]}", rest[1:]
    if not name or len(rest) > 1:
        raise UserError(f"'{text}' is not a name with settings; write name:key=value,key=value")
    settings: dict[str, str] = {}
    for item in rest[0].split(",") if rest else []:
        key, equals, value = (piece.strip() for piece in item.partition("="))
        if not key or not equals or not value:
            raise UserError(f"'{text}': cannot read '{item}'; settings are written key=value, separated by commas")
        if key in settings:
            raise UserError(f"'{text}' sets {key} twice; keep one")
        settings[key] = value
    return name, settings


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for an unknown name, with the closest known names."""
    names = sorted(known)
    spelled = {one.lower(): one for one in names}
    close = [spelled[one] for one in difflib.get_close_matches(name.lower(), spelled, n=3, cutoff=0.5)]
    hint = f"Did you mean: {', '.join(close)}?" if close else f"Known: {', '.join(names)}"
    return UserError(f"unknown {kind} '{name}'. {hint}")


def signature_settings(target: Callable[..., Any]) -> dict[str, Setting]:
    """The settings of a constructor: its arguments with a default and a simple type."""
    init = target.__init__ if inspect.isclass(target) else target
    hints = typing.get_type_hints(init, include_extras=True)
    found = {}
    for parameter in inspect.signature(target).parameters.values():
        if parameter.default is inspect.Parameter.empty or parameter.name not in hints:
            continue
        if (setting := _setting(parameter.name, hints[parameter.name], parameter.default)) is not None:
            found[parameter.name] = setting
    return found


def _setting(name: str, hint: Any, default: Any) -> Setting | None:
    extras: tuple[Any, ...] = ()
    if typing.get_origin(hint) is typing.Annotated:
        hint, *rest = typing.get_args(hint)
        extras = tuple(rest)
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [a for a in typing.get_args(hint) if a is not type(None)]
        if len(inner) != 1 or len(inner) == len(typing.get_args(hint)):
            return None
        hint, optional = inner[0], True
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
    kind = type(choices[0]) if choices else hint
    if kind not in (bool, int, float, str):
        return None
    if kind is float and type(default) is int:  # `p: float = 1` and `p=1.0` are the same value and key
        default = float(default)
    bounds = next((e for e in extras if isinstance(e, Within)), None)
    tune = next((e for e in extras if isinstance(e, Tune)), None)
    return Setting(name, kind, default, choices, bounds, tune, optional)


@dataclass(frozen=True)
class Choice:
    """A plug-in with all its settings resolved; `label` contains only those that differ from the defaults."""

    name: str
    settings: Mapping[str, Scalar]
    label: str

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class Extra:
    """An optional package, and the extra of augbench that installs it."""

    package: str
    extra: str

    @property
    def version(self) -> str | None:
        """The installed version; None if it is not installed."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None


@dataclass(frozen=True)
class Entry:
    """What a registry knows about a plug-in before it is imported."""

    name: str
    target: str | type
    summary: str = ""
    version: int | str = 1
    origin: str = "built in"
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    needs: Extra | None = None

    @property
    def lacks(self) -> str | None:
        """What has to be installed before the plug-in can be used; None if nothing."""
        if self.needs is None or self.needs.version is not None:
            return None
        return (
            f"{self.name} needs the package {self.needs.package}; pip install 'augbench[{self.needs.extra}]' brings it"
        )


class Registry:
    """Named plug-ins of one kind: built in, registered by decorator, or from the entry points of installed packages."""

    def __init__(self, kind: str, group: str, base: str) -> None:
        self.kind, self.group, self.base = kind, group, base
        self._entries: dict[str, Entry] = {}
        self._discovered = False

    def add(
        self,
        name: str,
        target: str | type,
        /,
        summary: str = "",
        version: int = 1,
        needs: Extra | None = None,
        **fixed: Scalar,
    ) -> None:
        """Register a class or a lazy `module:attr`; `fixed` arguments belong to the name and cannot be set.

        `needs` is a package that only an extra installs.
        """
        if name in self._entries:
            raise UserError(f"{self.kind} '{name}' is registered twice; choose another name")
        self._entries[name] = Entry(name, target, summary, version, fixed=fixed, needs=needs)

    def register(self, name: str, summary: str = "", version: int = 1, **fixed: Scalar) -> Callable[[type[T]], type[T]]:
        """Decorator form of `add`."""

        def decorate(cls: type[T]) -> type[T]:
            self.add(name, cls, summary, version, None, **fixed)
            return cls

        return decorate

    def entries(self) -> dict[str, Entry]:
        """All known plug-ins; third-party plug-ins cannot use the name of a built-in one."""
        if not self._discovered:
            found: dict[str, Entry] = {}
            for point in importlib.metadata.entry_points(group=self.group):
                origin, version = (point.dist.name, point.dist.version) if point.dist else ("entry point", "unknown")
                if point.name in self._entries or point.name in found:
                    raise UserError(f"{self.kind} '{point.name}' of {origin} is already taken; rename its entry point")
                found[point.name] = Entry(point.name, point.value, f"from {origin}", version, origin)
            self._entries |= found
            self._discovered = True
        return self._entries

    def names(self) -> list[str]:
        """All known names, sorted."""
        return sorted(self.entries())

    def entry(self, name: str) -> Entry:
        """What is known about a plug-in, without importing it; also for a path `module:Class`."""
        known = self.entries()
        if name in known:
            return known[name]
        if ":" in name:
            return Entry(name, name, "given by its path", origin="path")
        raise unknown(self.kind, name, known)

    def load(self, name: str) -> type:
        """Import the class of a name and check that it is derived from this registry's base class."""
        entry = self.entry(name)
        cls = entry.target if isinstance(entry.target, type) else _import(entry.target, f"{self.kind} '{name}'")
        base = _import(self.base, f"base class of every {self.kind}")
        if not (inspect.isclass(cls) and issubclass(cls, base)):
            raise UserError(
                f"{self.kind} '{name}' ({entry.target}) is not a subclass of {self.base}; derive it from that class"
            )
        return cls

    def settings(self, name: str) -> dict[str, Setting]:
        """The settings of this plug-in."""
        fixed = self.entry(name).fixed
        return {key: s for key, s in signature_settings(self.load(name)).items() if key not in fixed}

    def resolve(self, spec: str | Choice) -> Choice:
        """Parse `name:key=value,...` and validate it against the constructor's signature, filling in defaults."""
        if isinstance(spec, Choice):
            return spec
        name, raw = split_spec(spec)
        offered = self.settings(name)
        for key in raw:
            if key in self.entry(name).fixed:
                raise UserError(f"{name}: {key} is fixed by the name {name}; choose another {self.kind} to change it")
            if key not in offered:
                close = difflib.get_close_matches(key, offered, n=1)
                hint = f"Did you mean: {close[0]}? " if close else ""
                takes = "; ".join(str(s) for s in offered.values()) or "no settings"
                raise UserError(f"{name} has no setting '{key}'. {hint}It takes: {takes}")
        values = {key: s.check(raw[key], name) if key in raw else s.default for key, s in sorted(offered.items())}
        changed = [f"{key}={show(v)}" for key, v in values.items() if v != offered[key].default]
        return Choice(name, values, f"{name}:{','.join(changed)}" if changed else name)

    def create(self, spec: str | Choice, **given: Any) -> Any:
        """Create an instance of the plug-in; `given` are arguments that the caller supplies, not the user."""
        choice = self.resolve(spec)
        if lacking := self.entry(choice.name).lacks:
            raise UserError(lacking)
        return self.load(choice.name)(**given, **self.entry(choice.name).fixed, **choice.settings)


def _import(target: str, what: str) -> Any:
    module, _, attr = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attr)
    # TypeError and ValueError: not a valid module name. SystemExit: a module that exits on import.
    except (ImportError, AttributeError, TypeError, ValueError, SystemExit) as error:
        raise UserError(f"{what} cannot be loaded from {target}: {error}; reinstall or fix the package") from error
