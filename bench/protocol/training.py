"""How a classifier is trained, and the named sets of these settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from bench.registry import Setting, Tune, Within, show, signature_settings, unknown


@dataclass(frozen=True)
class Training:
    """How a classifier is trained; a preset is a named set of these."""

    preset: str = "standard"
    epochs: Annotated[int, Within(1, 1_000_000)] = 800
    lr: Annotated[float, Within(0, 10, above=True), Tune(1e-3, 3e-2, log=True)] = 0.01
    weight_decay: Annotated[float, Within(0, 10), Tune(1e-6, 1e-2, log=True)] = 0.0
    select: Literal["last", "best-val"] = "last"

    def with_settings(self, changes: Mapping[str, Any]) -> Training:
        """A copy with some settings changed and checked.

        Its name says so: `standard+lr=0.1` is not `standard`, in captions and comparisons as in the key.
        """
        offered = training_settings()
        for key in changes:
            if key not in offered:
                raise unknown("training setting", key, offered)
        values: dict[str, Any] = {key: offered[key].check(value, "training") for key, value in changes.items()}
        return replace(self, **values)._named()

    def _named(self) -> Training:
        base = base_preset(self.preset)
        usual = asdict(PRESETS.get(base, Training()))
        changed = [
            f"{key}={show(getattr(self, key))}" for key in training_settings() if getattr(self, key) != usual[key]
        ]
        return replace(self, preset=f"{base}+{','.join(changed)}" if changed else base)


def training_settings() -> dict[str, Setting]:
    """The settings of training that a user may write."""
    return {key: setting for key, setting in signature_settings(Training).items() if key != "preset"}


PRESETS = {
    "standard": Training(),
    "quick": Training("quick", epochs=100),
}


def base_preset(name: str) -> str:
    """The preset that a changed training started from."""
    return name.partition("+")[0]


def preset(name: str) -> Training:
    """The training settings of that name."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]
