"""What the training settings of a cell mean to learners: all of it to deepsets, nothing to those that take no step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from bench.learning.problem import Fitted
from bench.protocol.training import Training

CHANGES: list[dict[str, Any]] = [
    {"head": "relu"},
    {"epochs": 6},
    {"lr": 0.1},
    {"weight_decay": 1.0},
    {"start": "pretrained"},
    {"loss": "mean"},
    {"batch": 4},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_training_reaches_deepsets_and_no_learner_without_steps(
    change: dict[str, Any], some_graphs: Callable[..., list[Data]], learn: Callable[..., Fitted]
) -> None:
    graphs = some_graphs(5)
    usual, other = Training(epochs=5), Training(**{"epochs": 5, **change})
    assert len(graphs) > 4

    def rows(name: str, training: Training, augmenter: str) -> torch.Tensor:
        return learn(name, graphs, augmenter, training=training).predictor.probabilities(graphs)

    for augmenter in ("none", "duplicate"):
        assert not torch.equal(rows("deepsets", usual, augmenter), rows("deepsets", other, augmenter))
        for name in ("size", "wl"):
            assert torch.equal(rows(name, usual, augmenter), rows(name, other, augmenter))


def test_the_head_of_the_paper_is_that_of_deepsets_too(
    some_graphs: Callable[..., list[Data]], learn: Callable[..., Fitted]
) -> None:
    graphs = some_graphs(5)
    fitted: Any = learn("deepsets", graphs, training=Training(epochs=5, head="relu")).predictor
    assert fitted.model.ending == "relu"
