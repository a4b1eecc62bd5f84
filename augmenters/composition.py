"""Composition of augmenters: `dropedge:p=0.2+maskattr` applies one after the other in each epoch.

Imports only the standard library, so that listing and planning do not load torch.
"""

from __future__ import annotations

import re
from typing import Any

from bench.registry import Choice, Entry, Registry, Setting, UserError, show, split_spec

_PLUS = re.compile(r"\s*\+\s*(?=[^\W\d])")  # before a name; the plus in 1e+3 belongs to a number


def part_names(name: str) -> list[str]:
    """The names in a composed name; a plain name gives a list of one."""
    return _PLUS.split(name)


class AugmenterRegistry(Registry):
    """A registry that also accepts names joined by a plus; their settings are then called `part.setting`."""

    def __init__(self, kind: str, group: str, base: str) -> None:
        super().__init__(kind, group, base)
        self._composed: dict[str, type] = {}

    def entry(self, name: str) -> Entry:
        parts = [super(AugmenterRegistry, self).entry(one) for one in part_names(name)]
        if len(parts) == 1:
            return parts[0]
        version = "+".join(f"{part.name}={part.version}" for part in parts)
        origin = parts[0].origin if len({part.origin for part in parts}) == 1 else "several packages"
        return Entry(
            name, "augmenters.composed:Composed", ", then ".join(part.summary for part in parts), version, origin
        )

    def load(self, name: str) -> type:
        parts = part_names(name)
        if len(parts) == 1:
            return super().load(name)
        if len(set(parts)) < len(parts):
            raise UserError(f"{name} contains the same augmenter twice; name each once")
        if name not in self._composed:
            from augmenters.composed import compose

            self._composed[name] = compose({part: self.load(part) for part in parts})
        return self._composed[name]

    def settings(self, name: str) -> dict[str, Setting]:
        parts = part_names(name)
        if len(parts) == 1:
            return super().settings(name)
        self.load(name)  # raises an error for parts that cannot be composed
        found = {}
        for part in parts:
            for key, s in super().settings(part).items():
                setting = Setting(f"{part}.{key}", s.type, s.default, s.choices, s.bounds, s.tune, s.optional)
                found[setting.name] = setting
        return found

    def resolve(self, spec: str | Choice) -> Choice:
        if isinstance(spec, Choice) or len(part_names(spec)) == 1:
            return super().resolve(spec)
        written = dict(split_spec(part) for part in part_names(spec))
        name = "+".join(split_spec(part)[0] for part in part_names(spec))
        self.load(name)
        for owner, raw in list(written.items()):  # `a+b:a.p=0.2` means `a:p=0.2+b`; the tuner writes settings this way
            for key in [key for key in raw if key.rpartition(".")[0] in written]:
                part, _, own = key.rpartition(".")
                written[part][own] = written[owner].pop(key)
        chosen = [
            super(AugmenterRegistry, self).resolve(part + (f":{_written(raw)}" if raw else ""))
            for part, raw in written.items()
        ]
        values = {f"{part.name}.{key}": value for part in chosen for key, value in part.settings.items()}
        return Choice(name, values, "+".join(part.label for part in chosen))

    def create(self, spec: str | Choice, **given: Any) -> Any:
        choice = self.resolve(spec)
        parts = part_names(choice.name)
        if len(parts) == 1:
            return super().create(choice, **given)
        instances = []
        for part in parts:
            own = {key.removeprefix(f"{part}."): v for key, v in choice.settings.items() if key.startswith(f"{part}.")}
            instances.append(super().create(Choice(part, own, part), **given))
        return self.load(choice.name)(instances)


def _written(raw: dict[str, str]) -> str:
    return ",".join(f"{key}={show(value)}" for key, value in raw.items())
