"""What `bench tune` does with its options: check everything, search, and show the studies."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from optuna.exceptions import StorageInternalError
from rich.console import Console

from bench.cli.progress import duration, output
from bench.cli.run_session import RunRequest, check_machine, say_skipped
from bench.cli.tuning_progress import TuningView
from bench.cli.tuning_status import print_studies
from bench.datasets.paths import data_root
from bench.execution.driver import Clock
from bench.plan.cells import TUNED_ON
from bench.plan.planner import Plan, Planner
from bench.registry import UserError, unknown
from bench.results.workspace import Workspace
from bench.tracking.cells import Mirror
from bench.tracking.studies import TuningMirror
from bench.tuning.objective import VALIDATION
from bench.tuning.space import check_narrowing, space_for
from bench.tuning.storage import Storage, default_url
from bench.tuning.strategies import PRUNERS, SAMPLERS
from bench.tuning.study import MethodStudy, Search, extents
from bench.tuning.tuner import Tuner
from bench.tuning.workers import pool_for


@dataclass(frozen=True)
class TuneRequest:
    """The options of `bench tune`, typed; those that it shares with `bench run` are in `run`."""

    run: RunRequest
    search: Search
    validation: str = "budget"
    storage: str | None = None
    timeout: float | None = None
    narrowing: Mapping[str, str] = field(default_factory=dict)
    pooled: bool = False

    def check(self) -> None:
        self.run.check()
        if self.search.trials < 1:
            raise UserError(
                f"--trials {self.search.trials} searches nothing; give 1 or more, the first are the defaults"
            )
        if self.timeout is not None and not self.timeout > 0:
            raise UserError(f"--timeout {self.timeout:g} leaves no time; give seconds above 0")
        for kind, name, known in (
            ("validation", self.validation, VALIDATION),
            ("sampler", self.search.sampler, SAMPLERS),
            ("pruner", self.search.pruner, PRUNERS),
        ):
            if name not in known:
                raise unknown(kind, name, known)


def execute(request: TuneRequest, console: Console | None = None) -> int:
    """Search; the exit code says whether a study has failed trials only (1) or it was interrupted (130)."""
    console, clock = console or output(), Clock()
    request.check()
    check_machine(request.run)
    root, workspace = data_root(request.run.data), Workspace(request.run.workspace)
    plan = Planner(root, request.run.engine, request.run.device).plan(request.run.grid, request.run.skip_unavailable)
    check_narrowing(request.narrowing, plan.cells)
    spaces = [space_for(cell, request.narrowing) for cell in plan.cells]
    workspace.prepare()
    storage = Storage(request.storage or default_url(workspace))
    grid = plan.grid
    with clock.on("opening"):
        studies = [
            MethodStudy(storage, cell, space, extent, request.validation, request.search)
            for cell, space in zip(plan.cells, spaces, strict=True)
            for extent in extents(grid.folds, grid.repeats, request.pooled)
        ]
        store = Mirror(request.run.tracking_uri or workspace.tracking_uri, workspace.artifacts)
    mirror = TuningMirror(store, grid.name, storage, console, clock)
    say_what_will_run(request, plan, storage, console)
    pool = pool_for(request.run, root, plan.cells)
    view = TuningView(console, studies)
    deadline = None if request.timeout is None else time.monotonic() + request.timeout
    tuner = Tuner(studies, request.validation, pool, clock, (view, mirror), deadline)
    try:
        with view:
            tuner.run()
        mirror.complete(studies)
    except KeyboardInterrupt:
        console.print("stopped; every finished trial is kept. Run the same command again to go on.", highlight=False)
        return 130
    except StorageInternalError as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise UserError(
            f"the storage {storage.name} stopped answering ({reason}); every finished trial is kept, "
            "run the same command again to go on"
        ) from error
    return conclude(studies, storage, view, clock, console)


def say_what_will_run(request: TuneRequest, plan: Plan, storage: Storage, console: Console) -> None:
    """The size of the search, and what its values are made of."""
    grid, search = plan.grid, request.search
    labels = (
        "as many per class as there are labels" if request.validation == "budget" else "the whole part of each fold"
    )
    draws = f"{grid.repeats} label draw{'s' if grid.repeats > 1 else ''}"
    each = (
        f"1 study of {search.trials} trials, each on {grid.folds} folds x {draws}; {TUNED_ON['pooled']}"
        if request.pooled
        else f"{grid.folds} studies, one a fold, of {search.trials} trials, each on {draws} of that fold"
    )
    trainings = search.trials * grid.folds * grid.repeats
    console.print(
        f"grid {grid.name}: {len(plan.cells)} methods; for each {each} ({trainings} trainings at most); "
        f"validation graphs: {labels}; studies in {storage.name}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    say_skipped(plan, console)


def conclude(studies: list[MethodStudy], storage: Storage, view: TuningView, clock: Clock, console: Console) -> int:
    """The studies as they stand, and what the search cost beside training."""
    print_studies(storage, console, only=[study.name for study in studies])
    if view.ran:
        parts = ", ".join(f"{duty} {seconds:.1f} s" for duty, seconds in clock.seconds.items())
        each = sum(clock.seconds.get(duty, 0.0) for duty in ("Optuna", "MLflow")) / view.ran
        console.print(
            f"{view.ran} trials in {duration(view.seconds)}; beside training: {parts} "
            f"(Optuna and MLflow: {1000 * each:.0f} ms a trial)",
            highlight=False,
        )
    elsewhere = sum(study.running for study in map(view.summary, studies))
    if elsewhere:
        console.print(f"{elsewhere} trials are under way in other processes", highlight=False)
    return 1 if any(view.summary(study).best is None for study in studies) else 0
