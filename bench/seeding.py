"""Seeds from names, never from positions. Imports only the standard library."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def seed_from(*names: str | int) -> int:
    """A 63-bit seed that depends only on these names and their order.

    Every name is hashed with its type and length, so that ("ab", "c") and ("a", "bc"), or 1 and "1", give different
    seeds.
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
    """The items in a pseudorandom order determined by these names.

    Each item is ranked by its own hash. The order therefore does not depend on library versions, and adding or removing
    an item does not change the order of the others.
    """
    root = seed_from(*names)
    return sorted(items, key=lambda item: (seed_from(root, item), item))
