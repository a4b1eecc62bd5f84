"""How the fast engine says that a trial is not for it."""

from __future__ import annotations


class NotFast(Exception):
    """This trial is for the reference engine; `reason` says why, in words that fit behind "handed over:"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
