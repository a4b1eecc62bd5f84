"""`bench why`: which part of a cell's key has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from bench.plan.cells import TUNED_ON, Cell
from bench.plan.staleness import Differences, differences, made_today, nearest_cell
from bench.registry import UserError, show
from bench.results.ledger import LedgerState, read_records
from bench.results.workspace import Workspace
from bench.words import counted


def explain(folder: Path, prefix: str, root: Path, console: Console | None = None) -> None:
    """Describe a cell, what has changed since it was measured, and the closest cell of the ledger."""
    console = console or Console()
    state = LedgerState.of(read_records(Workspace(folder).existing().ledger))
    key = state.find(prefix)
    cell = state.cells[key]

    def say(text: str) -> None:
        console.print(text, highlight=False, soft_wrap=True)

    missing = state.planned().get(key, set()) - set(state.trials.get(key, {}))
    say(f"[bold]{key}[/] {escape(cell.label)}")
    say(f"{counted(len(state.done(key)), 'trial')} done, {len(state.failed(key))} failed, {len(missing)} missing")
    for line in _tuning(cell):
        say(escape(line))
    for origin in sorted({str(record.provenance) for record in state.trials.get(key, {}).values()}):
        say(f"measured with {escape(_origin(state, origin))}")
    try:
        today = made_today(cell, root)
    except UserError as error:
        say(f"[yellow]the code here cannot make this cell: {escape(str(error))}[/]")
    else:
        changed = differences(cell, today)
        if changed:
            say(f"the code and data here would make another cell, {today.key}; what changed:")
            _tell(changed, "then", "now", say)
        else:
            say("the code and data here would make the same cell: nothing has changed")
    nearest = nearest_cell(state.cells, key)
    if nearest:
        other, unlike = nearest
        say(f"nearest other cell: {other} {escape(state.cells[other].label)}; it differs in:")
        _tell(unlike, "here", "there", say)


def _tuning(cell: Cell) -> list[str]:
    """What the settings of a tuned cell were chosen on, and the settings of each fold."""
    if not cell.tuned:
        return []
    lines = [f"tuned: {TUNED_ON[cell.tuned_how or 'pooled']}"]
    for fold in sorted(cell.by_fold or {}, key=int):
        here, training = cell.at(int(fold)), (cell.by_fold or {})[fold].get("training", {})
        settings = "".join(f", {name}={show(value)}" for name, value in training.items())
        lines.append(f"  fold {fold}: {here.augmenter}, {here.backbone}, {here.readout}{settings}")
    return lines


def _tell(found: Differences, first: str, second: str, say: Callable[[str], None]) -> None:
    width = max((len(name) for name in found), default=0)
    for name, (one, other) in found.items():
        say(f"  {name:<{width}}  {first} {escape(str(one))}, {second} {escape(str(other))}")


def _origin(state: LedgerState, origin: str) -> str:
    if origin not in state.provenance:
        return f"an unknown origin ({origin})"
    facts = state.provenance[origin].facts
    changes = " with changes" if facts.get("dirty") else ""
    commit = f"commit {facts['commit'][:12]}{changes}" if facts.get("commit") else "no commit"
    return f"augbench {facts.get('augbench')}, {commit}, torch {facts.get('torch')}, Python {facts.get('python')}"
