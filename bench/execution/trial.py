"""One trial from end to end: its graphs, its labels, training, and the one look at the test part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import f1_score, recall_score
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from bench.datasets import load_dataset
from bench.execution.memory import room_for
from bench.learning.augmentation import Stopwatch
from bench.learning.problem import Engine, Fitted, Problem
from bench.plan.cells import Cell, Trial
from bench.protocol.budgets import labelled_graphs
from bench.protocol.features import Featuriser
from bench.protocol.seeds import TrialSeeds
from bench.protocol.splits import Splits, load_splits
from bench.registry import UserError
from bench.results.ledger import Record
from models.fit import Diverged, predict


@dataclass
class TrialRunner:
    """Runs trials in this process; datasets, splits and what the methods of one trial share are kept between calls."""

    data_root: Path
    engine: Engine
    device: str = "cpu"
    memory: int | None = None  # bytes that trials may take, together with those of other workers
    _splits: dict[tuple[str, str], Splits] = field(default_factory=dict)
    _shared: tuple[Any, dict[str, Any]] = ((), {})

    def run(self, jobs: Iterable[tuple[Cell, Trial]]) -> list[Record]:
        """One record a trial, whatever happens to it."""
        return [self._attempt(cell, trial) for cell, trial in jobs]

    def _attempt(self, cell: Cell, trial: Trial) -> Record:
        record: Record = {"type": "trial", "cell": cell.key, "fold": trial.fold, "repeat": trial.repeat}
        try:
            cell = cell.at(trial.fold)
            record |= self._measure(cell, trial)
        except Diverged as error:
            training = f"{cell.training.epochs} epochs, lr={cell.training.lr:g}"
            record |= {"status": "diverged", "reason": f"{error} ({cell.label}, {training})"}
        except Exception as error:
            # The grid goes on whatever a method does; the ledger keeps what happened and a rerun retries it.
            record |= {"status": "failed", "reason": _one_line(error)}
        return record | {"finished": datetime.now(UTC).isoformat(timespec="seconds")}

    def _measure(self, cell: Cell, trial: Trial) -> Record:
        problem, test = self.problem(cell, trial)
        with room_for(problem, self.memory, self.engine.name):
            fitted = self.engine.fit([problem])[0]
        if isinstance(fitted, Exception):
            raise fitted
        watch = Stopwatch()
        scores = evaluate(fitted, test, self.device)
        watch.lap("evaluate")
        return {
            "status": "done",
            "reason": None,
            **scores,
            "loss": fitted.loss,
            "labels": len(problem.graphs),
            "seconds": {part: round(s, 4) for part, s in (fitted.seconds | watch.seconds).items()},
            "generated": fitted.generated,
            "curve": [[epoch, float(f"{loss:.5g}")] for epoch, loss in fitted.curve],
        }

    def problem(self, cell: Cell, trial: Trial) -> tuple[Problem, list[Data]]:
        """The trial as the engine sees it and, apart from it, the test graphs."""
        data = load_dataset(cell.dataset, self.data_root)
        self._check_data(cell, data.fingerprint)
        splits = self._splits_of(cell, data.labels)
        fold, seeds = splits.development(trial.fold), TrialSeeds(cell.dataset, cell.splits, trial.fold, trial.repeat)
        featurise = Featuriser.fit(cell.features, [data.graphs[i] for i in fold.train])
        chosen = labelled_graphs(data.labels, fold.train, cell.k, seeds)
        validation = fold.validation if cell.training.select == "best-val" else ()
        backbone, readout = cell.backbone.label, cell.readout.label
        problem = Problem(
            graphs=[featurise(data.graphs[i]) for i in chosen],
            num_classes=data.num_classes,
            backbone=cell.backbone,
            readout=cell.readout,
            augmenter=AUGMENTERS.create(cell.augmenter),
            training=cell.training,
            init_seed=seeds.init(backbone, readout),
            augment_seed=seeds.augmenter(backbone, readout, cell.augmenter.label),
            pretrain_seed=seeds.pretrain(backbone, readout),
            shared_seed=seeds.shared,
            featurise=featurise,
            validation=[featurise(data.graphs[i]) for i in validation],
            device=self.device,
            shared=self._shared_parts((cell.dataset, cell.features, cell.splits, cell.k, cell.training, trial)),
        )
        return problem, [featurise(data.graphs[i]) for i in splits.test(trial.fold)]

    def _check_data(self, cell: Cell, found: str) -> None:
        """A worker elsewhere may have another version of a dataset under the same name."""
        planned = cell.versions.get("dataset", found)
        if planned != found:
            raise UserError(
                f"{cell.dataset} in {self.data_root} is another version ({found}) than the plan's ({planned}); "
                "import the same files, or delete that dataset's folder `processed`"
            )

    def _splits_of(self, cell: Cell, labels: np.ndarray) -> Splits:
        key = (cell.dataset, cell.splits)
        if key not in self._splits:
            self._splits[key] = load_splits(cell.dataset, cell.splits, labels, self.data_root)
        return self._splits[key]

    def _shared_parts(self, owner: Any) -> dict[str, Any]:
        """What the methods of the trial at hand have in common; only one trial's is kept at a time."""
        if self._shared[0] != owner:
            self._shared = (owner, {})
        return self._shared[1]


def evaluate(fitted: Fitted, graphs: Sequence[Data], device: str) -> dict[str, float]:
    """Accuracy, balanced accuracy and macro F1 on graphs the training never saw."""
    truth = torch.cat([graph.y for graph in graphs]).numpy()
    guess = predict(fitted.model, graphs, device).argmax(dim=1).numpy()
    present = np.unique(truth)  # a class that the test part lacks has no recall
    return {
        "accuracy": float(np.mean(truth == guess)),
        "balanced_accuracy": float(recall_score(truth, guess, labels=present, average="macro", zero_division=0)),
        "macro_f1": float(f1_score(truth, guess, labels=present, average="macro", zero_division=0)),
    }


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())[:500] or "no message"
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return f"out of memory: {text}"
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"


@lru_cache(maxsize=1)
def engines() -> dict[str, type]:
    """The training engines by name."""
    from bench.learning.fast.engine import FastEngine
    from bench.learning.reference import ReferenceEngine

    return {engine.name: engine for engine in (FastEngine, ReferenceEngine)}
