"""The report of `bench check` in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.checking import Report

MARKS = {"holds": "[green]holds[/]", "broken": "[bold red]broken[/]", "does not apply": "[dim]does not apply[/]"}


def verdict(report: Report) -> str:
    """A one-line verdict on one plug-in."""
    counts = f"{report.count('holds')} hold, {report.count('does not apply')} do not apply"
    word = f"[bold red]{len(report.broken)} broken[/], " if report.broken else ""
    return f"[bold]{escape(report.name)}[/]: {word}{counts}"


def print_report(report: Report, console: Console) -> None:
    """One row per property, then the verdict."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("property", no_wrap=True)
    table.add_column("result", no_wrap=True)
    table.add_column("detail", overflow="fold", ratio=1)
    for finding in report.findings:
        detail = escape(finding.detail)
        table.add_row(
            finding.title, MARKS[finding.status], f"[red]{detail}[/]" if finding.status == "broken" else detail
        )
    console.print(table)
    console.print(verdict(report), highlight=False)
    console.print()


def print_summary(reports: list[Report], console: Console) -> None:
    """One line per plug-in, and the full report of each that failed a check."""
    for report in reports:
        if report.broken:
            print_report(report, console)
    for report in reports:
        console.print(verdict(report), highlight=False)
