"""Ledgers of any size in the shape of real ones: seeded numbers, never measured, for tests of load only."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.plan.cells import Cell
from bench.protocol.training import Training

DATASETS = ("PROTEINS", "NCI1", "DD", "IMDB-BINARY", "IMDB-MULTI", "REDDIT-MULTI-5K")
BACKBONES = ("gcn", "gat", "gin", "sage")
READOUTS = ("mean", "add", "max")
RATES = (2, 3, 5, 10, 20)
EPOCHS = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 55, 77, 108, 150, 210, 294, 410, 573, 800)


def cells(count: int) -> Iterator[dict[str, Any]]:
    """Different cells: plain training and DropEdge with ever another probability, over all axes."""
    for number in range(count):
        at, dataset = divmod(number, len(DATASETS))
        at, rate = divmod(at, len(RATES))
        at, backbone = divmod(at, len(BACKBONES))
        turn, readout = divmod(at, len(READOUTS))
        p = round(turn / 1000, 3)
        label = f"dropedge:p={p}" if turn else "none"
        facts = {
            "dataset": DATASETS[dataset],
            "features": "constant" if dataset > 2 else "native",
            "splits": "COLLABORATIVE_1" if dataset > 2 else "CHEMICAL",
            "k": RATES[rate],
            "learner": {"name": "gnn", "settings": {}, "label": "gnn"},
            "augmenter": {"name": label.partition(":")[0], "settings": {"p": p} if turn else {}, "label": label},
            "backbone": {
                "name": BACKBONES[backbone],
                "settings": {"dropout": 0.0, "layers": 4, "width": 64},
                "label": BACKBONES[backbone],
            },
            "readout": {"name": READOUTS[readout], "settings": {}, "label": READOUTS[readout]},
            "training": asdict(Training()),
            "versions": {
                **{"protocol": 1, "engine": "fast", "engine-version": 1, "augmenter": 1, "backbone": 1, "readout": 1},
                **{"torch": "2.13", "torch-geometric": "2.8", "dataset": f"print-of-{dataset}"},
            },
            "tuned": False,
        }
        yield {"type": "cell", "key": Cell.from_json(facts).key, **facts}


def trial(key: str, fold: int, repeat: int, rng: random.Random) -> dict[str, Any]:
    """As long as a line of a real run, curve included."""
    accuracy = round(0.4 + 0.4 * rng.random(), 4)
    return {
        **{"type": "trial", "cell": key, "fold": fold, "repeat": repeat, "status": "done", "reason": None},
        **{"accuracy": accuracy, "balanced_accuracy": accuracy, "macro_f1": accuracy, "loss": rng.random()},
        "labels": 20,
        "seconds": {"augment": 0.0048, "train": round(rng.random(), 4), "evaluate": 0.0139},
        "generated": {"count": 21, "density": round(rng.random(), 6), "density_original": 0.27},
        "curve": [[epoch, round(14 * rng.random(), 3)] for epoch in EPOCHS],
        "finished": f"2026-01-{1 + fold:02d}T{repeat % 24:02d}:00:00+00:00",
        "provenance": "p1",
    }


def write(path: Path, count: int, folds: int = 10, repeats: int = 3) -> int:
    """A ledger of that many cells, breadth first over trials as a run leaves it; the number of its trials."""
    rng, described = random.Random(0), list(cells(count))
    keys = [cell["key"] for cell in described]
    origin = {"type": "provenance", "id": "p1", "augbench": "0.1.0", "commit": None, "dirty": None}
    plan = {"type": "plan", "grid": "load", "cells": keys, "folds": list(range(folds)), "repeats": list(range(repeats))}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for record in (origin, *described, {**plan, "skipped": [], "at": "2026-01-01T00:00:00+00:00"}):
            file.write(json.dumps(record, separators=(",", ":")) + "\n")
        for repeat in range(repeats):
            for fold in range(folds):
                for key in keys:
                    file.write(json.dumps(trial(key, fold, repeat, rng), separators=(",", ":")) + "\n")
    return count * folds * repeats
