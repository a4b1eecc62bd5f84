"""Checks in a worker process: a plug-in that ends its process, or never returns, costs its own report alone."""

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
    """A report for each plug-in, as it is made; none may take longer than this."""
    left = iter(names)
    setup = PoolSetup(WorkerSettings(None, DEFAULT_ENGINE), 1, timeout=seconds)
    with closing(LocalPool(setup)) as pool:
        dispatcher: Dispatcher[str] = Dispatcher(pool, lambda name: (check_here, name))
        for name, result in dispatcher.each(lambda: next(left, None), 1):
            if isinstance(result, str):
                raise UserError(result)
            yield lost(name, result.reason) if isinstance(result, Failure) else result


def check_here(name: str) -> Report | str:
    """The report of a plug-in, made in this process; a user's mistake as its text."""
    import torch

    torch.set_num_threads(1)
    begin_trial()
    try:
        return check(name)
    except UserError as error:
        return str(error)


def lost(name: str, reason: str) -> Report:
    """The report of a plug-in that never came back from its checks."""
    return Report(name, (Finding(TITLE, "broken", reason.replace("(--trial-timeout)", "(--timeout)")),))
