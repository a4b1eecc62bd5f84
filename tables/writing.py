"""Writes files completely or not at all: after a crash or with a full disk, the old file is unchanged."""

from __future__ import annotations

from bench.temporary import replacing as whole_file

__all__ = ["whole_file"]
