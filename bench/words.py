"""Small words for one and for many."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`1 cell`, `2 cells`, `2 classes`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}{'es' if thing.endswith('s') else 's'}"


def have(number: int) -> str:
    """A count with its verb: 1 trial has, 2 trials have."""
    return "has" if number == 1 else "have"


def are(number: int) -> str:
    return "is" if number == 1 else "are"
