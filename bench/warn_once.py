"""Warnings that are worth giving once, however many trials cause them."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("bench")
_said: set[str] = set()


def warn_once(message: str) -> None:
    """Log a warning, unless this process has already logged the same one."""
    if message not in _said:
        _said.add(message)
        _LOG.warning(message)
