"""Functions shared by the scripts in this folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from augmenters.base import SharedParts
from bench.learning.problem import Engine, Fitted, Problem
from bench.registry import UserError


def call(main: Callable[[], None]) -> None:
    """A user's mistake is one line and exit code 2, as in `bench`."""
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def fit(engine: Engine, problem: Problem) -> Fitted:
    """One trial from scratch; errors are raised."""
    result = engine.fit([replace(problem, shared=SharedParts())])[0]
    if isinstance(result, Exception):
        raise result
    return result
