"""The exception with which the fast engine hands over a trial."""

from __future__ import annotations


class NotFast(Exception):
    """This trial has to run on the reference engine; `reason` says why, in words that fit after "handed over:"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
