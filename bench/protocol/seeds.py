"""Seeds from names, never from positions: adding a method, a fold or a dataset moves nobody else's numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass


def seed_from(*names: str | int) -> int:
    """A seed of 63 bits that depends on these names and their order alone.

    Every name is hashed with its type and its length before it, so that ("ab", "c") and ("a", "bc"), or 1 and "1",
    are different names.
    """
    digest = hashlib.blake2b(digest_size=8, person=b"augbench seeds")
    for name in names:
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise TypeError(f"a seed is made from texts and whole numbers, not from {name!r}")
        kind = b"s" if isinstance(name, str) else b"i"
        text = str(name).encode()
        digest.update(kind + len(text).to_bytes(8, "big") + text)
    return int.from_bytes(digest.digest(), "big") >> 1


def shuffled(items: Iterable[int], *names: str | int) -> list[int]:
    """The items in an order drawn by these names.

    Each item is ranked by a hash of its own, so the order is the same with any version of any library, and
    an item that joins or leaves does not disturb the order of the others.
    """
    root = seed_from(*names)
    return sorted(items, key=lambda item: (seed_from(root, item), item))


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
        """The classifier's first weights: the same for every augmenter."""
        return self._seed("init", backbone, readout)

    def pretrain(self, backbone: str, readout: str) -> int:
        """The first weights of a classifier that an augmenter trains for itself: never those of `init`."""
        return self._seed("pretrain", backbone, readout)

    def augmenter(self, backbone: str, readout: str, augmenter: str) -> int:
        """The augmenter's own stream; `augmenter` is its label, settings included."""
        return self._seed("augmenter", backbone, readout, augmenter)

    def shared(self, key: str) -> int:
        """The stream of something that several methods of the trial have in common."""
        return self._seed("shared", key)
