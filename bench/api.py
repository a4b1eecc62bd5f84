"""The commands as functions: each takes one typed request and returns a value.

Nothing here prints or exits. Progress is reported to listeners (`bench.execution.events`, `bench.tuning.events`). An
invalid request raises `UserError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.execution.driver import Driver, Tally
from bench.execution.events import Clock, Listener, Listeners, Notice
from bench.execution.precision import Precision, check_precision
from bench.execution.request import RunRequest
from bench.plan.cells import Cell
from bench.plan.planner import Plan, Planner
from bench.plan.sharding import Shard
from bench.registry import UserError, unknown
from bench.results.ledger import Ledger, LedgerState
from bench.results.records import TrialRecord
from bench.results.workspace import Workspace

if TYPE_CHECKING:  # these are, or import, torch, pandas or Optuna, which planning does not need
    import pandas as pd

    from bench.checking import Report
    from bench.inspecting.looking import Inspection
    from bench.inspecting.request import InspectRequest
    from bench.tuning.request import TuneRequest
    from bench.tuning.storage import Storage
    from bench.tuning.study import MethodStudy


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run, and everything in its ledger."""

    plan: Plan
    state: LedgerState
    ran: int  # trials in this run, failed ones included
    training: float  # seconds that they took, summed over workers
    interrupted: bool
    seconds: dict[str, float]  # time spent outside training, by activity

    @property
    def failures(self) -> list[tuple[Cell, TrialRecord]]:
        """Trials of the plan that were tried, in this run or earlier, and have no result."""
        return self.state.failures(self.plan.cells, self.plan.trials)

    @property
    def left(self) -> int:
        """Trials of the plan that have no result yet."""
        return self.plan.size - self.plan.done(self.state)


@dataclass(frozen=True)
class TuneOutcome:
    """The outcome of a search; the studies are in its storage."""

    plan: Plan
    storage: Storage
    studies: Sequence[MethodStudy]
    ran: int  # trials in this search
    elapsed: float
    interrupted: bool
    seconds: dict[str, float]  # time spent outside training, by activity

    @property
    def best(self) -> pd.DataFrame:
        """One row per study: its trials, and value and settings of the best one, on the validation graphs."""
        import pandas as pd

        from bench.tuning.summary import summarize

        rows: list[dict[str, Any]] = []
        for study in self.studies:
            cell, found = study.cell, summarize(study.study)
            place = {"dataset": cell.dataset, "k": cell.k, "model": cell.model, "augmenter": cell.augmenter.label}
            row = {**place, "fold": study.fold, "trials": len(found.trials), "default": found.default}
            rows.append({**row, "best": found.best.value, **found.best.settings} if found.best else row)
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        words = f"{len(self.studies)} studies, {self.ran} trials in this search"
        return f"<TuneOutcome: {words}{', interrupted' if self.interrupted else ''}; see .best>"


@dataclass(frozen=True)
class InspectOutcome:
    """The outcome of an inspection, and the files that show it: the figure and its data."""

    seen: Inspection
    picture: Path
    figures: Path


def plan(request: RunRequest, skip_unavailable: bool | None = None) -> Plan:
    """The cells of a request; with `tuned`, each has the best settings of its study."""
    skip = request.skip_unavailable if skip_unavailable is None else skip_unavailable
    made = Planner(request.data_root, request.engine, request.device).plan(request.grid, skip)
    made = replace(made, shard=None if request.shard is None else Shard.parse(request.shard))
    if not request.tuned:
        return made
    from bench.tuning.best import tuned_plan
    from bench.tuning.storage import existing_storage

    return tuned_plan(made, existing_storage(request.storage, Workspace(request.workspace)), request.pooled)


def run(request: RunRequest, listeners: Sequence[Listener] = ()) -> RunOutcome:
    """Run the trials of a grid that are missing from the workspace's ledger. Ctrl-C stops; finished trials are kept."""
    from bench.execution.ledger_writer import LedgerWriter
    from bench.tracking.cells import Mirror
    from bench.tracking.run_listener import RunMirror

    clock = Clock()
    told, workspace = Listeners(clock), Workspace(request.workspace)
    request.check()
    check_machine(request)
    if not workspace.ledger.exists():  # there will be something to run, so workers can start now
        request.pool_kind.get_ready()
    with clock.on("planning"):
        planned = plan(request)
    if request.precision is not None:
        check_precision(planned)
    workspace.prepare()
    with clock.on("MLflow"):  # before the ledger: a server that is down leaves nothing behind
        mirror = Mirror(request.tracking_uri or workspace.tracking_uri, workspace.artifacts)
    with Ledger(workspace.ledger) as ledger:
        told.add(LedgerWriter(ledger), "ledger", required=True)
        for listener in listeners:
            told.add(listener)
        told.add_beside(RunMirror(mirror, told.emit), "MLflow")
        if ledger.cut:
            told.emit(
                Notice(f"an unfinished line of {ledger.cut} bytes was cut from the ledger; its trial runs again", False)
            )
        settings = request.worker_settings()
        setup = request.pool_setup(settings, planned.cells)
        driver = Driver(planned, ledger.state, settings, lambda: request.pool_kind(setup), told)
        finished = False
        try:
            tally = driver.run(planned.pending(ledger.state, request.retry))
            if request.precision is not None:
                tally = _run_until_precise(driver, request.precision, tally)
            finished = not tally.interrupted
        finally:
            told.close(wait=finished)
        return RunOutcome(planned, ledger.state, tally.ran, tally.training, tally.interrupted, clock.seconds)


def _run_until_precise(driver: Driver, wanted: Precision, tally: Tally) -> Tally:
    """Add label draws, column by column, until every interval is as narrow as requested or the cap is reached."""
    from bench.execution.precision import next_step, verdict

    planned, state, tell = driver.plan, driver.state, driver.listeners.emit
    while not tally.interrupted and (step := next_step(planned, state, wanted)) is not None:
        tell(Notice(step.words, warning=False))
        jobs = step.plan.pending(state, retry=False)
        more = replace(driver, plan=step.plan).run(jobs)
        tally = Tally(tally.ran + more.ran, tally.training + more.training, more.interrupted)
    if not tally.interrupted:
        tell(Notice(verdict(planned, state, wanted), warning=False))
    return tally


def tune(request: TuneRequest, listeners: Sequence[Listener] = ()) -> TuneOutcome:
    """Search settings for every method of a grid. Ctrl-C stops; finished trials are kept in the storage."""
    from optuna.exceptions import StorageInternalError

    from bench.tracking.cells import Mirror
    from bench.tracking.studies import TuningMirror
    from bench.tuning.events import Announcer, Searched, Searching
    from bench.tuning.space import check_narrowing, space_for
    from bench.tuning.storage import Storage, default_url
    from bench.tuning.study import MethodStudy, extents
    from bench.tuning.tuner import Tuner

    clock, start = Clock(), time.monotonic()
    told, workspace = Listeners(clock), Workspace(request.run.workspace)
    request.check()
    check_machine(request.run)
    planned = plan(request.run)
    grid = planned.grid
    check_narrowing(request.narrowing, planned.cells)
    spaces = [space_for(cell, request.narrowing) for cell in planned.cells]
    workspace.prepare()
    storage = Storage(request.storage or default_url(workspace))
    with clock.on("opening"):
        studies = [
            MethodStudy(storage, cell, space, extent, request.validation, request.search)
            for cell, space in zip(planned.cells, spaces, strict=True)
            for extent in extents(grid.folds, grid.repeats, request.pooled)
        ]
        mirror = Mirror(request.run.tracking_uri or workspace.tracking_uri, workspace.artifacts)
    for listener in listeners:
        told.add(listener)
    told.add_beside(TuningMirror(mirror, grid.name, storage, told.emit), "MLflow")
    told.emit(Searching(request, planned, storage, studies))
    settings = request.run.worker_settings()
    pool = request.run.pool_kind(request.run.pool_setup(settings, planned.cells))
    deadline = None if request.timeout is None else time.monotonic() + request.timeout
    announcer = Announcer(told)
    tuner = Tuner(studies, request.validation, pool, clock, (announcer,), deadline, settings)
    interrupted, finished = False, False
    try:
        tuner.run()
        finished = True
    except KeyboardInterrupt:
        interrupted = True
    except StorageInternalError as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise UserError(
            f"the storage {storage.name} stopped answering ({reason}); all finished trials are kept, "
            "run the same command again to resume"
        ) from error
    finally:
        told.emit(Searched(studies, not finished))
        told.close(wait=finished)
    elapsed = time.monotonic() - start
    return TuneOutcome(planned, storage, studies, announcer.ran, elapsed, interrupted, clock.seconds)


def check(names: Sequence[str] = (), seconds: float | None = None) -> Iterator[Report]:
    """Check the given plug-ins, or all known ones, against their contract; yields one report each.

    With a time limit, each plug-in is checked in a worker process that can be stopped without harming this one.
    """
    import torch

    from bench.checking import KINDS, find
    from bench.checking import check as check_one
    from bench.checking.apart import checked_apart

    chosen = names or [f"{word}:{name}" for word, kind in KINDS.items() for name in kind.registry.names()]
    for name in chosen:
        find(name)  # report mistakes before anything is checked
    if seconds is not None:
        yield from checked_apart(chosen, seconds)
        return
    torch.set_num_threads(1)
    for name in chosen:
        yield check_one(name)


def inspect(request: InspectRequest, tell: Callable[[str], None] = lambda text: None) -> InspectOutcome:
    """Inspect the graphs that augmenters generate; `tell` is called with the trial being inspected."""
    from bench.inspecting.files import write_files
    from bench.inspecting.looking import chosen_trials, inspect_trials, resolve_cells
    from bench.inspecting.summary import for_tracking
    from bench.tracking.cells import Mirror
    from bench.tracking.inspections import write_runs

    if not request.augmenters:
        raise UserError("bench inspect needs an augmenter; add -a NAME, for example -a gdm-rand")
    root, workspace = request.data_root, Workspace(request.workspace)
    trials = chosen_trials(request.fold, request.repeat, request.trials)
    cells = resolve_cells(request.dataset, request.augmenters, request.k, root)
    workspace.prepare()
    mirror = Mirror(request.tracking_uri or workspace.tracking_uri, workspace.artifacts)
    seen = inspect_trials(
        cells, trials, root, lambda label, trial: tell(f"{label}, fold {trial.fold}, repeat {trial.repeat}")
    )
    paths = write_files(seen, workspace.root / "inspect")
    write_runs(for_tracking(seen), mirror, paths)
    return InspectOutcome(seen, *paths)


def check_machine(request: RunRequest) -> None:
    """Check device and engine before anything is written; the devices of a cluster are not checked here."""
    if request.engine != RunRequest.engine:
        from bench.execution.trial import engines

        if request.engine not in engines():
            raise unknown("engine", request.engine, engines())
    if request.scheduler or request.device == "cpu":
        return
    import torch

    try:
        torch.empty(1, device=request.device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"--device {request.device} cannot be used here: {reason}; use --device cpu") from error
