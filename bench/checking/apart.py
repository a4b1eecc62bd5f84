"""Checks in a worker process, so that a plug-in that exits or never returns affects only its own report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from bench.checking import Finding, Report, check
from bench.execution.containment import begin_trial
from bench.execution.local import LocalPool
from bench.execution.pool import PoolSetup
from bench.execution.suspects import Dispatcher, Failure
from bench.execution.worker import WorkerSettings
from bench.plan.identity import DEFAULT_ENGINE
from bench.registry import UserError

TITLE = "it returns to whoever calls it"


def checked_apart(names: Sequence[str], seconds: float) -> Iterator[Report]:
    """One report per plug-in, in order; each check is limited to this time."""
    left = iter(names)
    setup = PoolSetup(WorkerSettings(None, DEFAULT_ENGINE), 1, timeout=seconds)
    with closing(LocalPool(setup)) as pool:
        dispatcher: Dispatcher[str] = Dispatcher(pool, lambda name: (check_here, name))
        for name, result in dispatcher.each(lambda: next(left, None), 1):
            if isinstance(result, str):
                raise UserError(result)
            yield lost(name, result.reason) if isinstance(result, Failure) else result


def check_here(name: str) -> Report | str:
    """The report of a plug-in, computed in this process; a user's mistake is returned as text."""
    import torch

    torch.set_num_threads(1)
    begin_trial()
    try:
        return check(name)
    except UserError as error:
        return str(error)


def lost(name: str, reason: str) -> Report:
    """The report of a plug-in whose checks did not finish."""
    return Report(name, (Finding(TITLE, "broken", reason.replace("(--trial-timeout)", "(--timeout)")),))
