"""Studies in the terminal: the progress of each method, its best value, and the best value over the trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.cli.progress import duration
from bench.plan.cells import TUNED_ON
from bench.registry import Scalar, UserError, show
from bench.tuning.storage import Storage
from bench.tuning.summary import MethodFacts, StudyFacts, methods_of, spark, studies_in

LISTED = 3  # distinct reasons of failed trials shown per method; MLflow has one for each trial
COUNTS = ("folds", "trials", "given up", "failed", "running", "default", "best", "time")


def print_studies(storage: Storage, console: Console, by_fold: bool = False, only: Sequence[str] | None = None) -> None:
    """One row per method, with the best settings below; with `by_fold`, one row per fold."""
    found = methods_of(study for study in studies_in(storage) if only is None or study.name in only)
    if not found:
        raise UserError(f"there is no study in {storage.name}; start one with bench tune")
    table = Table(header_style="bold", title="accuracy on validation graphs in %, mean over folds")
    for column in ("method", "settings", "validation"):
        table.add_column(column, overflow="fold")
    for column in COUNTS:
        table.add_column(column, justify="right")
    table.add_column("best so far")
    for method in found:
        table.add_row(*_row(method))
        if by_fold and method.how == "nested":
            for study in method.studies:
                table.add_row(*_row(MethodFacts(f"  fold {study.fold}", method.how, (study,))))
    console.print(table)

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    for method in found:
        for line in _settings(method, by_fold):
            say(f"{method.name}: {line}")
        reasons = Counter(t.reason for study in method.studies for t in study.trials if t.state == "failed")
        for reason, count in reasons.most_common(LISTED):
            say(f"{method.name}: {count} failed: {reason}", "red")
    if any(method.how == "pooled" for method in found):
        say(f"pooled: {TUNED_ON['pooled']}", "yellow")


def _row(method: MethodFacts) -> list[str]:
    trials, failed, folds = f"{method.done}/{method.wanted}", method.count("failed"), len(method.studies)
    default, best = method.default, method.best
    return [
        escape(method.name),
        "by fold" if method.how == "nested" else "[yellow]pooled[/]",
        method.facts["validation"],
        f"{method.ready}/{folds}" if method.how == "nested" else f"all {method.facts['folds']}",
        f"[yellow]{trials}[/]" if method.done < method.wanted else trials,
        str(method.count("given up")),
        f"[red]{failed}[/]" if failed else "0",
        str(method.running),
        "" if default is None else f"{100 * default:.1f}",
        "" if best is None else f"[bold]{100 * best:.1f}[/]",
        duration(method.seconds),
        spark(method.curve()),
    ]


def _settings(method: MethodFacts, by_fold: bool) -> list[str]:
    """The best settings in words: their range over the folds or, on request, those of each study."""
    if method.how == "pooled" or by_fold:
        return [_best_settings(study) for study in method.studies if study.best is not None]
    ready = [study for study in method.studies if study.best is not None]
    kept = sum(study.best.turn == 0 for study in ready if study.best is not None)
    elsewhere = f"; elsewhere: {_words(method.spread())}" if kept < len(ready) else ""
    return [f"the defaults are best on {kept} of {len(ready)} folds{elsewhere}"] if ready else []


def _best_settings(study: StudyFacts) -> str:
    assert study.best is not None
    where = "" if study.fold is None else f"fold {study.fold}, "
    words = "the defaults" if study.best.turn == 0 else _words(study.best.settings)
    return f"{where}trial {study.best.number}: {words}"


def _words(settings: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}={show(value)}" for name, value in settings.items())
