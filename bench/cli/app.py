"""The command line. Nothing heavy is imported before a command runs, so that help and lists appear at once."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.cli.commands import check, data, ledger, listing, mirror, readings, run, tables, tune
from bench.cli.entry import main

__all__ = ["app", "main"]

app = typer.Typer(
    name="bench",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"augbench {version('augbench')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Compare graph augmenters when labels are scarce: paired, leak-free, resumable."""


app.command("run", rich_help_panel="Measure")(run.run)
app.command("tune", rich_help_panel="Measure")(tune.tune)
app.command("status", rich_help_panel="Measure")(ledger.status)
app.command("why", rich_help_panel="Measure")(ledger.why)
app.command("merge", rich_help_panel="Measure")(ledger.merge)
app.command("verify", rich_help_panel="Measure")(ledger.verify)
app.command("rekey", rich_help_panel="Measure")(ledger.rekey)
app.command("list", rich_help_panel="Measure")(listing.list_plugins)
app.add_typer(data.app, name="data", rich_help_panel="Measure")
app.command("check", rich_help_panel="Look")(check.check_plugins)
app.command("inspect", rich_help_panel="Look")(check.inspect)
app.command("ui", rich_help_panel="Look")(mirror.ui)
app.command("sync", rich_help_panel="Look")(mirror.sync)
app.command("tables", rich_help_panel="Publish")(tables.tables)
app.command("figures", rich_help_panel="Publish")(tables.figures)
app.command("compare", rich_help_panel="Publish")(tables.compare)
app.command("readings", rich_help_panel="Publish")(readings.readings)
app.command("report", rich_help_panel="Publish")(tables.report)
app.command("share", rich_help_panel="Publish")(ledger.share)
