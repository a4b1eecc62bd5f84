"""Features held by the columns of each row: an ordinary `x` for PyG, layers and whoever asks for a table."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from augmenters.functional import with_edges, with_nodes
from augmenters.gdm_mixup import Mixing, mix_rows
from models import BACKBONES
from models.sparse_features import WIDE, SparseFeatures, entries, is_sparse, one_hot

WIDTH = WIDE + 88


def columns(rows: int, seed: int = 0) -> Tensor:
    return torch.randint(0, WIDTH, (rows,), generator=torch.Generator().manual_seed(seed))


def table(chosen: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(chosen, WIDTH).float()


@pytest.fixture
def x() -> SparseFeatures:
    return SparseFeatures.one_hot(columns(6), WIDTH)


def ring(x: Tensor) -> Data:
    here = torch.arange(len(x))
    ends = torch.stack([here, here.roll(1)])
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=torch.tensor([1]), num_nodes=len(x))


def test_only_wide_features_are_held_so() -> None:
    assert is_sparse(one_hot(columns(4), WIDTH)) and not is_sparse(one_hot(columns(4) % WIDE, WIDE))
    assert torch.equal(one_hot(columns(4), WIDTH).dense(), table(columns(4)))  # type: ignore[attr-defined]


def test_it_looks_like_a_tensor_and_stays_narrow(x: SparseFeatures) -> None:
    graph = ring(x)
    assert isinstance(graph.x, Tensor) and graph.x.shape == (6, WIDTH) and graph.x.dtype == torch.float32
    assert graph.num_node_features == WIDTH and len(graph.x) == 6 and entries(x) == 6
    kept = with_nodes(graph, np.array([5, 0, 2]))
    smaller = with_edges(graph, torch.arange(12) < 3)
    batch = Batch.from_data_list([graph, kept, smaller]).to("cpu")
    copies = [graph.clone(), copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))]
    assert all(is_sparse(one.x) for one in (graph, kept, smaller, batch, *copies))
    whole = table(columns(6))
    assert torch.equal(kept.x.dense(), whole[[0, 2, 5]])
    assert torch.equal(batch.x.dense(), torch.cat([whole, whole[[0, 2, 5]], whole]))
    copies[0].x.columns.zero_()
    assert torch.equal(graph.x.dense(), whole), "a clone shares no memory"


ASKED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(dim=0),
    "compare": lambda x: x != 0,
    "scale": lambda x: x * 2 + 1,
    "numpy": lambda x: torch.from_numpy(x.numpy()),
    "argmax": lambda x: x.argmax(dim=1),
    "rows and columns": lambda x: x[1:3, 5:],
    "transposed": lambda x: x.t(),
    "joined to a table": lambda x: torch.cat([x, torch.ones(2, WIDTH)]),
    "beside a table": lambda x: torch.cat([x, torch.ones(6, 1)], dim=1),
    "double": lambda x: x.double(),
    "list": lambda x: torch.tensor(x.tolist()),
    "row by row": lambda x: torch.stack(list(x)),
}


@pytest.mark.parametrize("question", ASKED)
def test_whoever_asks_for_a_table_gets_one(x: SparseFeatures, question: str) -> None:
    ask = ASKED[question]
    assert torch.equal(ask(x), ask(table(columns(6))))


def test_what_is_written_stays_written(x: SparseFeatures) -> None:
    x[2] = 0
    x.view(-1)[:3] = 7
    expected = table(columns(6))
    expected[2] = 0
    expected.view(-1)[:3] = 7
    assert torch.equal(x + 0, expected) and not is_sparse(x)
    assert torch.equal(x.clone(), expected) and (x.matrix().toarray() == expected.numpy()).all()


@pytest.mark.parametrize("backbone", BACKBONES.entries())
@pytest.mark.parametrize("weighted", [False, True])
def test_layers_give_the_same_with_the_same_gradients(x: SparseFeatures, backbone: str, weighted: bool) -> None:
    model = BACKBONES.create(backbone, in_channels=WIDTH)
    if weighted and not model.reads_edge_weight:
        return
    graph = ring(x)
    extra = (torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1)),) if weighted else ()
    found = []
    for features in (graph.x, table(columns(6))):
        model.zero_grad()
        out = model(features, graph.edge_index, *extra)
        out.square().sum().backward()
        found.append([out, *(parameter.grad for parameter in model.parameters())])
    assert is_sparse(graph.x), "no dense table was made"
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [(6, 4), (4, 6), (5, 5)])
def test_a_mix_is_that_of_the_tables(sizes: tuple[int, int]) -> None:
    chosen = [columns(size, seed) for seed, size in enumerate(sizes)]
    mixing = Mixing(0, 1, 0.3, np.random.default_rng(0).permutation(max(sizes))[: min(sizes)])
    mixed = mix_rows(*(SparseFeatures.one_hot(one, WIDTH) for one in chosen), mixing)
    assert is_sparse(mixed) and entries(mixed) == 2 * max(sizes)
    torch.testing.assert_close(mixed.dense(), mix_rows(*map(table, chosen), mixing), rtol=0, atol=0)
    again = SparseFeatures.of_matrix(mixed.matrix())
    assert torch.equal(again.dense(), mixed.dense())
