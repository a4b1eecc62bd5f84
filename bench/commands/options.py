"""Options that several commands share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WorkspaceOption = Annotated[
    Path, typer.Option("--workspace", "-w", help="Folder of the ledger, the MLflow store and the tables.")
]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Data root. Default: $BENCH_DATA, else your cache folder.")
]
TrackingOption = Annotated[
    str | None, typer.Option("--tracking-uri", help="An MLflow server or store. Default: SQLite in the workspace.")
]
DEFAULT_WORKSPACE = Path("runs")


def whole_numbers(texts: list[str], option: str) -> list[int]:
    """Numbers from repeated or comma-separated options: `-k 2 -k 5` or `-k 2,5`."""
    from bench.registry import UserError

    parts = [part.strip() for text in texts for part in text.split(",")]
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise UserError(f"{option} {','.join(texts)} is not a list of whole numbers; write {option} 2,5,10") from None
