"""What a workspace holds, for the terminal: the state of each cell, and methods side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from bench.cells import Cell
from bench.ledger import LedgerState, Record, read_records
from bench.planning import Plan
from bench.staleness import stale_versions
from bench.summary import mean_and_spread, ordered_trials
from bench.view import output
from bench.workspace import Workspace


def comparison(plan: Plan, state: LedgerState) -> Group:
    """Methods by dataset and label budget: mean accuracy in percent, spread over trials, trials missing."""
    columns = list(dict.fromkeys((cell.dataset, cell.k) for cell in plan.cells))
    rows: dict[str, dict[tuple[str, int], Cell]] = {}
    method = method_namer(plan.cells)
    for cell in plan.cells:
        rows.setdefault(method(cell), {})[(cell.dataset, cell.k)] = cell
    best = _best(plan, state, columns)
    table = Table(header_style="bold")
    table.add_column("method")
    for dataset, k in columns:
        table.add_column(f"{escape(dataset)}\nk={k}", justify="right")
    for name, cells in rows.items():
        shown = [_entry(cells.get(column), plan, state, best[column]) for column in columns]
        table.add_row(escape(name), *shown)
    return Group(Text("test accuracy in %, mean ± standard deviation over trials"), table, Text(_caption(plan)))


def method_namer(cells: Sequence[Cell]) -> Callable[[Cell], str]:
    """Names of rows: the augmenter, and the backbone and readout where the cells differ in them."""
    varied = len({((c.tuned_from or {}).get("backbone", c.backbone.label), c.readout.label) for c in cells}) > 1

    def name(cell: Cell) -> str:
        base = cell.tuned_from or {}
        method = f"{base['augmenter']}, tuned" if base else cell.augmenter.label
        return f"{method} ({base.get('backbone', cell.backbone)}, {cell.readout})" if varied else method

    return name


def _accuracies(trials: Sequence[Record]) -> list[float]:
    return [trial["accuracy"] for trial in trials if trial["status"] == "done"]


def _best(plan: Plan, state: LedgerState, columns: list[tuple[str, int]]) -> dict[tuple[str, int], float]:
    best = dict.fromkeys(columns, 0.0)
    for cell in plan.cells:
        values = _accuracies(ordered_trials(state, cell.key))
        if values:
            at = (cell.dataset, cell.k)
            best[at] = max(best[at], round(100 * mean_and_spread(values)[0], 1))
    return best


def _entry(cell: Cell | None, plan: Plan, state: LedgerState, best: float) -> str:
    if cell is None:
        return "-"
    values = _accuracies(ordered_trials(state, cell.key))
    if not values:
        return "[red]none done[/]"
    mean, spread = mean_and_spread(values)
    text = f"{100 * mean:.1f}"
    text = f"[bold]{text}[/]" if float(f"{100 * mean:.1f}") >= best else text
    text += f" ± {100 * spread:.1f}" if len(values) > 1 else ""
    missing = len(values) < len(plan.trials)
    return f"{text} [red]{len(values)}/{len(plan.trials)}[/]" if missing else text


def _caption(plan: Plan) -> str:
    training = plan.cells[0].training
    kinds = ", ".join(
        sorted({f"{cell.dataset}: {cell.splits} splits, {cell.features} features" for cell in plan.cells})
    )
    trials = f"{plan.grid.folds} folds x {plan.grid.repeats} label draws"
    return f"{trials}, preset {training.preset}, {training.epochs} epochs; {kinds}"


def print_status(folder: Path, data: Path, console: Console | None = None) -> None:
    """One row a cell, the sums, and the failures with their reasons."""
    workspace, console = Workspace(folder).existing(), console or output()
    state = LedgerState.of(read_records(workspace.ledger))
    planned = state.planned()
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("cell", "dataset", "k", "augmenter", "backbone", "readout"):
        table.add_column(column, no_wrap=column == "cell")
    for column in ("done", "failed", "stale", "missing", "accuracy"):
        table.add_column(column, justify="right")
    sums = {"done": 0, "failed": 0, "stale": 0, "missing": 0}
    for key, facts in state.cells.items():
        done, failed = state.done(key), state.failed(key)
        counts = {
            "done": len(done),
            "failed": len(failed),
            "stale": len(done) if stale_versions(facts, data) else 0,
            "missing": len(planned.get(key, set()) - done - set(failed)),
        }
        sums = {name: sums[name] + count for name, count in counts.items()}
        mean, _ = mean_and_spread(_accuracies(ordered_trials(state, key)))
        names = [facts[kind]["label"] for kind in ("augmenter", "backbone", "readout")]
        shown = [_count(name, count) for name, count in counts.items()]
        accuracy = f"{100 * mean:.1f}" if done else ""
        table.add_row(key[:8], escape(facts["dataset"]), str(facts["k"]), *map(escape, names), *shown, accuracy)
    console.print(table)
    words = ", ".join(f"{count} {name}" for name, count in sums.items())
    console.print(f"{len(state.cells)} cells; trials: {words}", highlight=False)
    if sums["stale"]:
        console.print(
            "stale: measured with other versions than those here; `bench why CELL` says which", highlight=False
        )
    print_failures(state, console)


def _count(name: str, number: int) -> str:
    colour = {"failed": "red", "stale": "yellow", "missing": "yellow"}.get(name)
    return f"[{colour}]{number}[/]" if number and colour else str(number)


def print_failures(state: LedgerState, console: Console) -> None:
    """Each reason once, with how often it came up."""
    reasons: dict[str, int] = {}
    for key in state.cells:
        for record in state.failed(key).values():
            text = f"{record['status']}: {state.cells[key]['augmenter']['label']}: {record['reason']}"
            reasons[text] = reasons.get(text, 0) + 1
    for text, count in reasons.items():
        console.print(f"{count} x {escape(text)}", highlight=False, soft_wrap=True)
