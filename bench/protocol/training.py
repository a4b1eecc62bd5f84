"""How a classifier is trained, and the named sets of these settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from bench.registry import Tune, Within, signature_settings, unknown


@dataclass(frozen=True)
class Training:
    """How a classifier is trained; a preset is a named set of these."""

    preset: str = "paper"
    epochs: Annotated[int, Within(1, 1_000_000)] = 800
    lr: Annotated[float, Within(0, 10, above=True), Tune(1e-3, 3e-2, log=True)] = 0.01
    weight_decay: Annotated[float, Within(0, 10), Tune(1e-6, 1e-2, log=True)] = 0.0
    select: Literal["last", "best-val"] = "last"

    def with_settings(self, changes: Mapping[str, Any]) -> Training:
        """A copy with some settings changed and checked; its preset's name says that it was changed."""
        offered = {key: s for key, s in signature_settings(Training).items() if key != "preset"}
        for key in changes:
            if key not in offered:
                raise unknown("training setting", key, offered)
        values: dict[str, Any] = {key: offered[key].check(value, "training") for key, value in changes.items()}
        return replace(self, **values)


PRESETS = {
    "paper": Training(),
    "quick": Training("quick", epochs=100),
}


def preset(name: str) -> Training:
    """The training settings of that name."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]
