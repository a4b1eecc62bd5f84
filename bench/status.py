"""What a workspace holds, for the terminal: the state of each cell, and methods side by side."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.cells import Cell
from bench.ledger import LedgerState, read_records
from bench.planning import Plan, stale_parts
from bench.summary import mean_and_spread, ordered_trials
from bench.workspace import Workspace


def comparison(plan: Plan, state: LedgerState) -> Table:
    """Methods by dataset and label budget: mean accuracy in percent, spread over trials, trials missing."""
    columns = list(dict.fromkeys((cell.dataset, cell.k) for cell in plan.cells))
    rows: dict[str, dict[tuple[str, int], Cell]] = {}
    for cell in plan.cells:
        rows.setdefault(_method(cell, plan), {})[(cell.dataset, cell.k)] = cell
    best = _best(plan, state, columns)
    table = Table(
        title="test accuracy in %, mean ± standard deviation over trials", caption=_caption(plan), header_style="bold"
    )
    table.add_column("method")
    for dataset, k in columns:
        table.add_column(f"{escape(dataset)}\nk={k}", justify="right")
    for method, cells in rows.items():
        shown = [_entry(cells.get(column), plan, state, best[column]) for column in columns]
        table.add_row(escape(method), *shown)
    return table


def _method(cell: Cell, plan: Plan) -> str:
    """The augmenter, and what else varies between the rows."""
    varied = len({(c.backbone.label, c.readout.label) for c in plan.cells}) > 1
    return f"{cell.augmenter} ({cell.backbone}, {cell.readout})" if varied else cell.augmenter.label


def _accuracies(cell: Cell, state: LedgerState) -> list[float]:
    return [trial["accuracy"] for trial in ordered_trials(state, cell.key) if trial["status"] == "done"]


def _best(plan: Plan, state: LedgerState, columns: list[tuple[str, int]]) -> dict[tuple[str, int], float]:
    best = dict.fromkeys(columns, 0.0)
    for cell in plan.cells:
        values = _accuracies(cell, state)
        if values:
            at = (cell.dataset, cell.k)
            best[at] = max(best[at], round(100 * mean_and_spread(values)[0], 1))
    return best


def _entry(cell: Cell | None, plan: Plan, state: LedgerState, best: float) -> str:
    if cell is None:
        return "-"
    values = _accuracies(cell, state)
    if not values:
        return "[red]none done[/]"
    mean, spread = mean_and_spread(values)
    text = f"{100 * mean:.1f}"
    text = f"[bold]{text}[/]" if float(text) >= best else text
    text += f" ± {100 * spread:.1f}" if len(values) > 1 else ""
    missing = len(values) < len(plan.trials)
    return f"{text} [red]{len(values)}/{len(plan.trials)}[/]" if missing else text


def _caption(plan: Plan) -> str:
    training = plan.cells[0].training
    kinds = ", ".join(
        sorted({f"{cell.dataset}: {cell.splits} splits, {cell.features} features" for cell in plan.cells})
    )
    trials = f"{plan.grid.folds} folds x {plan.grid.repeats} label draws"
    return escape(f"{trials}, preset {training.preset}, {training.epochs} epochs; {kinds}")


def print_status(folder: Path) -> None:
    """One row a cell, and the failures with their reasons."""
    workspace = Workspace(folder).existing()
    state = LedgerState.of(read_records(workspace.ledger))
    planned, console = state.planned(), Console()
    table = Table(header_style="bold", caption="stale: measured with other versions; `bench why CELL` says which")
    for column in ("cell", "dataset", "k", "augmenter", "backbone", "readout"):
        table.add_column(column)
    for column in ("done", "failed", "stale", "missing", "accuracy"):
        table.add_column(column, justify="right")
    for key, facts in state.cells.items():
        done, failed = state.done(key), state.failed(key)
        stale = len(done) if stale_parts(facts) else 0
        missing = len(planned.get(key, set()) - done - set(failed))
        mean, _ = mean_and_spread(_accuracies(state.cell(key), state))
        names = [facts[kind]["label"] for kind in ("augmenter", "backbone", "readout")]
        counts = [_count(len(done)), _count(len(failed), "red"), _count(stale, "yellow"), _count(missing, "yellow")]
        shown = f"{100 * mean:.1f}" if done else ""
        table.add_row(key[:8], escape(facts["dataset"]), str(facts["k"]), *map(escape, names), *counts, shown)
    console.print(table)
    print_failures(state, console)


def _count(number: int, colour: str = "") -> str:
    return f"[{colour}]{number}[/]" if number and colour else str(number)


def print_failures(state: LedgerState, console: Console) -> None:
    """Each reason once, with how often it came up."""
    reasons: dict[str, int] = {}
    for key in state.cells:
        for record in state.failed(key).values():
            text = f"{record['status']}: {state.cells[key]['augmenter']['label']}: {record['reason']}"
            reasons[text] = reasons.get(text, 0) + 1
    for text, count in reasons.items():
        console.print(f"{count} x {escape(text)}", highlight=False)
