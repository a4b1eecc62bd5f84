"""What a tuner may see of a trial, and the one number it gets back: accuracy on validation graphs.

An objective belongs to one fold and is built from `FoldDevelopment`: the training and validation graphs of that fold
and their labels. It has no test graph, no test index, and nothing of any other fold.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from bench.datasets import load_dataset
from bench.datasets.paths import data_root
from bench.execution.containment import begin_trial
from bench.execution.memory import room_for
from bench.execution.trial import evaluate, planned_engine
from bench.execution.worker import WorkerSettings, other_versions
from bench.learning.isolation import own_copy
from bench.learning.learner import create_learner
from bench.learning.problem import Engine, Problem
from bench.plan.cells import Cell, Trial
from bench.protocol.budgets import HIDDEN, labeled_graphs, validation_budget
from bench.protocol.features import Featurizer
from bench.protocol.metrics import primary
from bench.protocol.seeds import TrialSeeds
from bench.protocol.splits import DevelopmentFold, load_splits
from bench.registry import UserError
from models.fit import Diverged

Validation = Literal["budget", "full"]
VALIDATION = ("budget", "full")
Score = dict[str, Any]


@dataclass(frozen=True)
class FoldDevelopment:
    """One fold of a dataset as a tuner sees it: its training and validation parts, with the dataset's own indices."""

    fold: int
    part: DevelopmentFold
    graphs: Mapping[int, Data]  # of the two parts
    labels: npt.NDArray[np.int64]  # HIDDEN for every graph outside them
    num_classes: int
    fingerprint: str

    @classmethod
    def load(cls, dataset: str, family: str, fold: int, root: Path) -> FoldDevelopment:
        data = load_dataset(dataset, root)
        part = load_splits(dataset, family, data.labels, root).without_test().development(fold)
        members = np.concatenate([part.train, part.validation])
        labels = np.full(int(members.max()) + 1, HIDDEN, dtype=np.int64)
        labels[members] = data.labels[members]
        graphs = {index: data.graphs[index] for index in members.tolist()}
        return cls(fold, part, graphs, labels, data.num_classes, data.fingerprint)


@dataclass(frozen=True)
class FoldData:
    """One label draw of a fold as used for training and scoring: the same for all settings that are tried."""

    labeled: list[Data]
    scored: list[Data]
    validation: list[Data]  # for training settings that choose an epoch by it
    featurize: Featurizer
    seeds: TrialSeeds


@dataclass
class Objective:
    """Trains on one fold's labeled graphs with given settings and scores the result on its validation graphs."""

    data: FoldDevelopment
    engine: Engine
    validation: Validation = "budget"
    device: str = "cpu"
    memory: int | None = None  # bytes that trials may use, together with those of other workers
    _folds: dict[Any, FoldData] = field(default_factory=dict)

    def accuracy(self, cell: Cell, trial: Trial) -> float:
        """The share of validation graphs that are classified correctly."""
        if cell.versions.get("dataset", self.data.fingerprint) != self.data.fingerprint:
            raise UserError(f"{cell.dataset} differs from the version in the plan; import the same files")
        fold = self.fold(cell, trial)
        problem = self.problem(cell, fold)
        learner = create_learner(cell.learner, planned_engine(cell, self.engine))
        with room_for(problem, self.memory, self.engine.name):
            fitted = learner.fit(problem)
        return primary(evaluate(fitted.predictor, fold.scored, problem.num_classes, cell.metric), cell.metric)

    def fold(self, cell: Cell, trial: Trial) -> FoldData:
        """The graphs of a label draw with their features; cached, since hundreds of settings use the same ones."""
        if trial.fold != self.data.fold:
            raise UserError(
                f"the objective of fold {self.data.fold} has no data of fold {trial.fold}; use that fold's objective"
            )
        key = (cell.features, cell.k, cell.training.select, trial)
        if key not in self._folds:
            self._folds[key] = self._prepared(cell, trial)
        return self._folds[key]

    def _prepared(self, cell: Cell, trial: Trial) -> FoldData:
        graphs, labels, fold = self.data.graphs, self.data.labels, self.data.part
        seeds = TrialSeeds(cell.dataset, cell.splits, trial.fold, trial.repeat)
        featurize = Featurizer.fit(cell.features, [graphs[i] for i in fold.train])
        chosen = labeled_graphs(labels, fold.train, cell.k, seeds)
        within_budget = self.validation == "budget"
        scored = validation_budget(labels, fold.validation, cell.k, seeds) if within_budget else fold.validation
        validation = fold.validation if cell.training.select == "best-val" else ()
        return FoldData(
            [featurize(graphs[i]) for i in chosen],
            [featurize(graphs[i]) for i in scored],
            [featurize(graphs[i]) for i in validation],
            featurize,
            seeds,
        )

    def problem(self, cell: Cell, fold: FoldData) -> Problem:
        """The problem for the engine: seeds and graphs are those that `bench run` would use with these settings."""
        seeds, backbone, readout = fold.seeds, cell.part_label("backbone"), cell.part_label("readout")
        return Problem(
            graphs=[own_copy(graph) for graph in fold.labeled],
            num_classes=self.data.num_classes,
            backbone=cell.backbone,
            readout=cell.readout,
            augmenter=AUGMENTERS.create(cell.augmenter),
            training=cell.training,
            init_seed=seeds.init(backbone, readout),
            augment_seed=seeds.augmenter(backbone, readout, cell.augmenter.label),
            pretrain_seed=seeds.pretrain(backbone, readout),
            shared_seed=seeds.shared,
            featurize=fold.featurize,
            validation=[own_copy(graph) for graph in fold.validation],
            device=self.device,
        )


_OBJECTIVES: dict[Any, Objective] = {}
_ONE_AT_A_TIME = threading.Lock()  # cluster workers may have threads, and torch's random state is global


def score(settings: WorkerSettings, work: dict[str, Any]) -> Score:
    """Executed by a worker: one fold of one trial. Always returns a result; errors are part of it."""
    with _ONE_AT_A_TIME:
        torch.set_num_threads(1)  # small graphs gain nothing from more, and sums keep their order
        cell, trial = Cell.from_json(work["cell"]), Trial(work["fold"], work["repeat"])
        reason = other_versions(cell)
        if reason:
            return {"status": "failed", "reason": reason}
        begin_trial()
        try:
            objective = _objective(settings, cell, trial.fold, work["validation"])
            return {"status": "done", "accuracy": objective.accuracy(cell, trial)}
        except Diverged as error:
            return {"status": "diverged", "reason": str(error)}
        except Exception as error:
            # Third-party code may raise anything; the study records the reason and continues with other settings.
            text = " ".join(str(error).split())[:500] or "no message"
            return {
                "status": "failed",
                "reason": text if isinstance(error, UserError) else f"{type(error).__name__}: {text}",
            }


def _objective(settings: WorkerSettings, cell: Cell, fold: int, validation: Validation) -> Objective:
    key = (settings, cell.dataset, cell.splits, fold, validation)
    if key not in _OBJECTIVES:
        from bench.execution.trial import engines

        data = FoldDevelopment.load(cell.dataset, cell.splits, fold, data_root(settings.data_root))
        engine = engines()[settings.engine]()
        _OBJECTIVES[key] = Objective(data, engine, validation, settings.device, settings.memory)
    return _OBJECTIVES[key]
