"""`bench tune` in the terminal: the search, its progress and the studies at the end."""

from __future__ import annotations

from rich.console import Console

from bench import api
from bench.cli.progress import duration, output
from bench.cli.tuning_progress import TuningProgress
from bench.cli.tuning_status import print_studies
from bench.tuning.request import TuneRequest
from bench.tuning.summary import summarize
from bench.words import counted


def tune_and_report(request: TuneRequest, console: Console | None = None) -> int:
    """Search; the exit code is 1 if a study has only failed trials and 130 after an interruption."""
    console = console or output()
    with TuningProgress(console) as progress:
        outcome = api.tune(request, [progress])
    if outcome.interrupted:
        console.print("stopped; every finished trial is kept. Run the same command again to go on.", highlight=False)
        return 130
    return conclude(outcome, console)


def conclude(outcome: api.TuneOutcome, console: Console) -> int:
    """Print the studies and the time spent outside training."""
    print_studies(outcome.storage, console, only=[study.name for study in outcome.studies])
    if outcome.ran:
        parts = ", ".join(f"{duty} {seconds:.1f} s" for duty, seconds in outcome.seconds.items())
        each = sum(outcome.seconds.get(duty, 0.0) for duty in ("Optuna", "MLflow")) / outcome.ran
        console.print(
            f"{counted(outcome.ran, 'trial')} in {duration(outcome.elapsed)}; beside training: {parts} "
            f"(Optuna and MLflow: {1000 * each:.0f} ms per trial)",
            highlight=False,
        )
    facts = [summarize(study.study) for study in outcome.studies]
    elsewhere = sum(study.running for study in facts)
    if elsewhere:
        console.print(f"{counted(elsewhere, 'trial')} under way in other processes", highlight=False)
    return 1 if any(study.best is None for study in facts) else 0
