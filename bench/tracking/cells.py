"""The MLflow mirror: an experiment per grid, a run per cell. It can be rebuilt from the ledger at any time."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bench.plan.cells import PARTS, TUNED_ON, Cell
from bench.registry import UserError
from bench.results.ledger import LedgerState, read_state
from bench.results.records import SCORES, TrialRecord
from bench.results.summary import accuracies_of, cell_metrics, mean_curve, ordered_trials
from bench.results.workspace import Workspace
from bench.temporary import scratch_folder
from bench.tracking.glance import complete_runs, usable_at_a_glance
from bench.tracking.store import SQLITE, StoreFailure, first_line, open_store, told_by_the_store
from bench.tracking.view import experiment_tags, run_name
from bench.warn_once import warn_once
from bench.words import counted

if TYPE_CHECKING:
    from mlflow import MlflowClient

CELL_TAG = "augbench.cell"
DIGEST_TAG = "augbench.digest"
FORM = 2  # raised when runs show cells in a different way, so that earlier ones are rewritten
# In addition to these, a trial's seconds and statistics of generated graphs are columns of its CSV.
TRIAL_COLUMNS = ("fold", "repeat", "status", *SCORES, "loss", "labels", "engine", "finished")


class Mirror:
    """Writes cells to one MLflow tracking store."""

    def __init__(self, uri: str, artifacts: Path) -> None:
        self.uri, self.artifacts = uri, artifacts
        self._experiments: dict[str, str] = {}
        # By experiment and cell: the id of each run, and its digest if complete. Queried once, then kept up to date.
        self._runs: dict[str, dict[str, list[tuple[str, str | None]]]] = {}
        self._glance: dict[str, dict[str, list[str]]] = {}
        with self._told_at_once():
            if not usable_at_a_glance(uri):
                _ = self.client

    @cached_property
    def client(self) -> MlflowClient:
        """The MLflow client, which takes seconds to import; created when something has to be written."""
        with self._told_at_once():
            return open_store(self.uri)

    @contextmanager
    def _told_at_once(self) -> Iterator[None]:
        try:
            yield
        except (StoreFailure, ValueError) as error:
            if isinstance(error, UserError):
                raise
            local = "make room for it or choose another --workspace"
            remedy = local if self.uri.startswith(SQLITE) else "start that server, or leave --tracking-uri out"
            raise UserError(f"the tracking store {self.uri} cannot be used: {first_line(error)}; {remedy}") from error

    def has(self, grid: str, cell: Cell, state: LedgerState) -> bool:
        """Whether the store shows the current state of a cell, determined without MLflow; False if unknown."""
        if grid not in self._glance:
            self._glance[grid] = complete_runs(self.uri, grid, CELL_TAG, DIGEST_TAG)
        return self._glance[grid].get(cell.key) == [digest(cell, ordered_trials(state, cell.key))]

    def experiment(self, grid: str) -> str:
        """The id of a grid's experiment, created if it does not exist."""
        if grid not in self._experiments:
            found = self.client.get_experiment_by_name(grid)
            if found is None:
                local = self.uri.startswith(SQLITE)
                place = (self.artifacts / quote(grid, safe=" ")).resolve().as_uri() if local else None
                made = self.client.create_experiment(grid, artifact_location=place, tags=experiment_tags())
                self._experiments[grid] = made
            else:
                if found.lifecycle_stage == "deleted":  # MLflow reserves the names of experiments deleted in its UI
                    self.client.restore_experiment(found.experiment_id)
                for name, value in experiment_tags().items():  # for experiments created by an earlier version
                    if found.tags.get(name) != value:
                        self.client.set_experiment_tag(found.experiment_id, name, value)
                self._experiments[grid] = found.experiment_id
        return self._experiments[grid]

    def write_cell(self, grid: str, cell: Cell, state: LedgerState) -> bool:
        """Mirror the current state of one cell; returns False if the store already has it."""
        shown = _Shown.of(cell, ordered_trials(state, cell.key), state)
        with told_by_the_store():
            experiment = self.experiment(grid)
            found = self._known_runs(experiment)
            fitting = [run for run in found.get(cell.key, []) if run[1] == shown.digest]
            for run in found.get(cell.key, []):
                if run not in fitting[:1]:
                    self.client.delete_run(run[0])
            found[cell.key] = fitting[:1]
            if fitting:
                return False
            tags = {CELL_TAG: cell.key, DIGEST_TAG: shown.digest, **shown.tags}
            run_id = self.client.create_run(experiment, shown.start, tags, run_name=run_name(cell)).info.run_id
            self._log(run_id, shown)
            self._log_dataset(run_id, cell)
            self.client.set_terminated(run_id, "FINISHED", shown.end)
            found[cell.key] = [(run_id, shown.digest)]
        return True

    def _log_dataset(self, run_id: str, cell: Cell) -> None:
        """Log the dataset of a cell, for MLflow's own dataset column."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        source = json.dumps({"dataset": cell.dataset, "splits": cell.splits, "features": cell.features})
        known = Dataset(cell.dataset[:500], str(cell.versions.get("dataset", ""))[:36], "augbench", source)
        self.client.log_inputs(run_id, [DatasetInput(known, [InputTag("mlflow.data.context", f"k={cell.k}")])])

    def _known_runs(self, experiment: str) -> dict[str, list[tuple[str, str | None]]]:
        """The runs of an experiment, by the cell they mirror."""
        if experiment not in self._runs:
            by_cell: dict[str, list[tuple[str, str | None]]] = {}
            token: str | None = None
            while token != "":
                page = self.client.search_runs([experiment], max_results=500, page_token=token)
                for run in page:
                    known = (run.info.run_id, _complete_digest(run))
                    by_cell.setdefault(run.data.tags.get(CELL_TAG, ""), []).append(known)
                token = page.token or ""
            self._runs[experiment] = by_cell
        return self._runs[experiment]

    def _log(self, run_id: str, shown: _Shown) -> None:
        from mlflow.entities import Metric, Param

        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, step) for name, value, step in shown.metrics]
        params = [Param(name, str(value)) for name, value in shown.params.items()]
        self.client.log_batch(run_id, metrics=metrics[:900], params=params)  # MLflow accepts at most 1000 items at once
        for start in range(900, len(metrics), 900):
            self.client.log_batch(run_id, metrics=metrics[start : start + 900])
        with scratch_folder("augbench") as folder:
            for name, text in shown.documents.items():
                (folder / name).write_text(text, encoding="utf-8")
            self.client.log_artifacts(run_id, str(folder))


@dataclass(frozen=True)
class _Shown:
    """Everything that a run shows about a cell, computed before the store is accessed."""

    digest: str
    start: int
    end: int
    tags: Mapping[str, str]
    params: Mapping[str, Any]
    metrics: Sequence[tuple[str, float, int]]
    documents: Mapping[str, str]

    @classmethod
    def of(cls, cell: Cell, trials: list[TrialRecord], state: LedgerState) -> _Shown:
        done = [trial for trial in trials if trial.done]
        curve = mean_curve(done)
        metrics = [(name, value, 0) for name, value in cell_metrics(trials).items()]
        metrics += [("trial_accuracy", 100 * value, step) for step, value in enumerate(accuracies_of(done))]
        metrics += [("train_loss", loss, epoch) for epoch, loss in curve]
        sources = {trial.provenance for trial in trials}
        origins = [origin.to_json() for key, origin in state.provenance.items() if key in sources]
        documents = {
            "cell.json": json.dumps({"key": cell.key, **cell.to_json()}, indent=2),
            "trials.csv": _csv(trials),
            "train_loss.csv": "epoch,loss\n" + "".join(f"{epoch},{loss}\n" for epoch, loss in curve),
            "provenance.json": json.dumps(origins, indent=2),
        }
        start, end = _span(trials)
        tags = _origin_tags(trials, state)
        return cls(digest(cell, trials), start, end, tags, _params(cell), metrics, documents)


def _complete_digest(run: Any) -> str | None:
    """The state of its cell that a run shows; empty if the run was not written completely."""
    return run.data.tags.get(DIGEST_TAG) if run.info.status == "FINISHED" else None


def _params(cell: Cell) -> Mapping[str, Any]:
    """A cell by axis, flat, so that MLflow's table can sort and compare; `cell.json` has what differs by fold."""
    if cell.by_fold:
        first, *rest = (_params(cell.at(int(fold))) for fold in cell.by_fold)
        same = {name: v if all(one[name] == v for one in rest) else "by fold" for name, v in first.items()}
        return {**same, **{part: str(getattr(cell, part)) for part in ("augmenter", "backbone", "readout")}}
    parts: dict[str, Any] = {
        "dataset": cell.dataset,
        "k": cell.k,
        **{part: cell.part_label(part) for part in PARTS},
        "features": cell.features,
        "splits": cell.splits,
        "tuned": cell.tuned,
    }
    for part in PARTS:
        choice = getattr(cell, part)
        if choice is not None:
            parts.update({f"{part}.{name}": value for name, value in choice.settings.items()})
    facts = cell.to_json()
    if cell.metric is not None:
        parts["metric"] = cell.metric
    parts.update({f"training.{name}": value for name, value in facts["training"].items()})
    if cell.tuned:
        parts["tuned_how"] = TUNED_ON[cell.tuned_how or "pooled"]
    parts.update({f"version.{name}": value for name, value in cell.versions.items()})
    return parts


def digest(cell: Cell, trials: list[TrialRecord]) -> str:
    """A short hash of what a run shows of a cell; it changes with the state of the ledger and the form of runs."""
    return hashlib.sha256(
        json.dumps([FORM, cell.key, [trial.to_json() for trial in trials]], sort_keys=True).encode()
    ).hexdigest()[:16]


def _csv(trials: list[TrialRecord]) -> str:
    rows = [
        {name: getattr(trial, name) for name in TRIAL_COLUMNS}
        | {f"seconds_{part}": value for part, value in trial.seconds.items()}
        | {f"generated_{part}": value for part, value in trial.generated.items()}
        | {"reason": trial.reason}
        for trial in trials
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _origin_tags(trials: list[TrialRecord], state: LedgerState) -> dict[str, str]:
    """Version, commit and dirty state of the code behind the trials; several if a cell was resumed with other code."""
    sources = dict.fromkeys(trial.provenance for trial in trials)
    known = [state.provenance[source].facts for source in sources if source in state.provenance]
    tags = {
        f"augbench.{name}": ", ".join(dict.fromkeys(str(facts.get(name)) for facts in known))
        for name in ("commit", "dirty")
    }
    tags["augbench.version"] = ", ".join(dict.fromkeys(str(facts.get("augbench")) for facts in known))
    if known and known[-1].get("commit"):
        tags["mlflow.source.git.commit"] = str(known[-1]["commit"])  # MLflow's own column for commits
    return tags


def _span(trials: list[TrialRecord]) -> tuple[int, int]:
    """When a cell's trials were run, in MLflow's milliseconds, so that mirrors created later show it too."""
    spans = [span for trial in trials if (span := _milliseconds(trial)) is not None]
    now = int(time.time() * 1000)
    return min((start for start, _ in spans), default=now), max((end for _, end in spans), default=now)


def _milliseconds(trial: TrialRecord) -> tuple[int, int] | None:
    """None for a time that MLflow cannot represent: before 1970, or not recorded."""
    if trial.finished is None:
        return None
    moment = datetime.fromisoformat(trial.finished)
    try:
        end = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    start = end - min(sum(trial.seconds.values()), end)
    return (int(start * 1000), int(end * 1000)) if end > 0 else None


def sync_mirror(workspace: Workspace, uri: str | None) -> tuple[int, int]:
    """Write every cell of the ledger to its grids' experiments; returns the numbers written and already up to date.

    Cells that the ledger does not describe are left out, with one warning.
    """
    state = read_state(workspace.ledger)
    mirror = Mirror(uri or workspace.tracking_uri, workspace.artifacts)
    members = dict.fromkeys((plan.grid, key) for plan in state.plans for key in plan.cells)
    changed = []
    try:
        for grid, key in members:
            if key in state.trials and key in state.cells:
                cell = state.cells[key]
                changed.append(not mirror.has(grid, cell, state) and mirror.write_cell(grid, cell, state))
    except StoreFailure as error:
        raise UserError(
            f"the tracking store {mirror.uri} stopped answering ({error}) after {sum(changed)} new cells; "
            "these are kept; run the same command again"
        ) from error
    lost = state.undescribed()
    if lost:
        warn_once(
            f"{counted(len(lost), 'cell')} in {workspace.ledger} left out, because no line describes them; "
            f"the first is {lost[0]}; restore that line from a copy"
        )
    return sum(changed), len(changed) - sum(changed)
