"""G-Mixup: presets, counts, labels, features and what happens to empty samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters import AUGMENTERS, GMixup
from augmenters.base import Context
from bench.registry import UserError


def complete(n: int, label: int) -> Data:
    edges = torch.tensor([(i, j) for i in range(n) for j in range(n) if i != j]).T
    return Data(x=torch.ones(n, 1), edge_index=edges, y=torch.tensor([label]))


def path(n: int, label: int) -> Data:
    i = torch.arange(n - 1)
    edges = torch.cat([torch.stack([i, i + 1]), torch.stack([i + 1, i])], dim=1)
    return Data(x=torch.ones(n, 1), edge_index=edges, y=torch.tensor([label]))


def bare(n: int, label: int) -> Data:
    return Data(x=torch.ones(n, 1), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([label]))


GRAPHS = [complete(n, 0) for n in (4, 5, 6)] + [path(n, 1) for n in (5, 9, 30)]


def context(classes: int = 2) -> Context:
    def classify(graphs: object, epochs: int) -> torch.Tensor:
        raise RuntimeError("G-Mixup needs no classifier")

    return Context(classes, classify, lambda key: np.random.default_rng(0))


def test_presets_differ_as_the_paper_and_its_code() -> None:
    paper, code = GMixup(), GMixup(preset="code")
    names = ("low", "high", "ratio", "size", "estimator")
    assert [paper.value(n) for n in names] == [0.1, 0.2, 0.2, "mean", "lg"]
    assert [code.value(n) for n in names] == [0.005, 0.01, 0.15, "median", "usvt"]
    assert AUGMENTERS.create("g-mixup:preset=code,ratio=0.5,low=none").value("ratio") == 0.5


@pytest.mark.parametrize(("n", "ratio", "count"), [(20, None, 4), (4, None, 1), (1, 0.2, 1), (20, 0.5, 10)])
def test_at_least_one_graph_is_made(n: int, ratio: float | None, count: int) -> None:
    graphs = [path(5, i % 2) for i in range(n)]
    assert len(GMixup(ratio=ratio)(graphs, np.random.default_rng(0))) == count


@pytest.mark.parametrize(("preset", "size"), [("paper", round(59 / 6)), ("code", round(5.5))])
def test_graphons_have_the_mean_or_median_size(preset: str, size: int) -> None:
    samples = AUGMENTERS.create(f"g-mixup:preset={preset}").draw(GRAPHS, np.random.default_rng(0), context())
    assert all(len(sample.graphon.probabilities) == size for sample in samples)


@pytest.mark.parametrize("preset", ["paper", "code"])
def test_labels_are_mixed_with_the_lambda_of_the_preset(preset: str) -> None:
    augmenter = AUGMENTERS.create(f"g-mixup:preset={preset},ratio=10")
    shares = [float(g.y.min()) for g in augmenter(GRAPHS, np.random.default_rng(0))]
    assert augmenter.value("low") <= min(shares) and max(shares) <= augmenter.value("high")
    assert len({round(share, 6) for share in shares}) == 10  # ten lambdas, whatever the number of graphs


def test_constant_features_stay_constant_and_isolated_nodes_are_gone() -> None:
    for graph in GMixup(ratio=5)(GRAPHS, np.random.default_rng(1)):
        torch.testing.assert_close(graph.x, torch.ones(graph.num_nodes, 1))
        assert graph.edge_index.unique().tolist() == list(range(graph.num_nodes))


def test_features_keep_their_positions() -> None:
    graphs = [complete(3, 0), complete(3, 1)]
    for graph, high in zip(graphs, (1.0, 2.0), strict=True):
        graph.x = torch.tensor([[high], [10 * high], [100 * high]])
    made = GMixup(estimator="usvt")(graphs, np.random.default_rng(0))[0]
    share = made.y[0, 0] * 1.0 + made.y[0, 1] * 2.0
    torch.testing.assert_close(made.x, share * torch.tensor([[1.0], [10.0], [100.0]]))


def test_empty_samples_are_redrawn_and_then_given_their_likeliest_edge() -> None:
    rare = [path(60, label) for label in (0, 1)]
    for graph in rare:
        graph.edge_index = graph.edge_index[:, [0, 59]]  # one edge among 1770 pairs
    notes = context()
    made = GMixup(ratio=10)(rare, np.random.default_rng(0), notes)
    assert len(made) == 20 and all(graph.num_edges >= 2 for graph in made)
    never = context()
    made = GMixup(ratio=2)([bare(3, 0), bare(3, 1)], np.random.default_rng(0), never)
    assert never.notes == {"fallback_empty_graph": 4.0}
    assert [graph.num_nodes for graph in made] == [2] * 4


def test_single_nodes_give_single_nodes() -> None:
    made = GMixup(ratio=1)([bare(1, 0), bare(1, 1)], np.random.default_rng(0))
    assert [(graph.num_nodes, graph.num_edges) for graph in made] == [(1, 0)] * 2


def test_one_class_is_mixed_with_itself_and_counted() -> None:
    notes = context()
    made = GMixup(ratio=1)(GRAPHS[:3], np.random.default_rng(0), notes)
    assert notes.notes == {"fallback_single_class": 1.0}
    assert all(graph.y.tolist() == [[1.0, 0.0]] for graph in made)


def test_weighted_originals_get_weights_of_one() -> None:
    graphs = [graph.clone() for graph in GRAPHS]
    for graph in graphs:
        graph.edge_weight = torch.rand(graph.num_edges)
    assert all(torch.equal(g.edge_weight, torch.ones(g.num_edges)) for g in GMixup()(graphs, np.random.default_rng(0)))


def test_a_range_in_the_wrong_order_is_refused() -> None:
    with pytest.raises(UserError, match=r"low=0\.5 is above high=0\.2"):
        GMixup(low=0.5)
