"""A ledger that was never run: seeded numbers in the shape of real ones, for tests and demonstrations only."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable
from typing import Any

from tables.specs import Coordinate, full

SOCIAL = ("IMDB-BINARY", "IMDB-MULTI", "REDDIT-MULTI-5K")
LEVELS = {"PROTEINS": 0.62, "NCI1": 0.53, "DD": 0.6, "IMDB-BINARY": 0.55, "IMDB-MULTI": 0.36, "REDDIT-MULTI-5K": 0.27}
GAINS = {"none": 0.0, "dropnode": 0.01, "dropedge": 0.012, "softedge": -0.002, "g-mixup": 0.004, "gdm-acc": 0.03}
PROVENANCE = {
    "type": "provenance",
    "id": "p1",
    "augbench": "0.1.0",
    "commit": "0123456789abcdef",
    "dirty": False,
    "python": "3.11.7",
    "torch": "2.13",
    "machine": {"cpu": "a made-up processor", "cores": 2},
}


def choice(label: str) -> dict[str, Any]:
    name, _, rest = label.partition(":")
    settings = dict(item.split("=", 1) for item in rest.split(",")) if rest else {}
    return {"name": name, "settings": settings, "label": label}


def cell(place: Coordinate, **changes: Any) -> dict[str, Any]:
    """The ledger's line for one coordinate; `changes` overwrite its parts."""
    social = place.dataset in SOCIAL
    known = place.dataset in LEVELS
    facts = {
        "dataset": place.dataset,
        "features": "constant" if social else "native",
        "splits": ("COLLABORATIVE_1" if social else "CHEMICAL") if known else "stratified",
        "k": place.k,
        "augmenter": choice(place.augmenter),
        "backbone": choice(place.backbone),
        "readout": choice(place.readout),
        "training": {"preset": "paper", "epochs": 800, "lr": 0.01, "weight_decay": 0.0, "select": "last"},
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
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    return {"type": "cell", "key": key, **facts}


def trial(key: str, fold: int, repeat: int, accuracy: float | None, **changes: Any) -> dict[str, Any]:
    done = accuracy is not None
    return {
        "type": "trial",
        "cell": key,
        "fold": fold,
        "repeat": repeat,
        "status": "done" if done else "failed",
        "reason": None if done else "out of memory",
        "accuracy": accuracy,
        "balanced_accuracy": accuracy - 0.05 if accuracy is not None else None,
        "macro_f1": accuracy - 0.1 if accuracy is not None else None,
        "loss": 0.5 if done else None,
        "seconds": {"augment": 0.25, "train": 2.0 + fold / 10, "evaluate": 0.1},
        "generated": {"count": 21, "density": 0.79, "density_original": 0.27},
        "labels": 20,
        "finished": f"2026-01-0{1 + repeat}T0{fold % 10}:00:00+00:00",
        "provenance": "p1",
    } | changes


def plan(keys: Iterable[str], folds: Iterable[int], repeats: Iterable[int], **changes: Any) -> dict[str, Any]:
    facts = {"type": "plan", "grid": "full", "cells": list(keys), "folds": list(folds), "repeats": list(repeats)}
    return {**facts, "skipped": [], "at": "2026-01-01T00:00:00+00:00"} | changes


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
) -> list[dict[str, Any]]:
    """A whole ledger: provenance, plan, cells and trials; `value` gives an accuracy, or None for a failure."""
    places = list(places) or list(full())
    cells = [cell(place, **changes) for place in places]
    records: list[dict[str, Any]] = [PROVENANCE, plan([c["key"] for c in cells], range(folds), range(repeats))]
    for place, line in zip(places, cells, strict=True):
        records.append(line)
        for fold in range(folds):
            records += [trial(line["key"], fold, r, value(place, fold, r)) for r in range(repeats)]
    return records


def tuned(places: Iterable[Coordinate], how: str = "nested", **kwargs: Any) -> list[dict[str, Any]]:
    """The same with tuned settings, a little better: those of each fold, or the same for all."""

    def better(place: Coordinate, fold: int, repeat: int) -> float:
        return round(accuracy(place, fold, repeat) + 0.01, 4)

    facts: dict[str, Any] = {"tuned": True, "tuned_how": how}
    if how == "nested":
        facts["by_fold"] = {str(fold): {"training": {"lr": 0.003 + fold / 1000}} for fold in range(10)}
    else:
        facts["training"] = {"preset": "paper", "epochs": 800, "lr": 0.003, "weight_decay": 1e-5, "select": "last"}
    return ledger(places, value=better, **facts, **kwargs)
