"""Files that are whole or not there: a crash or a full disk in the middle of writing leaves the old file as it was."""

from __future__ import annotations

from bench.temporary import replacing as whole_file

__all__ = ["whole_file"]
