"""Results of another format keep their digits under new keys, or stay behind with a reason."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.datasets import load_dataset
from bench.datasets.legacy import legacy_fingerprint
from bench.plan.planner import Planner
from bench.protocol.training import preset
from bench.results.ledger import LedgerState
from bench.results.records import CellRecord
from bench.results.rekey import rekey
from tables.specs import Coordinate

AT = Coordinate("digits", 2, "dropedge")


def first_format(root: Path) -> list[dict[str, Any]]:
    """A cell, a plan and a trial as the first version wrote them: no learner, no device, counts for a fingerprint."""
    facts = Planner(root).cell(AT, preset("standard")).to_json()
    del facts["learner"]
    for name in ("learner", "device", "splits"):
        facts["versions"].pop(name, None)
    facts["versions"]["dataset"] = legacy_fingerprint(load_dataset("digits", root))
    kept = ("epochs", "lr", "weight_decay", "select")
    facts["training"] = {"preset": "paper", **{name: facts["training"][name] for name in kept}}
    for name in ("norm", "residual"):  # settings that were added since
        facts["backbone"]["settings"].pop(name, None)
    trial = {"type": "trial", "cell": "old", "fold": 1, "repeat": 0, "status": "done", "accuracy": 0.625, "loss": 0.1}
    plan = {"type": "plan", "grid": "x", "cells": ["old"], "folds": [0, 1], "repeats": [0], "skipped": []}
    return [{"type": "cell", "key": "old", **facts}, plan, trial]


def changed(lines: list[dict[str, Any]], group: str, **changes: Any) -> list[dict[str, Any]]:
    held = copy.deepcopy(lines)
    held[0][group] |= changes
    return held


def test_the_first_format_is_carried_over(tmp_path: Path) -> None:
    found = rekey(first_format(tmp_path), tmp_path)
    state = LedgerState.of(found.records)
    cell = Planner(tmp_path).cell(AT, preset("standard"))
    assert found.keys == {"old": cell.key} and not found.refused and found.trials == 1
    assert state.cells == {cell.key: cell} and state.plans[0].cells == (cell.key,)
    (record,) = state.trials[cell.key].values()
    assert (record.accuracy, record.loss, record.fold) == (0.625, 0.1, 1)


def test_what_is_carried_over_is_carried_over_again(tmp_path: Path) -> None:
    once = rekey(first_format(tmp_path), tmp_path)
    twice = rekey([record.to_json() for record in once.records], tmp_path)
    assert LedgerState.of(twice.records) == LedgerState.of(once.records)


@pytest.mark.parametrize(
    ("group", "changes", "reason"),
    [
        ("versions", {"dataset": "other"}, "is not the data that was used"),
        ("versions", {"torch": "1.0"}, "versions.torch was 1.0"),
        ("versions", {"augmenter": 0}, "versions.augmenter was 0"),
        ("versions", {"engine-version": 7}, "versions.engine-version was 7"),
        ("augmenter", {"settings": {"p": 0.3, "features": "carry"}}, "augmenter.settings.p was 0.3"),
        ("augmenter", {"label": "no-such-method"}, "unknown augmenter"),
        ("training", {"epochs": 0}, "epochs=0 is not valid"),
        ("backbone", {"label": "gcn:dropout=0.3"}, "started from different weights"),
    ],
)
def test_a_cell_that_would_come_out_otherwise_stays_behind(
    tmp_path: Path, group: str, changes: Mapping[str, Any], reason: str
) -> None:
    found = rekey(changed(first_format(tmp_path), group, **changes), tmp_path)
    assert not found.keys and found.trials == 0
    assert [reason in told for told in found.refused] == [True]


def test_a_training_that_was_changed_gets_its_name(tmp_path: Path) -> None:
    found = rekey(changed(first_format(tmp_path), "training", lr=0.1), tmp_path)
    (cell,) = LedgerState.of(found.records).cells.values()
    assert cell.training == replace(preset("standard"), preset="standard+lr=0.1", lr=0.1)


def test_a_training_before_it_named_its_head_had_a_linear_one(tmp_path: Path) -> None:
    """Under the name of the time or today's; a training that names its head is what it says."""
    lines = [record.to_json() for record in rekey(first_format(tmp_path), tmp_path).records]
    for name in ("head", "start", "loss", "batch"):
        del lines[0]["training"][name]
    cell = Planner(tmp_path).cell(AT, preset("standard"))
    for former in ("standard", "paper"):
        assert list(rekey(changed(lines, "training", preset=former), tmp_path).keys.values()) == [cell.key]
    letter = CellRecord("x", Planner(tmp_path).cell(AT, preset("paper"))).to_json()
    assert list(rekey([letter], tmp_path).keys.values()) == [Planner(tmp_path).cell(AT, preset("paper")).key]
    assert cell.key != Planner(tmp_path).cell(AT, preset("paper")).key
