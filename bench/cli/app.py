"""The command line. Nothing heavy is imported before a command runs, so that help and lists answer at once."""

from __future__ import annotations

import logging
import os
import sys

import typer
from rich.console import Console
from rich.logging import RichHandler

from bench.cli.commands import check, data, ledger, listing, mirror, run, tables, tune
from bench.registry import UserError

app = typer.Typer(
    name="bench",
    help="Compare graph augmenters when labels are scarce: paired, leak-free, resumable.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", rich_help_panel="Measure")(run.run)
app.command("tune", rich_help_panel="Measure")(tune.tune)
app.command("status", rich_help_panel="Measure")(ledger.status)
app.command("why", rich_help_panel="Measure")(ledger.why)
app.command("merge", rich_help_panel="Measure")(ledger.merge)
app.command("verify", rich_help_panel="Measure")(ledger.verify)
app.command("list", rich_help_panel="Measure")(listing.list_plugins)
app.add_typer(data.app, name="data", rich_help_panel="Measure")
app.command("check", rich_help_panel="Look")(check.check_plugins)
app.command("inspect", rich_help_panel="Look")(check.inspect)
app.command("ui", rich_help_panel="Look")(mirror.ui)
app.command("sync", rich_help_panel="Look")(mirror.sync)
app.command("tables", rich_help_panel="Publish")(tables.tables)
app.command("figures", rich_help_panel="Publish")(tables.figures)
app.command("compare", rich_help_panel="Publish")(tables.compare)
app.command("report", rich_help_panel="Publish")(tables.report)


def main() -> None:
    """Entry point: a mistake of the user is one line and exit code 2, never a traceback."""
    errors = Console(stderr=True)
    logging.basicConfig(
        level=logging.WARNING,
        format="%(message)s",
        handlers=[RichHandler(console=errors, show_path=False, show_time=False)],
    )
    try:
        refuse_the_other_tables()
        app()
    except UserError as error:
        errors.print(f"[bold red]error:[/] {_escaped(error)}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("stopped", highlight=False)
        sys.exit(130)
    except BrokenPipeError:  # the reader of a pipe (head, less) has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def refuse_the_other_tables() -> None:
    """PyTables has the same import name; met in one environment, the two cannot both be meant."""
    import importlib.util
    from pathlib import Path

    found = importlib.util.find_spec("tables")
    if found is None or found.origin is None or '__distribution__ = "augbench"' not in Path(found.origin).read_text():
        raise UserError(
            "the package `tables` in this environment is PyTables, not augbench's; "
            "install augbench in an environment of its own"
        )


def _escaped(error: UserError) -> str:
    from rich.markup import escape

    return escape(str(error))
