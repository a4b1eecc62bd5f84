"""The seeds of a trial, from names: adding a method, a fold or a dataset moves nobody else's numbers."""

from __future__ import annotations

from dataclasses import dataclass

from bench.seeding import seed_from

WEIGHTLESS = ("dropout",)  # settings of a backbone that no weight hangs on, by name


def weights_name(backbone: str) -> str:
    """A backbone's label without what no weight hangs on: networks of one name have the same first weights."""
    name, _, settings = backbone.rpartition(":")
    if "=" not in settings:
        return backbone
    kept = [item for item in settings.split(",") if item.partition("=")[0] not in WEIGHTLESS]
    return f"{name}:{','.join(kept)}" if kept else name


@dataclass(frozen=True)
class TrialSeeds:
    """The seeds of one trial. The label draw hangs on these four names and nothing else."""

    dataset: str
    splits: str
    fold: int
    repeat: int

    def _seed(self, purpose: str, *more: str) -> int:
        return seed_from(purpose, self.dataset, self.splits, self.fold, self.repeat, *more)

    @property
    def labels(self) -> int:
        """Which graphs are labelled: the same for every method."""
        return self._seed("labels")

    @property
    def validation(self) -> int:
        """Which graphs of the validation part a tuner may look at."""
        return self._seed("validation")

    def init(self, backbone: str, readout: str) -> int:
        """The classifier's first weights: the same for every augmenter, and for every dropout."""
        return self._seed("init", weights_name(backbone), readout)

    def pretrain(self, backbone: str, readout: str) -> int:
        """The first weights of a classifier that an augmenter trains for itself: never those of `init`."""
        return self._seed("pretrain", weights_name(backbone), readout)

    def augmenter(self, backbone: str, readout: str, augmenter: str) -> int:
        """The augmenter's own stream; `augmenter` is its label, settings included."""
        return self._seed("augmenter", backbone, readout, augmenter)

    def shared(self, key: str) -> int:
        """The stream of something that several methods of the trial have in common."""
        return self._seed("shared", key)
