"""Edge weights of somebody's own dataset: kept through cleaning, used by both engines, refused with a reason."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from augmenters.base import Context, GraphAugmenter
from bench.datasets import is_weighted, load_dataset
from bench.datasets.base import GraphSet
from bench.execution.trial import TrialRunner, engines
from bench.plan.cells import Cell, Trial
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.registry import UserError

EDGES = [[0, 1, 1, 2, 3], [1, 0, 2, 3, 3]]  # an edge in both directions, two in one, a self loop


def graph(label: int = 0, weight: object = None, edges: list[list[int]] | None = None) -> Data:
    made = Data(edge_index=torch.tensor(EDGES if edges is None else edges), y=torch.tensor(label), num_nodes=4)
    if weight is not None:
        made.edge_weight = weight if isinstance(weight, torch.Tensor) else torch.tensor(weight)
    return made


def test_both_directions_of_an_edge_have_its_weight() -> None:
    given = graph(0, [0.5, 0.5, 2.0, 3.0, 9.0])
    data = GraphSet.from_graphs("OWN", [given, graph(1)])
    first, second = data.graphs
    assert data.weighted
    assert first.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    assert first.edge_weight.tolist() == [0.5, 0.5, 2, 2, 3, 3]
    assert second.edge_weight.tolist() == [1.0] * 6, "where one graph has weights, the others' edges weigh 1"
    assert given.edge_weight.tolist() == [0.5, 0.5, 2, 3, 9] and given.num_edges == 5


@pytest.mark.parametrize("weight", [[1.0] * 5, [1.0, 1.0, 1.0, 1.0, 7.0], [1, 1, 1, 1, 1]])
def test_weights_of_one_are_no_weights(weight: list[float]) -> None:
    data = GraphSet.from_graphs("OWN", [graph(0, weight), graph(1)])
    assert not data.weighted and all(each.get("edge_weight") is None for each in data.graphs)
    assert data.fingerprint == GraphSet.from_graphs("OWN", [graph(0), graph(1)]).fingerprint


def test_a_column_of_whole_numbers_is_a_weight_too() -> None:
    column = torch.tensor([[2], [2], [3], [0], [1]])
    (first, _) = GraphSet.from_graphs("OWN", [graph(0, column), graph(1)]).graphs
    assert first.edge_weight.tolist() == [2, 2, 3, 3, 0, 0] and first.edge_weight.dtype == torch.float32


REFUSED = {
    "negative": ([1.0, 1, -0.5, 1, 1], "has a negative edge weight"),
    "not a number": ([1.0, 1, float("nan"), 1, 1], "has an edge weight that is not a finite number"),
    "infinite": ([1.0, 1, float("inf"), 1, 1], "not a finite number"),
    "too large": (torch.tensor([1, 1, 1e300, 1, 1], dtype=torch.float64), "not a finite number"),
    "conflicting": ([1.0, 2, 1, 1, 1], "gives the edge between nodes 0 and 1 the weights 1 and 2"),
    "too few": ([1.0, 1, 1, 1], r"has an edge_weight of shape \(4,\) for 5 edges"),
    "two columns": (torch.ones(5, 2), r"has an edge_weight of shape \(5, 2\) for 5 edges"),
    "complex": (torch.ones(5, dtype=torch.complex64), "not one number for each"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_weights_are_refused_by_graph_and_reason(case: str) -> None:
    weight, reason = REFUSED[case]
    with pytest.raises(UserError, match=rf"OWN: graph 1 .*{reason}.*; fix the dataset") as caught:
        GraphSet.from_graphs("OWN", [graph(0), graph(1, weight)])
    assert "\n" not in str(caught.value)


def test_parallel_edges_must_agree() -> None:
    doubled = [[0, 0], [1, 1]]
    (first, _) = GraphSet.from_graphs("OWN", [graph(0, [2.0, 2.0], doubled), graph(1)]).graphs
    assert first.edge_weight.tolist() == [2, 2]
    with pytest.raises(UserError, match="the weights 2 and 3, but it can have only one"):
        GraphSet.from_graphs("OWN", [graph(0, [2.0, 3.0], doubled), graph(1)])


OWN = '''
import numpy as np
import torch
from torch_geometric.data import Data
from bench.datasets.base import Dataset, DatasetInfo

class Plain(Dataset):
    """Rings and stars; a class by the weights of its edges."""
    info_weighted = None

    def info(self, root):
        return DatasetInfo("own", True, False, weighted=self.info_weighted)

    def load(self, root):
        return [self.graph(number, np.random.default_rng(number)) for number in range(60)]

    def graph(self, number, rng):
        nodes = 6 + number % 5
        ends = np.array([[i, (i + 1) % nodes] for i in range(nodes)] + [[0, 2], [1, 4]]).T
        graph = Data(edge_index=torch.tensor(ends), y=torch.tensor(number % 2), num_nodes=nodes)
        weight = torch.tensor(rng.uniform(0.2, 1, ends.shape[1]) * (1 + number % 2), dtype=torch.float32)
        return self.weigh(graph, weight)

    def weigh(self, graph, weight):
        return graph

class Weighted(Plain):
    def weigh(self, graph, weight):
        graph.edge_weight = weight
        return graph
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with both; always of the same name, because seeds are made of it."""
    package = tmp_path / "own_weighted_set"
    package.mkdir()
    for name in (package.name, f"{package.name}.graphs"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (package / "__init__.py").touch()
    (package / "graphs.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return f"{package.name}.graphs"


def cell(dataset: str, augmenter: str, engine: str, backbone: str = "gcn") -> Cell:
    training = {"epochs": 8}
    grid = Grid("g", product([dataset], [augmenter], [3], backbones=[backbone]), training=training, features="degree")
    return Planner(Path("none"), engine).plan(grid).cells[0]


def losses(dataset: str, augmenter: str, backbone: str = "gcn") -> dict[str, float]:
    """Of the same trial in each engine."""
    found = {}
    for name, engine in engines().items():
        (record,) = TrialRunner(Path("none"), engine()).run([(cell(dataset, augmenter, name, backbone), Trial(0, 0))])
        assert record.done, record.reason
        found[name] = record.loss
    return found


def assert_they_count(weighted: dict[str, float], plain: dict[str, float]) -> None:
    """Engines agree up to rounding, and the weights make far more of a difference than that."""
    rounding = abs(weighted["fast"] - weighted["reference"])
    assert rounding < 1e-4 * weighted["reference"]
    assert abs(weighted["reference"] - plain["reference"]) > max(20 * rounding, 1e-5)


@pytest.mark.parametrize("augmenter", ["none", "dropedge", "dropnode", "softedge", "gdm-rand", "g-mixup", "m-mixup"])
def test_weights_count_in_both_engines_and_in_every_method(augmenter: str, own: str) -> None:
    weighted, plain = losses(f"{own}:Weighted", augmenter), losses(f"{own}:Plain", augmenter)
    assert_they_count(weighted, plain)


@pytest.mark.parametrize("backbone", ["gin", "sage"])
def test_weights_count_in_every_backbone_that_reads_them(backbone: str, own: str) -> None:
    weighted, plain = losses(f"{own}:Weighted", "dropedge", backbone), losses(f"{own}:Plain", "dropedge", backbone)
    assert_they_count(weighted, plain)


def test_a_backbone_that_does_not_read_weights_is_refused_at_planning(own: str) -> None:
    assert is_weighted(f"{own}:Weighted", Path("none")) and not is_weighted(f"{own}:Plain", Path("none"))
    assert cell(f"{own}:Plain", "none", "fast", "gat")
    with pytest.raises(UserError, match="Weighted has edge weights, which gat does not read; use gcn, gin or sage"):
        cell(f"{own}:Weighted", "none", "fast", "gat")


def test_a_dataset_that_says_the_wrong_thing_of_its_weights_fails_in_one_line(
    own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_dataset(f"{own}:Weighted", Path("none"))  # imports the module
    monkeypatch.setattr(sys.modules[own].Weighted, "info_weighted", False)
    for name, engine in engines().items():
        (record,) = TrialRunner(Path("none"), engine()).run(
            [(cell(f"{own}:Weighted", "none", name, "gat"), Trial(0, 0))]
        )
        assert record.status == "failed"
        assert re.match(r"GAT ignores edge weights, .*use gcn, gin or sage", str(record.reason))


def weights_of(graphs: list[Data]) -> dict[tuple[int, int, int], float]:
    """The weight of each directed edge, nodes named by their feature."""
    return {
        (number, int(each.x[a]), int(each.x[b])): float(weight)
        for number, each in enumerate(graphs)
        for a, b, weight in zip(*each.edge_index.tolist(), each.edge_weight.tolist(), strict=True)
    }


@pytest.mark.parametrize(("name", "scale"), [("dropedge", False), ("dropnode", False), ("softedge", True)])
def test_what_stays_keeps_its_weight(name: str, scale: bool, own: str) -> None:
    data = load_dataset(f"{own}:Weighted", Path("none"))
    graphs = [Data(**dict(each), x=torch.arange(int(each.num_nodes)).view(-1, 1)) for each in data.graphs[:9]]
    augmenter = AUGMENTERS.create(name)
    assert isinstance(augmenter, GraphAugmenter)
    rng = np.random.default_rng(0)
    before, after = weights_of(graphs), weights_of(augmenter(graphs, rng, Context.standalone(graphs, rng)))
    assert after.keys() <= before.keys()
    changed = [edge for edge in after if after[edge] != before[edge]]
    assert all(after[(number, a, b)] == after[(number, b, a)] for number, a, b in after)
    assert all(after[edge] <= before[edge] for edge in after) and bool(changed) is scale
    assert scale or len(after) < len(before)


def test_graphs_made_from_weighted_ones_are_weighted(own: str) -> None:
    data = load_dataset(f"{own}:Weighted", Path("none"))
    made = AUGMENTERS.create("gdm-rand")(data.graphs[:6], np.random.default_rng(0))
    weights = torch.cat([each.edge_weight for each in made])
    assert bool(((weights >= 0.1) & (weights <= 1)).all()) and len(weights.unique()) > 2, "kept, not made 1"
