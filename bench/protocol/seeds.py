"""The seeds of a trial, from names: adding a method, a fold or a dataset changes no other result."""

from __future__ import annotations

from dataclasses import dataclass

from bench.seeding import seed_from

WEIGHTLESS = ("dropout",)  # settings of a backbone that do not affect its initial weights


def weights_name(backbone: str) -> str:
    """A backbone's label without settings that do not affect weights: equal labels mean equal initial weights."""
    name, _, settings = backbone.rpartition(":")
    if "=" not in settings:
        return backbone
    kept = [item for item in settings.split(",") if item.partition("=")[0] not in WEIGHTLESS]
    return f"{name}:{','.join(kept)}" if kept else name


@dataclass(frozen=True)
class TrialSeeds:
    """The seeds of one trial. The label draw depends only on these four names."""

    dataset: str
    splits: str
    fold: int
    repeat: int

    def _seed(self, purpose: str, *more: str) -> int:
        return seed_from(purpose, self.dataset, self.splits, self.fold, self.repeat, *more)

    @property
    def labels(self) -> int:
        """Which graphs are labeled: the same for every method."""
        return self._seed("labels")

    @property
    def validation(self) -> int:
        """Which graphs of the validation part a tuner may use."""
        return self._seed("validation")

    def init(self, backbone: str, readout: str) -> int:
        """The classifier's initial weights: the same for every augmenter and every dropout rate."""
        return self._seed("init", weights_name(backbone), readout)

    def pretrain(self, backbone: str, readout: str) -> int:
        """The initial weights of a classifier that an augmenter trains for itself: never those of `init`."""
        return self._seed("pretrain", weights_name(backbone), readout)

    def augmenter(self, backbone: str, readout: str, augmenter: str) -> int:
        """The augmenter's own random stream; `augmenter` is its label, settings included."""
        return self._seed("augmenter", backbone, readout, augmenter)

    def shared(self, key: str) -> int:
        """The random stream of something that several methods of the trial share."""
        return self._seed("shared", key)
