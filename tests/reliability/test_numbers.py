"""Numbers that go wrong and data at the edge: a result, or one clear line that says when, where and with what."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from bench.datasets.base import GraphSet
from bench.datasets.importing import import_path
from bench.execution.trial import TrialRunner, evaluate
from bench.learning.fast.engine import FastEngine
from bench.learning.problem import Problem
from bench.learning.reference import ReferenceEngine
from bench.plan.cells import Trial
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.protocol.training import Training
from bench.registry import UserError
from models import BACKBONES, READOUTS
from models.fit import Diverged

ENGINES = {"fast": FastEngine, "reference": ReferenceEngine}
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
NO_EDGE = torch.empty(2, 0, dtype=torch.long)


def graph(nodes: int = 3, label: int = 0, weights: float | None = None, **more: Any) -> Data:
    edges = PATH if nodes >= 3 else NO_EDGE
    made = Data(**{"x": torch.ones(nodes, 2), "edge_index": edges, "y": torch.tensor([label]), **more}, num_nodes=nodes)
    if weights is not None:
        made.edge_weight = torch.full((edges.shape[1],), weights)
    return made


def fit(engine: str, graphs: list[Data], augmenter: str = "none", backbone: str = "gcn", **training: Any) -> Any:
    problem = Problem(
        graphs=graphs,
        num_classes=2,
        backbone=BACKBONES.resolve(backbone),
        readout=READOUTS.resolve("mean"),
        augmenter=AUGMENTERS.create(augmenter),
        training=Training(**{"epochs": 3, **training}),
        init_seed=1,
        augment_seed=2,
        pretrain_seed=3,
        shared_seed=lambda key: 4,
        featurize=lambda graph: graph,
    )
    return ENGINES[engine]().fit([problem])[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("epoch", [1, 7, 50, 51, 60])
def test_divergence_names_the_epoch_at_which_it_happens(
    engine: str, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights are spoilt after a known number of steps, so that the next epoch is the first without a number."""
    from bench.learning.fast.ops.parameters import Parameters

    def spoiling(step: Callable[..., Any], spoil: Callable[[Any], None]) -> Callable[..., Any]:
        taken = 0

        def stepped(self: Any, *words: Any) -> Any:
            nonlocal taken
            done = step(self, *words)
            taken += 1
            if taken == epoch - 1:
                spoil(self)
            return done

        return stepped

    def spoil_fast(parameters: Any) -> None:
        for name, value in vars(parameters).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                getattr(parameters, name).fill_(math.nan)

    def spoil_torch(optimizer: torch.optim.Optimizer) -> None:
        with torch.no_grad():
            for value in optimizer.param_groups[0]["params"]:
                value.fill_(math.nan)

    graphs = [graph(label=n % 2) for n in range(4)]
    if epoch == 1:
        graphs[0].x = torch.full((3, 2), math.nan)
    monkeypatch.setattr(Parameters, "step", spoiling(Parameters.step, spoil_fast))
    monkeypatch.setattr(torch.optim.Adam, "step", spoiling(torch.optim.Adam.step, spoil_torch))
    found = fit(engine, graphs, epochs=60)
    assert isinstance(found, Diverged) and f"nan at epoch {epoch};" in str(found), found


def test_a_record_of_divergence_names_the_trials_settings(tmp_path: Path) -> None:
    grid = Grid("test", product(["synthetic"], ["dropedge:p=0.4"]), training={"epochs": 5, "lr": 0.5})
    cell = Planner(tmp_path, "fast").plan(grid).cells[0]

    class Diverging:
        name = "fast"

        def fit(self, problems: Any) -> list[Any]:
            return [Diverged("the training loss is nan at epoch 4")]

    record = TrialRunner(tmp_path, Diverging()).run([(cell, Trial(3, 1))])[0]
    assert (record.status, record.cell, record.fold, record.repeat) == ("diverged", cell.key, 3, 1)
    for words in ("epoch 4", "synthetic k=10", "dropedge:p=0.4", "gcn mean", "5 epochs", "lr=0.5"):
        assert words in str(record.reason)
    assert "\n" not in str(record.reason)


def test_weights_spoilt_by_the_last_step_are_no_result() -> None:
    """The last loss was finite, but what it led to is not: class 0 for everything would look like an accuracy."""
    found = fit("fast", [graph(label=n % 2) for n in range(4)])
    with torch.no_grad():
        next(found.predictor.model.head.parameters()).fill_(math.nan)
    with pytest.raises(Diverged, match="no number for 2 of 2 graphs; lower the learning rate"):
        evaluate(found.predictor, [graph(label=0), graph(label=1)], 2)


EDGES = {
    "one node each": [graph(1, n % 2) for n in range(4)],
    "one node beside others": [graph(3, 0), graph(1, 1), graph(3, 1), graph(1, 0)],
    "no edge": [graph(2, n % 2) for n in range(4)],
    "one class alone": [graph(3, 0) for _ in range(4)],
    "one graph": [graph(3, 1)],
    "weights of zero": [graph(3, n % 2, weights=0.0) for n in range(4)],
    "weights below zero": [graph(3, n % 2, weights=-2.0) for n in range(4)],
    "features near the largest number": [graph(3, n % 2, x=torch.full((3, 2), 3e38)) for n in range(4)],
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("backbone", ["gcn", "gat", "gin", "sage"])
@pytest.mark.parametrize("case", EDGES)
def test_graphs_at_the_edge_give_a_result_or_one_line(case: str, backbone: str, engine: str) -> None:
    for augmenter in ("none", "dropnode", "dropedge", "softedge", "m-mixup", "g-mixup"):
        found = fit(engine, [one.clone() for one in EDGES[case]], augmenter, backbone)
        if isinstance(found, Exception):
            assert isinstance(found, Diverged | UserError), (augmenter, repr(found))
            assert str(found).isprintable()
        else:
            assert math.isfinite(found.loss), augmenter


BAD = {
    "has no node": graph(0),
    "a feature that is not a finite number": graph(x=torch.tensor([[1.0], [math.nan], [1.0]])),
    "an edge to a node outside 0..2": graph(edge_index=torch.tensor([[0], [3]])),
    "an edge to a node outside": graph(edge_index=torch.tensor([[0], [-1]])),
    "features of shape": graph(x=torch.ones(2, 2)),
    "no class": graph(y=torch.tensor([0.5])),
    "no class, a single": graph(y=None),
    "no edge_index": graph(edge_index=torch.ones(2, 2)),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_datasets_bad_graph_is_named(reason: str) -> None:
    with pytest.raises(UserError, match=f"MINE: graph 1 has .*{reason.removeprefix('has ')}.*; fix the dataset"):
        GraphSet.from_graphs("MINE", [graph(), BAD[reason], graph(label=1)])


@pytest.mark.parametrize(
    ("graphs", "reason"),
    [
        ([], "0 graphs of 0 classes"),
        ([graph(), graph()], "2 graphs of 1 classes"),
        ([graph(), graph(label=1, x=torch.ones(3, 5))], "different widths"),
    ],
)
def test_a_dataset_without_a_task_is_refused(graphs: list[Data], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        GraphSet.from_graphs("MINE", graphs)


def big_set(nodes: int) -> dict[str, str]:
    """Twenty-three small graphs and one path of many nodes."""
    small, starts = 23, [1 + 3 * n for n in range(23)]
    edges = [f"{a}, {a + 1}\n{a + 1}, {a + 2}\n" for a in starts]
    edges += [f"{a}, {a + 1}\n" for a in range(3 * small + 1, 3 * small + nodes)]
    indicator = [f"{1 + n // 3}\n" for n in range(3 * small)] + [f"{small + 1}\n"] * nodes
    return {
        "A": "".join(edges),
        "graph_indicator": "".join(indicator),
        "graph_labels": "".join(f"{n % 2}\n" for n in range(small + 1)),
    }


def test_a_graph_of_100000_nodes_is_read_and_trained(
    tmp_data_root: Path, write_archive: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import_path(write_archive("BIG", big_set(100_000)), tmp_data_root)
    grid = Grid("test", product(["tu:name=BIG"], ["none", "dropedge"], k=[12]), training={"epochs": 2})
    runner = TrialRunner(tmp_data_root, FastEngine())
    for cell in Planner(tmp_data_root, "fast").plan(grid).cells:
        records = runner.run([(cell, Trial(fold, 0)) for fold in (0, 1)])
        assert [record.status for record in records] == ["done", "done"], records


def test_a_fold_without_a_class_is_trained_and_scored(
    tmp_data_root: Path, write_archive: Callable[..., Path], tiny_files: Callable[..., dict[str, str]]
) -> None:
    """A class of one graph is missing from nine test parts and from one training part."""
    labels = "".join(f"{0 if n == 5 else 1 + n % 2}\n" for n in range(40))
    import_path(write_archive(files={**tiny_files(), "graph_labels": labels}), tmp_data_root)
    grid = Grid("test", product(["tu:name=TINY"], ["none", "gdm-rand", "g-mixup", "m-mixup"]), training={"epochs": 2})
    cells = Planner(tmp_data_root, "fast").plan(grid).cells
    runner = TrialRunner(tmp_data_root, FastEngine())
    records = runner.run([(cell, Trial(fold, 0)) for cell in cells for fold in range(10)])
    assert {record.status for record in records} == {"done"}, [r for r in records if not r.done]
    assert all(0 <= record.balanced_accuracy <= 1 for record in records)
    assert len({record.labels for record in records}) == 2  # the fold that tests the lone graph has none to train on


def test_features_made_from_structure_stay_finite_without_edges() -> None:
    from bench.protocol.features import FEATURES, Featurizer

    for kind in set(FEATURES) - {"native"}:
        made = Featurizer.fit(kind, [graph(2), graph(1)])(graph(2))
        assert made.x.shape[0] == 2 and bool(np.isfinite(made.x.numpy()).all())
