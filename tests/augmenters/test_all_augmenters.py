"""What holds for every augmenter that makes graphs, whatever the graphs and the seed."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

import augmenters
from augmenters import AUGMENTERS, gdm, s_mixup
from augmenters.base import Augmenter, Context, GraphAugmenter, TrainingView, count_classes, label_distribution
from augmenters.functional import any_weighted, density, undirected_edge_ids
from bench.registry import UserError

MAKERS = [name for name in AUGMENTERS.names() if issubclass(AUGMENTERS.load(name), GraphAugmenter)]
CLASSES = 3


@st.composite
def labeled_graphs(draw: st.DrawFn) -> list[Data]:
    weighted = draw(st.booleans())
    graphs = []
    for _ in range(draw(st.integers(1, 6))):
        n = draw(st.integers(1, 8))
        bits = draw(st.integers(0, 2 ** (n * (n - 1) // 2) - 1))
        pairs = [pair for k, pair in enumerate((i, j) for j in range(n) for i in range(j)) if bits >> k & 1]
        both = torch.tensor(pairs + [(j, i) for i, j in pairs], dtype=torch.long).reshape(-1, 2).T
        graph = Data(x=torch.ones(n, 2), edge_index=both, y=torch.tensor([draw(st.integers(0, CLASSES - 1))]))
        if weighted:
            graph.edge_weight = torch.full((2 * len(pairs),), 0.5)
        graphs.append(graph)
    return graphs


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The properties hold whether or not the auto-encoder has learned anything."""
    monkeypatch.setattr(gdm, "EPOCHS", 2)
    monkeypatch.setattr(s_mixup, "EPOCHS", 2)
    yield


def context(seed: int) -> Context:
    def classify(graphs: Sequence[Data], epochs: int) -> torch.Tensor:
        logits = torch.randn(len(graphs), CLASSES, generator=torch.Generator().manual_seed(seed))
        return logits.softmax(dim=1)

    return Context(CLASSES, classify, lambda key: np.random.default_rng([seed, *key.encode()]))


def make(name: str, graphs: list[Data], seed: int) -> list[Data]:
    new: list[Data] = AUGMENTERS.create(name)(graphs, np.random.default_rng(seed), context(seed))
    return new


def same(one: Sequence[Data], other: Sequence[Data]) -> bool:
    def fields(graph: Data) -> dict[str, Any]:
        return {k: v.tolist() if isinstance(v, torch.Tensor) else v for k, v in graph.to_dict().items()}

    return [fields(a) for a in one] == [fields(b) for b in other]


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs=labeled_graphs(), seed=st.integers(0, 999))
def test_makes_proper_graphs_from_the_seed_and_leaves_the_input_alone(name: str, graphs: list[Data], seed: int) -> None:
    before = [copy.deepcopy(graph) for graph in graphs]
    torch_state = torch.get_rng_state()
    made = make(name, graphs, seed)
    assert same(graphs, before)
    assert torch.equal(torch_state, torch.get_rng_state())
    np.random.seed(0)  # the global stream of numpy must not matter
    assert same(made, make(name, graphs, seed))

    for graph in made:
        n, edges = graph.num_nodes, graph.edge_index
        assert n >= 1 and graph.x.shape == (n, 2) and torch.isfinite(graph.x).all()
        assert edges.dtype == torch.long and edges.shape[0] == 2
        assert not edges.numel() or (edges.min() >= 0 and edges.max() < n)
        pairs = list(map(tuple, edges.T.tolist()))
        assert len(set(pairs)) == len(pairs)
        weight = dict(zip(pairs, graph.get("edge_weight", torch.ones(len(pairs))).tolist(), strict=True))
        assert all(i != j and weight[j, i] == w for (i, j), w in weight.items())
        assert all(np.isfinite(w) and w >= 0 for w in weight.values())
        target = label_distribution(graph, CLASSES)
        assert target.shape == (1, CLASSES) and (target >= 0).all()
        assert target.sum().item() == pytest.approx(1.0, abs=1e-5)
    weighted = any_weighted(graphs) or AUGMENTERS.load(name).weighted
    assert all(("edge_weight" in graph) == weighted for graph in made)
    assert Batch.from_data_list(made).num_graphs == len(made)  # they all have the same fields


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("none", "duplicate")])
def test_another_seed_gives_other_graphs(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for number in range(6):
        pairs = torch.combinations(torch.arange(9)).T[:, torch.rand(36, generator=generator) < 0.5]
        edges = torch.cat([pairs, pairs.flip(0)], dim=1)
        x = torch.rand(9, 2, generator=generator)
        graphs.append(Data(x=x, edge_index=edges, y=torch.tensor([number % CLASSES])))
    assert not same(make(name, graphs, 1), make(name, graphs, 2))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 20])
def test_duplicate_makes_as_many_as_gdm(n: int) -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.full((2, 2), float(i)), edge_index=edges, y=torch.tensor([i % 2])) for i in range(n)]
    copies = make("duplicate", graphs, 0)
    assert len(copies) == len(make("gdm-rand", graphs, 0)) == 3 * -(-n // 3)
    assert same(copies, [graphs[i % n] for i in range(len(copies))])
    assert not any(copy_ is graph for copy_ in copies for graph in graphs)


def test_none_is_the_originals() -> None:
    graphs = [Data(x=torch.ones(2, 2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([1]))]
    assert same(make("none", graphs, 0), graphs)


def test_policies_of_the_offline_methods() -> None:
    for name in ("gdm-acc", "gdm-cal", "g-mixup"):
        augmenter = AUGMENTERS.create(name)
        assert (augmenter.when, augmenter.mode, augmenter.labels) == ("offline", "append", "mixed")
        assert (augmenter.features, augmenter.weight) == ("carry", 1.0)
    assert (AUGMENTERS.create("duplicate").mode, AUGMENTERS.create("duplicate").labels) == ("append", "kept")


def test_every_public_name_is_an_augmenter_or_its_base() -> None:
    for name in augmenters.__all__:
        thing = getattr(augmenters, name)
        assert thing in (AUGMENTERS, Context, TrainingView) or issubclass(thing, Augmenter)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        augmenters.Nothing  # noqa: B018


def test_settings_are_checked_in_python_too() -> None:
    with pytest.raises(UserError, match=r"DropEdge: p=2 is not valid; .* 0 to 1"):
        augmenters.DropEdge(p=2.0)


def test_plain_functions_on_graphs() -> None:
    edges = torch.tensor([[0, 1, 2, 1, 2], [1, 0, 1, 2, 2]])
    ids, count = undirected_edge_ids(edges)
    assert ids.tolist() == [0, 0, 1, 1, 2] and count == 3
    assert density(Data(edge_index=edges, num_nodes=4)) == pytest.approx(2 / 6)
    assert density(Data(edge_index=edges[:, :0], num_nodes=1)) == 0.0


def test_labels_hard_and_soft() -> None:
    hard, soft = Data(y=torch.tensor([1])), Data(y=torch.tensor([[0.2, 0.3, 0.5]]))
    assert label_distribution(hard, 3).tolist() == [[0.0, 1.0, 0.0]]
    assert torch.equal(label_distribution(soft, 3), soft.y)
    assert count_classes([hard]) == 2 and count_classes([hard, soft]) == 3


@pytest.mark.parametrize("name", [name for name in AUGMENTERS.names() if name not in ("none", "duplicate")])
def test_every_method_has_something_to_tune_within_what_is_allowed(name: str) -> None:
    tuned = [one for one in AUGMENTERS.settings(name).values() if one.tune is not None]
    assert tuned
    for one in tuned:
        ends = [end for end in (one.tune.low, one.tune.high) if end is not None] if one.tune else []
        for value in (*ends, *(one.tune.choices if one.tune else ())):
            assert one.check(value, name) == value
