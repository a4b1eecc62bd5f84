"""One trial from start to end: graphs, labels, training, and the one evaluation on the test part."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from augmenters.base import SharedParts
from bench.datasets import load_dataset
from bench.datasets.base import GraphSet
from bench.execution.memory import room_for
from bench.learning.augmentation import Stopwatch
from bench.learning.held_out import HeldOut, HeldOutParts, predicted_classes
from bench.learning.isolation import own_copy
from bench.learning.learner import create_learner, predictions
from bench.learning.problem import Engine, Predictor, Problem
from bench.plan.cells import Cell, Trial
from bench.plan.identity import NO_ENGINE
from bench.protocol.budgets import labeled_graphs
from bench.protocol.features import Featurizer
from bench.protocol.metrics import Scores, is_recorded_anyway, metric_value, scores
from bench.protocol.seeds import TrialSeeds
from bench.protocol.splits import Splits, check_splits, load_splits
from bench.registry import UserError
from bench.results.records import TrialRecord
from models.fit import Diverged


@dataclass
class TrialRunner:
    """Runs trials in this process; datasets, splits and parts shared by the methods of a trial are cached between
    calls.
    """

    data_root: Path
    engine: Engine
    device: str = "cpu"
    memory: int | None = None  # bytes that trials may use, together with those of other workers
    _splits: dict[tuple[str, str], Splits] = field(default_factory=dict)
    _featurizers: dict[Hashable, Featurizer] = field(default_factory=dict)
    _held_out: HeldOutParts = field(default_factory=HeldOutParts)
    _shared: tuple[Any, SharedParts] = field(default_factory=lambda: ((), SharedParts()))

    def run(self, jobs: Iterable[tuple[Cell, Trial]]) -> list[TrialRecord]:
        """One record per trial, whatever happens."""
        return [self._attempt(cell, trial) for cell, trial in jobs]

    def _attempt(self, cell: Cell, trial: Trial) -> TrialRecord:
        try:
            record = self._measure(cell.at(trial.fold), trial)
        except Diverged as error:
            training = f"{cell.training.epochs} epochs, lr={cell.training.lr:g}"
            reason = f"{error} ({cell.label}, {training})"
            record = TrialRecord(cell.key, trial.fold, trial.repeat, "diverged", reason)
        except Exception as error:
            # The grid continues whatever a method does; the ledger records what happened, and a rerun retries it.
            record = TrialRecord(cell.key, trial.fold, trial.repeat, "failed", _one_line(error))
        record.cell = cell.key  # the key of the cell as planned, even if its settings were tuned by fold
        record.finished = datetime.now(UTC).isoformat(timespec="seconds")
        return record

    def _measure(self, cell: Cell, trial: Trial) -> TrialRecord:
        problem, test = self.problem(cell, trial)
        engine = planned_engine(cell, self.engine)
        learner = create_learner(cell.learner, engine)
        with room_for(problem, self.memory, engine.name):
            fitted = learner.fit(problem)
        watch = Stopwatch()
        scored = evaluate(fitted.predictor, test, problem.num_classes, cell.metric)
        watch.lap("evaluate")
        return TrialRecord(
            cell.key,
            trial.fold,
            trial.repeat,
            "done",
            **scored,
            loss=fitted.loss,
            labels=len(problem.graphs),
            engine=fitted.engine,
            handed_over=fitted.handed_over,
            seconds={part: round(s, 4) for part, s in (fitted.seconds | watch.seconds).items()},
            generated=fitted.generated,
            curve=[[epoch, float(f"{loss:.5g}")] for epoch, loss in fitted.curve],
        )

    def problem(self, cell: Cell, trial: Trial) -> tuple[Problem, HeldOut]:
        """The trial as a learner sees it, with its own copies of the graphs, and, separately, the test graphs."""
        data = load_dataset(cell.dataset, self.data_root)
        self._check_data(cell, data.fingerprint)
        splits = self._splits_of(cell, data.labels)
        fold, seeds = splits.development(trial.fold), TrialSeeds(cell.dataset, cell.splits, trial.fold, trial.repeat)
        where = (cell.dataset, data.fingerprint, cell.features, cell.splits, trial.fold)
        featurize = self._featurizer(where, cell.features, data, fold.train)
        chosen = labeled_graphs(data.labels, fold.train, cell.k, seeds)
        validation = fold.validation if cell.training.select == "best-val" else ()
        backbone, readout = cell.part_label("backbone"), cell.part_label("readout")
        owner = (cell.dataset, cell.features, cell.splits, cell.k, cell.training, trial, cell.learner.label)
        problem = Problem(
            graphs=[own_copy(featurize(data.graphs[i])) for i in chosen],
            num_classes=data.num_classes,
            augmenter=AUGMENTERS.create(cell.augmenter),
            training=cell.training,
            init_seed=seeds.init(backbone, readout),
            augment_seed=seeds.augmenter(backbone, readout, cell.augmenter.label),
            pretrain_seed=seeds.pretrain(backbone, readout),
            shared_seed=seeds.shared,
            featurize=featurize,
            backbone=cell.backbone,
            readout=cell.readout,
            validation=[own_copy(featurize(data.graphs[i])) for i in validation],
            device=self.device,
            shared=self._shared_parts(owner),
        )
        return problem, self._held_out.fetch(where, lambda: held_out(data, featurize, splits.test(trial.fold)))

    def _featurizer(self, where: Hashable, kind: str, data: GraphSet, train: np.ndarray) -> Featurizer:
        """Fitted on a fold's training graphs once per process."""
        if where not in self._featurizers:
            self._featurizers[where] = Featurizer.fit(kind, [data.graphs[i] for i in train])
        return self._featurizers[where]

    def _check_data(self, cell: Cell, found: str) -> None:
        """A worker on another machine may have a different version of the dataset under the same name."""
        planned = cell.versions.get("dataset", found)
        if planned != found:
            raise UserError(
                f"{cell.dataset} in {self.data_root} is a different version ({found}) from the plan's ({planned}); "
                "import the same files, or delete the dataset's folder `processed`"
            )

    def _splits_of(self, cell: Cell, labels: np.ndarray) -> Splits:
        key = (cell.dataset, cell.splits)
        if key not in self._splits:
            self._splits[key] = load_splits(cell.dataset, cell.splits, labels, self.data_root)
        check_splits(self._splits[key], cell.versions.get("splits"), self.data_root)
        return self._splits[key]

    def _shared_parts(self, owner: Any) -> SharedParts:
        """What the methods of the current trial share; only one trial's parts are kept at a time."""
        if self._shared[0] != owner:
            self._shared = (owner, SharedParts())
        return self._shared[1]


def held_out(data: GraphSet, featurize: Featurizer, test: np.ndarray) -> HeldOut:
    """The test part of a fold; each graph is created on access."""
    return HeldOut(lambda place: featurize(data.graphs[int(test[place])]), data.labels[test])


def evaluate(predictor: Predictor, graphs: Sequence[Data], num_classes: int, metric: str | None = None) -> Scores:
    """All scores on graphs that the training never saw; `metric` is the primary metric if it is not accuracy."""
    truth = graphs.truth if isinstance(graphs, HeldOut) else torch.cat([graph.y for graph in graphs]).numpy()
    if metric is None or is_recorded_anyway(metric):
        return scores(truth, predicted_classes(predictor, graphs, num_classes), num_classes)
    rows = predictions(predictor, graphs, num_classes)
    judged = metric_value(metric, truth, rows.double().numpy())
    return {**scores(truth, rows.argmax(dim=1).numpy(), num_classes), "scores": {metric: judged}}


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())[:500] or "no message"
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return f"out of memory: {text}"
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"


def planned_engine(cell: Cell, usual: Engine) -> Engine:
    """The engine in the cell's key: the plan knows which cells the fast engine cannot train."""
    name = cell.versions.get("engine")
    return usual if name in (usual.name, NO_ENGINE, None) else engines()[str(name)]()


@lru_cache(maxsize=1)
def engines() -> dict[str, type]:
    """The training engines by name."""
    from bench.learning.fast.engine import FastEngine
    from bench.learning.reference import ReferenceEngine

    return {engine.name: engine for engine in (FastEngine, ReferenceEngine)}
