"""`bench readings`: what results from each reading of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.options import DEFAULT_WORKSPACE, WorkspaceOption


def readings(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    source: Annotated[
        Path | None, typer.Option("--from", help="Read a ledger file or an archive instead of the workspace.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write to. Default: WORKSPACE/readings.")
    ] = None,
    formats: Annotated[str, typer.Option("--formats", help="Formats of the figure: pdf, svg, png.")] = "pdf,svg,png",
) -> None:
    """Compare readings of the paper: plain training, the gain of GDM, collapse; with a specification curve.

    Run the trials of this study with `bench run --grid readings`, which resumes where it stopped; add --dry-run to see
    how long it will take.
    """
    from rich.console import Console

    from bench.registry import unknown
    from bench.results.ledger import LedgerState
    from bench.results.workspace import records_at
    from tables import readings as reading
    from tables.figures.specification import specification_curve
    from tables.style import FORMATS, save

    kinds = [kind.strip() for kind in formats.split(",")]
    for kind in kinds:
        if kind not in FORMATS:
            raise unknown("format", kind, FORMATS)
    found = reading.study(LedgerState.of(records_at(source or workspace, curves=False)))
    folder, console = out or workspace / "readings", Console()
    frame = found.specifications
    paths = [folder / name for name in ("readings.md", "readings.csv", "specifications.csv")]
    texts = (reading.markdown(found), found.readings.to_csv(index=False))
    for path, text in zip(paths, (*texts, frame.drop(columns="by_fold").to_csv(index=False)), strict=True):
        write(path, text)
    figure = specification_curve(frame, ["dataset", "method", *reading.varied(frame)])
    paths += save(figure, folder, "specification-curve", kinds)
    console.print(reading.summary_sentence(found), markup=False, highlight=False, soft_wrap=True)
    for path in paths:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)


def write(path: Path, text: str) -> None:
    """Write the file completely or not at all."""
    from bench.registry import UserError
    from tables.writing import whole_file

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write to {path.parent}: {error.strerror}; choose another --out") from error
