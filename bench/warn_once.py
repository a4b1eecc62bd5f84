"""Things worth saying once, however many trials run into them."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("bench")
_said: set[str] = set()


def warn_once(message: str) -> None:
    """Log a warning, unless this process has said the same before."""
    if message not in _said:
        _said.add(message)
        _LOG.warning(message)
