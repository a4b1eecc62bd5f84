"""How a classifier is trained, and the presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from bench.registry import Setting, Tune, Within, show, signature_settings, unknown

Head = Literal["linear", "relu"]


@dataclass(frozen=True)
class Training:
    """How a classifier is trained; a preset is a named instance.

    `head`: whether a ReLU follows the last layer. `select`: the epoch whose weights are used. `start`: fresh weights,
    or those of the classifier that was pre-trained on the labeled graphs. `loss`: the sum over all graphs, or the mean
    over the originals plus `weight` times the mean over the generated graphs. `batch`: graphs per step, shuffled in
    each epoch; 0 uses all of them at once. Pre-training always uses the sum over all labeled graphs.
    """

    preset: str = "standard"
    epochs: Annotated[int, Within(1, 1_000_000)] = 800
    lr: Annotated[float, Within(0, 10, above=True), Tune(1e-3, 3e-2, log=True)] = 0.01
    weight_decay: Annotated[float, Within(0, 10), Tune(1e-6, 1e-2, log=True)] = 0.0
    select: Literal["last", "best-val"] = "last"
    head: Head = "linear"
    start: Literal["fresh", "pretrained"] = "fresh"
    loss: Literal["sum", "mean"] = "sum"
    batch: Annotated[int, Within(0, 1_000_000)] = 0

    def with_settings(self, changes: Mapping[str, Any]) -> Training:
        """A copy with some settings changed and validated.

        The changes are part of its name: `standard+lr=0.1` differs from `standard` in captions and comparisons as well
        as in the key.
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
    """The training settings that users can change."""
    return {key: setting for key, setting in signature_settings(Training).items() if key != "preset"}


PRESETS = {
    "paper": Training("paper", head="relu"),  # literally: each fully connected layer is followed by a ReLU
    "standard": Training(),
    "quick": Training("quick", epochs=100),
}
# What `features=auto` means for a dataset without node features, if a preset specifies it.
_FEATURELESS = {"paper": "degree-onehot"}


def base_preset(name: str) -> str:
    """The preset that a changed training is based on."""
    return name.partition("+")[0]


def preset(name: str) -> Training:
    """The training settings with that name."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]


def left_to_reference(training: Training, backbone: Mapping[str, Any]) -> str | None:
    """Why the fast engine cannot perform a training, None if it can; `backbone` has the backbone's settings."""
    return f"batch={training.batch} with dropout" if training.batch and backbone.get("dropout") else None


def featureless(name: str) -> str:
    """The node features that a preset, or a training based on it, uses for datasets without any."""
    return _FEATURELESS.get(base_preset(name), "constant")
