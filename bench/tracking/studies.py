"""Studies in MLflow: a run for each, with its trials as child runs. The storage is the truth, this is a copy of it."""

from __future__ import annotations

import csv
import io
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.execution.events import Event, Notice
from bench.tracking.cells import Mirror
from bench.tuning.events import Searched, Tried
from bench.tuning.storage import Storage
from bench.tuning.study import MethodStudy
from bench.tuning.summary import StudyFacts, TrialFacts, importances, summarise, trial_facts

STUDY_TAG, TRIAL_TAG, PARENT_TAG = "augbench.study", "augbench.trial", "mlflow.parentRunId"
SHOWN_AS = {"complete": "FINISHED", "given up": "KILLED", "failed": "FAILED"}


class TuningMirror:
    """Copies studies to one experiment of a tracking store; a store that dies on the way costs one warning."""

    def __init__(self, mirror: Mirror, grid: str, storage: Storage, notify: Callable[[Notice], None]) -> None:
        self.mirror, self.grid, self.storage, self.notify = mirror, f"{grid}-tuning", storage, notify
        self.broken = False
        self._parents: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, Tried):  # copy one trial that has just ended
            frozen = event.study.study.get_trials(deepcopy=False)[event.turn.trial.number]
            self._attempt(event.study, [trial_facts(frozen)])
        elif isinstance(event, Searched) and not event.interrupted:
            self._complete(event.studies)

    def _complete(self, studies: Sequence[MethodStudy]) -> None:
        """Copy what is missing, and what a study says in sum: its best settings, its figures."""
        for study in studies:
            facts = summarise(study.study)
            self._attempt(study, facts.trials, facts)

    def _attempt(self, study: MethodStudy, trials: Sequence[TrialFacts], facts: StudyFacts | None = None) -> None:
        from mlflow.exceptions import MlflowException

        if self.broken:
            return
        try:
            with self.storage.lock("mlflow"):  # several processes copy the same study
                parent = self._parent(study)
                there = self._copied(parent, trials)
                for trial in trials:
                    if str(trial.number) not in there:
                        self._write_trial(parent, study, trial)
                if facts is not None:
                    self._write_sum(parent, study, facts)
        except (MlflowException, OSError) as error:
            self.broken = True
            reason = str(error).splitlines()[0][:200]
            self.notify(
                Notice(
                    f"the tracking store {self.mirror.uri} stopped answering ({reason}); the studies have everything, "
                    "running the same command again completes the store"
                )
            )

    def _parent(self, study: MethodStudy) -> str:
        if study.name not in self._parents:
            client, experiment = self.mirror.client, self.mirror.experiment(self.grid)
            name = study.name.replace("'", "''")
            found = client.search_runs([experiment], f"tags.`{STUDY_TAG}` = '{name}'", max_results=1)
            if found:
                self._parents[study.name] = found[0].info.run_id
            else:
                self._parents[study.name] = self._new_parent(experiment, study)
        return self._parents[study.name]

    def _new_parent(self, experiment: str, study: MethodStudy) -> str:
        from mlflow.entities import Param

        client = self.mirror.client
        run = client.create_run(experiment, run_name=study.name, tags={STUDY_TAG: study.name}).info.run_id
        facts = summarise(study.study).facts
        params = {key: value for key, value in facts.items() if not isinstance(value, dict)}
        params |= {f"training.{key}": value for key, value in facts["training"].items()}
        params |= {f"version.{key}": value for key, value in facts["versions"].items()}
        client.log_batch(run, params=[Param(key, str(value)) for key, value in params.items()])
        return run

    def _copied(self, parent: str, trials: Sequence[TrialFacts]) -> set[str]:
        """The numbers of the trials, of those asked about, that the store has in full."""
        which = f"tags.`{PARENT_TAG}` = '{parent}'"
        if len(trials) == 1:  # the usual case, kept from growing with the study
            which += f" and tags.`{TRIAL_TAG}` = '{trials[0].number}'"
        runs = self.mirror.client.search_runs([self.mirror.experiment(self.grid)], which, max_results=50_000)
        return {run.data.tags[TRIAL_TAG] for run in runs if run.info.status != "RUNNING"}

    def _write_trial(self, parent: str, study: MethodStudy, trial: TrialFacts) -> None:
        from mlflow.entities import Metric, Param

        client, now = self.mirror.client, int(time.time() * 1000)
        tags = {PARENT_TAG: parent, TRIAL_TAG: str(trial.number), "state": trial.state}
        tags |= {"reason": trial.reason} if trial.reason else {}
        label = f"{study.cell.augmenter.name} trial {trial.number}"
        run = client.create_run(
            self.mirror.experiment(self.grid), start_time=now, tags=tags, run_name=label
        ).info.run_id
        metrics = [Metric("fold_accuracy", value, now, step) for step, value in enumerate(trial.folds)]
        metrics += [Metric("validation_accuracy", trial.value, now, 0)] if trial.value is not None else []
        metrics += [Metric("seconds", trial.seconds, now, 0)]
        client.log_batch(run, metrics=metrics, params=[Param(k, str(v)) for k, v in trial.settings.items()])
        client.set_terminated(run, SHOWN_AS[trial.state])

    def _write_sum(self, parent: str, study: MethodStudy, facts: StudyFacts) -> None:
        from mlflow.entities import Metric

        client, now = self.mirror.client, int(time.time() * 1000)
        points = [(step, value) for step, value in enumerate(facts.curve(), 1) if value == value]
        metrics = [Metric("best_validation_accuracy", value, now, step) for step, value in points]
        metrics += [Metric("default_validation_accuracy", facts.default, now, 0)] if facts.default is not None else []
        metrics += [Metric(f"trials {state}", facts.count(state), now, 0) for state in SHOWN_AS]
        client.log_batch(parent, metrics=metrics)
        if facts.best is not None:
            client.set_tag(parent, "best", json.dumps(facts.best.settings))
        with tempfile.TemporaryDirectory() as folder:
            write_artifacts(Path(folder), study, facts)
            client.log_artifacts(parent, folder)
        client.set_terminated(parent, "FINISHED")


def write_artifacts(folder: Path, study: MethodStudy, facts: StudyFacts) -> None:
    """The study as files: its facts, its trials, and its figures."""
    from tables.figures import save
    from tables.tuning_figures import history_figure, importance_figure

    best = None if facts.best is None else facts.best.settings
    document = {"name": facts.name, **facts.facts, "best": best}
    (folder / "study.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    (folder / "trials.csv").write_text(trials_csv(facts.trials), encoding="utf-8")
    values = [(trial.number, trial.state, trial.value) for trial in facts.trials]
    save(history_figure(facts.name, values, facts.curve(), facts.default), folder, "history", ["png"])
    shares = importances(study.study)
    if shares:
        save(importance_figure(facts.name, shares), folder, "importance", ["png"])


def trials_csv(trials: Sequence[TrialFacts]) -> str:
    """One row per trial, one column per setting."""
    names = sorted({name for trial in trials for name in trial.settings})
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["trial", "state", "value", "folds", "seconds", *names, "reason"])
    for trial in trials:
        row: list[Any] = [trial.number, trial.state, "" if trial.value is None else trial.value, len(trial.folds)]
        writer.writerow(
            [*row, round(trial.seconds, 2), *(trial.settings.get(name, "") for name in names), trial.reason]
        )
    return out.getvalue()
