"""`bench ui` and `bench sync`: the MLflow side of a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.options import DEFAULT_WORKSPACE, TrackingOption, WorkspaceOption


def ui(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 5000,
    host: Annotated[str, typer.Option(help="Address to listen on; the default is this machine alone.")] = "127.0.0.1",
) -> None:
    """Open MLflow's UI on the workspace (this machine alone unless --host says otherwise)."""
    import os
    import subprocess
    import sys

    from rich.console import Console

    from bench.results.workspace import Workspace

    home = Workspace(workspace).existing()
    listening = "this machine alone" if host in ("127.0.0.1", "localhost", "::1") else f"everyone who can reach {host}"
    Console().print(
        f"MLflow UI of {workspace} at http://{host}:{port}, for {listening}; Ctrl-C ends it", highlight=False
    )
    words = ["ui", "--backend-store-uri", home.tracking_uri, "--host", host, "--port", str(port), "--workers", "1"]
    words += ["--default-artifact-root", home.artifacts.resolve().as_uri()]
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    raise typer.Exit(subprocess.run([sys.executable, "-m", "mlflow", *words], env=environment, check=False).returncode)


def sync(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    tracking_uri: TrackingOption = None,
) -> None:
    """Rebuild the MLflow mirror from the ledger; what is there already stays as it is."""
    from rich.console import Console

    from bench.results.workspace import Workspace
    from bench.tracking.cells import sync_mirror

    written, kept = sync_mirror(Workspace(Path(workspace)).existing(), tracking_uri)
    Console().print(f"{written} cells written, {kept} were up to date", highlight=False)
