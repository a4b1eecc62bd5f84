"""Seeds from names, never from positions. A leaf: it imports the standard library alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


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
