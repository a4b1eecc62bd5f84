"""Studies in MLflow: one run per method. They are copies; the storage is the source of truth.

A method with one study per fold has a child run for each fold, in which a trial is one point of a metric. A pooled
method has a child run for each trial.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.execution.events import Event, Notice
from bench.plan.cells import TUNED_ON
from bench.tracking.cells import Mirror
from bench.tuning.events import Searched, Tried
from bench.tuning.storage import Storage
from bench.tuning.study import MethodStudy
from bench.tuning.summary import MethodFacts, StudyFacts, TrialFacts, importances, methods_of, summarize, trial_facts

STUDY_TAG, TRIAL_TAG, FOLD_TAG, PARENT_TAG = "augbench.study", "augbench.trial", "augbench.fold", "mlflow.parentRunId"
SHOWN_AS = {"complete": "FINISHED", "given up": "KILLED", "failed": "FAILED"}
AT_ONCE = 900  # MLflow accepts at most 1000 items per request


class TuningMirror:
    """Copies studies to one experiment of a tracking store; a store that becomes unavailable causes one warning."""

    def __init__(self, mirror: Mirror, grid: str, storage: Storage, notify: Callable[[Notice], None]) -> None:
        self.mirror, self.grid, self.storage, self.notify = mirror, f"{grid}-tuning", storage, notify
        self.broken = False
        self._runs: dict[tuple[str, str], str] = {}  # run ids by tag and value

    def __call__(self, event: Event) -> None:
        if isinstance(event, Tried):  # copy a trial that has just ended
            frozen = event.study.study.get_trials(deepcopy=False)[event.turn.trial.number]
            self._attempt([event.study], [trial_facts(frozen)])
        elif isinstance(event, Searched) and not event.interrupted:
            self._complete(event.studies)

    def _complete(self, studies: Sequence[MethodStudy]) -> None:
        """Copy what is missing, and the summary of a method's studies: best settings and figures."""
        methods: dict[str, list[MethodStudy]] = {}
        for study in studies:
            methods.setdefault(study.method, []).append(study)
        for held in methods.values():
            self._attempt(held)

    def _attempt(self, studies: Sequence[MethodStudy], trials: Sequence[TrialFacts] | None = None) -> None:
        """Copy some trials of one study, or all of a method's studies with their summary."""
        from mlflow.exceptions import MlflowException

        if self.broken:
            return
        try:
            with self.storage.lock("mlflow"):  # several processes copy the same study
                parent = self._parent(studies[0])
                if trials is not None:
                    self._write_trials(parent, studies[0], trials, known_new=True)
                    return
                [method] = methods_of(summarize(study.study) for study in studies)
                for study, facts in zip(studies, method.studies, strict=True):
                    self._write_trials(parent, study, facts.trials)
                    if study.fold is not None:
                        self._write_sum(self._fold_run(parent, study), MethodFacts(facts.name, method.how, (facts,)))
                self._write_sum(parent, method)
                self._write_artifacts(parent, studies, method)
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
        name = study.method if study.fold is None else f"{study.method}, by fold"
        return self._run(STUDY_TAG, name, name, study)

    def _fold_run(self, parent: str, study: MethodStudy) -> str:
        return self._run(FOLD_TAG, study.name, f"fold {study.fold}", study, {PARENT_TAG: parent})

    def _run(self, tag: str, value: str, name: str, study: MethodStudy, tags: dict[str, str] | None = None) -> str:
        """The run with this tag, created if it does not exist."""
        if (tag, value) not in self._runs:
            client, experiment = self.mirror.client, self.mirror.experiment(self.grid)
            quoted = value.replace("'", "''")
            found = client.search_runs([experiment], f"tags.`{tag}` = '{quoted}'", max_results=1)
            self._runs[tag, value] = (
                found[0].info.run_id if found else self._new_run(name, {tag: value, **(tags or {})}, study)
            )
        return self._runs[tag, value]

    def _new_run(self, name: str, tags: dict[str, str], study: MethodStudy) -> str:
        from mlflow.entities import Param

        client, facts = self.mirror.client, summarize(study.study).facts
        tags["settings"] = TUNED_ON[facts["how"]]
        run: str = client.create_run(self.mirror.experiment(self.grid), run_name=name, tags=tags).info.run_id
        params = {key: value for key, value in facts.items() if not isinstance(value, dict)}
        if STUDY_TAG in tags:
            params.pop("fold", None)
        params |= {f"training.{key}": value for key, value in facts["training"].items()}
        params |= {f"version.{key}": value for key, value in facts["versions"].items()}
        client.log_batch(run, params=[Param(key, str(value)) for key, value in params.items()])
        return run

    def _write_trials(
        self, parent: str, study: MethodStudy, trials: Sequence[TrialFacts], known_new: bool = False
    ) -> None:
        """Write the trials that are missing from the store; new trials need not be looked up in a fold's run."""
        if study.fold is None:
            there = self._copied(parent, trials)
            for trial in trials:
                if str(trial.number) not in there:
                    self._write_trial(parent, study, trial)
            return
        run = self._fold_run(parent, study)
        there = set() if known_new else {str(m.step) for m in self.mirror.client.get_metric_history(run, "seconds")}
        self._write_points(run, [trial for trial in trials if str(trial.turn) not in there])

    def _write_points(self, run: str, trials: Sequence[TrialFacts]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        points = [Metric("seconds", trial.seconds, now, trial.turn) for trial in trials]
        points += [Metric("validation_accuracy", t.value, now, t.turn) for t in trials if t.value is not None]
        for start in range(0, len(points), AT_ONCE):
            self.mirror.client.log_batch(run, metrics=points[start : start + AT_ONCE])

    def _copied(self, parent: str, trials: Sequence[TrialFacts]) -> set[str]:
        """The numbers of those trials that the store has completely."""
        which = f"tags.`{PARENT_TAG}` = '{parent}'"
        if len(trials) == 1:  # the usual case, kept independent of the size of the study
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
        metrics = [Metric("fold_accuracy", value, now, step) for step, value in enumerate(trial.accuracies)]
        metrics += [Metric("validation_accuracy", trial.value, now, 0)] if trial.value is not None else []
        metrics += [Metric("seconds", trial.seconds, now, 0)]
        client.log_batch(run, metrics=metrics, params=[Param(k, str(v)) for k, v in trial.settings.items()])
        client.set_terminated(run, SHOWN_AS[trial.state])

    def _write_sum(self, run: str, method: MethodFacts) -> None:
        from mlflow.entities import Metric

        client, now = self.mirror.client, int(time.time() * 1000)
        points = [(step, value) for step, value in enumerate(method.curve(), 1) if value == value]
        metrics = [Metric("best_validation_accuracy", value, now, step) for step, value in points]
        if method.default is not None:
            metrics.append(Metric("default_validation_accuracy", method.default, now, 0))
        metrics += [Metric(f"trials {state}", method.count(state), now, 0) for state in SHOWN_AS]
        client.log_batch(run, metrics=metrics)
        best = best_settings(method.studies)
        if best:
            client.set_tag(run, "best", json.dumps(best if len(method.studies) > 1 else next(iter(best.values()))))
        client.set_terminated(run, "FINISHED")

    def _write_artifacts(self, parent: str, studies: Sequence[MethodStudy], method: MethodFacts) -> None:
        with tempfile.TemporaryDirectory() as folder:
            write_artifacts(Path(folder), studies, method)
            self.mirror.client.log_artifacts(parent, folder)


def best_settings(studies: Sequence[StudyFacts]) -> dict[str, dict[str, Any]]:
    """The best settings of each study by fold; `all` for a pooled study."""
    return {
        "all" if study.fold is None else str(study.fold): study.best.settings
        for study in studies
        if study.best is not None
    }


def write_artifacts(folder: Path, studies: Sequence[MethodStudy], method: MethodFacts) -> None:
    """A method's studies as files: facts, trials, and figures."""
    from tables.style import save
    from tables.tuning_figures import folds_figure, history_figure, importance_figure

    document = {"name": method.name, **method.facts, "best": best_settings(method.studies)}
    (folder / "study.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    (folder / "trials.csv").write_text(trials_csv(method.studies), encoding="utf-8")
    if method.how == "nested":
        curves = {str(study.fold): study.curve() for study in method.studies}
        figure = folds_figure(method.name, curves, method.curve(), method.default)
    else:
        [study] = method.studies
        values = [(trial.number, trial.state, trial.value) for trial in study.trials]
        figure = history_figure(method.name, values, study.curve(), study.default)
    save(figure, folder, "history", ["png"])
    shares = mean_importances(studies)
    if shares:
        save(importance_figure(method.name, shares), folder, "importance", ["png"])


def mean_importances(studies: Sequence[MethodStudy]) -> dict[str, float]:
    """How much each setting affects the value, averaged over the studies with enough trials."""
    found = [shares for shares in (importances(study.study) for study in studies) if shares]
    names = dict.fromkeys(name for shares in found for name in shares)
    return {name: fmean(shares.get(name, 0.0) for shares in found) for name in names}


def trials_csv(studies: Sequence[StudyFacts]) -> str:
    """One row per trial, one column per setting."""
    rows = [(study.fold, trial) for study in studies for trial in study.trials]
    names = sorted({name for _, trial in rows for name in trial.settings})
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["fold", "trial", "state", "value", "trainings", "seconds", *names, "reason"])
    for fold, trial in rows:
        row: list[Any] = ["all" if fold is None else fold, trial.number, trial.state]
        row += ["" if trial.value is None else trial.value, len(trial.accuracies), round(trial.seconds, 2)]
        writer.writerow([*row, *(trial.settings.get(name, "") for name in names), trial.reason])
    return out.getvalue()
