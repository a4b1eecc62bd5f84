"""`bench ui` and `bench sync`: the MLflow side of a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from bench.cli.options import DEFAULT_WORKSPACE, TrackingOption, WorkspaceOption
from bench.words import counted


def ui(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 5000,
    host: Annotated[
        str, typer.Option(help="Address to listen on. The default accepts connections from this machine only.")
    ] = "127.0.0.1",
) -> None:
    """Open the MLflow UI on the workspace."""
    from rich.console import Console

    from bench.registry import UserError
    from bench.results.ledger import read_state
    from bench.results.workspace import Workspace
    from bench.tracking.server import LOG, check_port, check_system, last_words, running_ui
    from bench.tracking.view import page

    check_system()
    home = Workspace(workspace).existing()
    plans = read_state(home.ledger, curves=False).plans
    where = page(home, plans[-1].grid if plans else None)
    check_port(host, port)
    listening = "this machine alone" if host in ("127.0.0.1", "localhost", "::1") else f"everyone who can reach {host}"
    place = f"[{host}]" if ":" in host else host
    with running_ui(home, host, port) as server:
        Console().print(
            f"MLflow UI of {escape(str(workspace))} at http://{escape(place)}:{port}{where} , for {listening}; "
            "Ctrl-C ends it",
            highlight=False,
            soft_wrap=True,
        )
        code = server.wait()
    if not code:
        raise typer.Exit(0)
    raise UserError(f"MLflow's server ended with code {code} ({last_words(home)}); its log is {home.root / LOG}")


def sync(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    tracking_uri: TrackingOption = None,
) -> None:
    """Rebuild the MLflow mirror from the ledger; existing runs are left as they are."""
    from rich.console import Console

    from bench.results.workspace import Workspace
    from bench.tracking.cells import sync_mirror

    written, kept = sync_mirror(Workspace(Path(workspace)).existing(), tracking_uri)
    Console().print(f"{counted(written, 'cell')} written, {kept} were up to date", highlight=False)
