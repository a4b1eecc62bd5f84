"""Small words of the command line."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
