"""A ledger that was never run: seeded numbers in the shape of real ones, for tests and demonstrations only."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, TypeVar

from bench.plan.cells import Cell
from bench.protocol.training import Training
from bench.results.records import CellRecord, PlanRecord, ProvenanceRecord, Record, TrialRecord, parse
from tables.specs import Coordinate, full

T = TypeVar("T")
SOCIAL = ("IMDB-BINARY", "IMDB-MULTI", "REDDIT-MULTI-5K")
LEVELS = {"PROTEINS": 0.62, "NCI1": 0.53, "DD": 0.6, "IMDB-BINARY": 0.55, "IMDB-MULTI": 0.36, "REDDIT-MULTI-5K": 0.27}
GAINS = {"none": 0.0, "dropnode": 0.01, "dropedge": 0.012, "softedge": -0.002, "g-mixup": 0.004, "gdm-acc": 0.03}
PROVENANCE = ProvenanceRecord(
    "p1",
    {
        "augbench": "0.1.0",
        "commit": "0123456789abcdef",
        "dirty": False,
        "python": "3.11.7",
        "torch": "2.13",
        "machine": {"cpu": "a made-up processor", "cores": 2},
    },
)
TRAINING = asdict(Training())
PLACE = Coordinate("PROTEINS", 10, "none")


def choice(label: str) -> dict[str, Any]:
    name, _, rest = label.partition(":")
    settings = dict(item.split("=", 1) for item in rest.split(",")) if rest else {}
    return {"name": name, "settings": settings, "label": label}


def cell(place: Coordinate = PLACE, **changes: Any) -> CellRecord:
    """The record of one coordinate; `changes` overwrite parts of its line."""
    social = place.dataset in SOCIAL
    known = place.dataset in LEVELS
    facts = {
        "dataset": place.dataset,
        "features": "constant" if social else "native",
        "splits": ("COLLABORATIVE_1" if social else "CHEMICAL") if known else "stratified",
        "k": place.k,
        "learner": choice(place.learner),
        "augmenter": choice(place.augmenter),
        "backbone": choice(place.backbone) if place.backbone else None,
        "readout": choice(place.readout) if place.readout else None,
        "training": TRAINING,
        "tuned": False,
        "versions": {
            "protocol": 1,
            "augmenter": 1,
            "backbone": 1,
            "readout": 1,
            "dataset": f"print-of-{place.dataset}",
            "torch": "2.13",
            "torch-geometric": "2.8",
        },
    } | changes
    return _valid(CellRecord, {"type": "cell", "key": Cell.from_json(facts).key, **facts})


def trial(key: str = "c", fold: int = 0, repeat: int = 0, accuracy: float | None = 0.5, **changes: Any) -> TrialRecord:
    """A trial with that accuracy, or one that failed; `changes` overwrite parts of its line."""
    done = accuracy is not None
    facts = {
        "type": "trial",
        "cell": key,
        "fold": fold,
        "repeat": repeat,
        "status": "done" if done else "failed",
        "reason": None if done else "out of memory",
        "accuracy": accuracy,
        "balanced_accuracy": max(0.0, accuracy - 0.05) if accuracy is not None else None,
        "macro_f1": max(0.0, accuracy - 0.1) if accuracy is not None else None,
        "loss": 0.5 if done else None,
        "seconds": {"augment": 0.25, "train": 2.0 + fold / 10, "evaluate": 0.1},
        "generated": {"count": 21, "density": 0.79, "density_original": 0.27},
        "labels": 20,
        "finished": f"2026-01-{1 + repeat % 28:02d}T0{fold % 10}:00:00+00:00",
        "provenance": "p1",
    } | changes
    return _valid(TrialRecord, facts)


def plan(keys: Iterable[str], folds: Iterable[int], repeats: Iterable[int] = (0,), **changes: Any) -> PlanRecord:
    facts = {"type": "plan", "grid": "full", "cells": list(keys), "folds": list(folds), "repeats": list(repeats)}
    return _valid(PlanRecord, {**facts, "skipped": [], "at": "2026-01-01T00:00:00+00:00"} | changes)


def _valid(kind: type[T], raw: dict[str, Any]) -> T:
    """Only what a reader would take is a record."""
    record = parse(raw)
    assert isinstance(record, kind)
    return record


def lines(records: Iterable[Record]) -> str:
    """The same as the text of a ledger."""
    return "".join(json.dumps(record.to_json()) + "\n" for record in records)


def accuracy(place: Coordinate, fold: int, repeat: int) -> float:
    """A number like the paper's: a level per dataset, a gain per method, noise shared by all methods of a trial."""
    shared = random.Random(f"{place.dataset} {fold} {repeat}").gauss(0, 0.04)
    own = random.Random(f"{place} {fold} {repeat}").gauss(0, 0.03)
    gain = GAINS.get(place.augmenter.partition(":")[0], 0.02) - (0.01 if ":" in place.augmenter else 0)
    gain -= 0.01 * (place.readout != "mean")
    level = LEVELS.get(place.dataset, 0.7) + 0.01 * place.k**0.5 + gain
    return round(min(1.0, max(0.0, level + shared + own)), 4)


def ledger(
    places: Iterable[Coordinate] = (),
    folds: int = 10,
    repeats: int = 3,
    value: Callable[[Coordinate, int, int], float | None] = accuracy,
    **changes: Any,
) -> list[Record]:
    """A whole ledger: provenance, plan, cells and trials; `value` gives an accuracy, or None for a failure."""
    places = list(places) or list(full())
    cells = [cell(place, **changes) for place in places]
    records: list[Record] = [PROVENANCE, plan([one.key for one in cells], range(folds), range(repeats))]
    for place, described in zip(places, cells, strict=True):
        records.append(described)
        for fold in range(folds):
            records += [trial(described.key, fold, r, value(place, fold, r)) for r in range(repeats)]
    return records


def tuned(places: Iterable[Coordinate], how: str = "nested", **kwargs: Any) -> list[Record]:
    """The same with tuned settings, a little better: those of each fold, or the same for all."""

    def better(place: Coordinate, fold: int, repeat: int) -> float:
        return round(accuracy(place, fold, repeat) + 0.01, 4)

    facts: dict[str, Any] = {"tuned": True, "tuned_how": how}
    if how == "nested":
        facts["by_fold"] = {str(fold): {"training": {"lr": 0.003 + fold / 1000}} for fold in range(10)}
    else:
        facts["training"] = {**TRAINING, "lr": 0.003}
    return ledger(places, value=better, **facts, **kwargs)
