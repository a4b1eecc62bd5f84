"""`bench status`, `why`, `merge`, `rekey`, `share` and `verify`: commands on the ledger itself."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.options import (
    DEFAULT_WORKSPACE,
    DataOption,
    DeviceOption,
    GridOption,
    JobsOption,
    PresetOption,
    TrialTimeoutOption,
    WorkspaceOption,
)
from bench.words import counted

if TYPE_CHECKING:
    from bench.execution.verify import Check


def status(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    source: Annotated[
        Path | None, typer.Option("--from", help="Read a ledger file or a Parquet archive instead of the workspace.")
    ] = None,
    grid: GridOption = None,
    preset: PresetOption = None,
    data: DataOption = None,
) -> None:
    """Show done, failed, stale and missing trials per cell; with --grid, what a whole grid still lacks."""
    from bench.datasets.paths import data_root
    from bench.registry import UserError

    if grid is None:
        if preset is not None:
            raise UserError(f"--preset {preset} applies to a grid; add --grid NAME")
        from bench.cli.status import print_status

        print_status(source or workspace, data_root(data))
        return
    from bench.cli.grid_status import print_grid_status
    from bench.cli.progress import output
    from bench.plan.asked import adjusted
    from bench.plan.grids import named_grid
    from bench.results.ledger import LedgerState
    from bench.results.workspace import records_at

    asked = adjusted(named_grid(grid, data), {"preset": preset}, None)
    state = LedgerState.of(records_at(source or workspace, curves=False))
    print_grid_status(state, asked, data_root(data), output())


def why(
    cell: Annotated[str, typer.Argument(help="The first letters of a cell's key, as `bench status` shows it.")],
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    data: DataOption = None,
) -> None:
    """Explain why a cell is stale: which part of its key has changed, and which cell is closest to it."""
    from bench.cli.why import explain
    from bench.datasets.paths import data_root

    explain(workspace, cell, data_root(data))


def merge(
    ledgers: Annotated[list[Path], typer.Argument(help="Workspaces, ledger files or archives to merge.")],
    into: Annotated[
        Path | None, typer.Option(help="Workspace to write to.", show_default="the first one named")
    ] = None,
) -> None:
    """Merge ledgers. Two different results for the same trial are an error, and nothing is written."""
    from rich.console import Console

    from bench.registry import UserError
    from bench.results.merge import merge_ledgers
    from bench.results.workspace import Workspace

    if into is None and len(ledgers) < 2:
        raise UserError(f"there is nothing to merge {ledgers[0]} with; name another ledger, or give --into WORKSPACE")
    target = into or ledgers[0]
    if target.is_file() or (Workspace(target).shared.is_file() and not Workspace(target).ledger.is_file()):
        what = "a file" if target.is_file() else "a shared folder"
        raise UserError(f"{target} is {what}; name a workspace to write to with --into FOLDER")
    added = merge_ledgers(ledgers, Workspace(target))
    Console().print(
        f"new to {target}: {counted(added.cells, 'cell')} and {counted(added.trials, 'trial')}; "
        f"`bench sync -w {target}` mirrors them",
        highlight=False,
        soft_wrap=True,
    )


def rekey(
    source: Annotated[Path, typer.Argument(help="Workspace, ledger file or archive of an earlier version.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Parquet file or new workspace to write.")],
    data: DataOption = None,
) -> None:
    """Carry results over to the keys of this version if nothing that affects their digits has changed.

    Settings, versions and data are compared cell by cell; check a sample with `bench verify` afterwards.
    """
    from rich.console import Console

    from bench.datasets.paths import data_root
    from bench.registry import UserError
    from bench.results.archive import write_archive
    from bench.results.ledger import Ledger
    from bench.results.rekey import rekey as carry_over
    from bench.results.workspace import Workspace, lines_at

    if out.suffix != ".parquet" and Workspace(out).ledger.exists():
        raise UserError(f"{out} already has a ledger; name a new workspace with --out")
    found = carry_over(lines_at(source), data_root(data))
    console = Console()
    for reason, keys in found.refused.items():
        console.print(
            f"{counted(len(keys), 'cell')} left behind: {reason}", markup=False, highlight=False, soft_wrap=True
        )
    if not found.keys:
        raise UserError(f"nothing in {source} can be carried over, for the reasons above; run the cells again")
    if out.suffix == ".parquet":
        write_archive(found.records, out)
    else:
        Workspace(out).prepare()
        with Ledger(Workspace(out).ledger) as ledger:
            ledger.append_all(found.records)
    console.print(
        f"{counted(len(found.keys), 'cell')} with {counted(found.trials, 'trial')} written to {out} "
        f"under today's keys; `bench verify --from {out}` runs some of them again",
        highlight=False,
        soft_wrap=True,
    )


def share(
    folder: Annotated[Path, typer.Argument(help="Folder to write.")],
    sources: Annotated[
        list[Path] | None,
        typer.Argument(help="Workspaces, ledger files or archives; several are merged.", show_default="runs"),
    ] = None,
    data: DataOption = None,
    graphs: Annotated[
        bool, typer.Option("--graphs", help="Include the graphs of datasets that came from memory or a file.")
    ] = False,
) -> None:
    """Write a folder to share: trials, tables, report, environment, and a README with the commands to check them.

    `bench tables --from FOLDER`, `bench verify --from`, `bench merge` and, in Python, `bench.load` accept the folder.
    """
    from rich.console import Console

    from bench.datasets.paths import data_root
    from bench.public.sharing import share as write

    found = write(sources or [DEFAULT_WORKSPACE], folder, data_root(data), graphs)
    console = Console()
    for words in found.left_out:
        console.print(f"left out: {words}", markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"{len(found.files)} files in {found.folder}; {found.folder / 'README.md'} says how to check them",
        highlight=False,
        soft_wrap=True,
    )


def verify(
    source: Annotated[
        Path, typer.Option("--from", help="Workspace, ledger file or Parquet archive.")
    ] = DEFAULT_WORKSPACE,
    sample: Annotated[int, typer.Option(min=1, help="Number of finished trials to run again.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the sample: the same seed chooses the same trials.")] = 0,
    data: DataOption = None,
    device: DeviceOption = "cpu",
    jobs: JobsOption = None,
    trial_timeout: TrialTimeoutOption = None,
) -> None:
    """Run finished trials again and compare every digit; exit with code 1 if one differs.

    The outcome is recorded in a file beside the trials; `bench report` and `bench report --site` show it.
    """
    from rich.console import Console
    from rich.markup import escape

    from bench.datasets.paths import data_root
    from bench.execution.local import LocalPool
    from bench.execution.pool import PoolSetup
    from bench.execution.request import check_workers, processes
    from bench.execution.verify import Candidates
    from bench.execution.verify import verify as run_again
    from bench.execution.worker import WorkerSettings
    from bench.plan.identity import DEFAULT_ENGINE
    from bench.results import verification

    check_workers(jobs, trial_timeout)
    console, root = Console(), data_root(data)
    candidates = Candidates.of(source, root)
    verification.read(source)  # report a damaged record before anything runs
    if candidates.stale:
        console.print(f"left out: {counted(candidates.stale, 'trial')} of other versions or other data than here")

    def tell(check: Check) -> None:
        mark = "[green]same[/]" if check.same else "[red]not the same[/]"
        console.print(f"{mark} {escape(str(check))}", highlight=False, soft_wrap=True)

    chosen = candidates.sample(sample, seed)
    setup = PoolSetup(
        WorkerSettings(str(root), DEFAULT_ENGINE, device), min(processes(jobs), len(chosen)), None, trial_timeout
    )
    with closing(LocalPool(setup)) as pool:
        checks = run_again(chosen, pool, root, device, tell)
    same = sum(check.same for check in checks)
    console.print(f"{same} of {len(checks)} came out the same", highlight=False)
    try:
        place = verification.add(candidates.verification(checks, seed), source)
    except OSError as error:
        words = f"kept no record of this: cannot write beside {source} ({error.strerror}); verify a copy to keep one"
    else:
        words = f"on record in {place}"
    console.print(words, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(0 if same == len(checks) else 1)
