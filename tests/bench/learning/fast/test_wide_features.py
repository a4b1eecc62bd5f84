"""Wide one-hot features, held by their columns: the same bits as of the tables, and no table is made on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from augmenters.base import Context, StepAugmenter
from bench.learning.fast.engine import FastEngine
from bench.learning.fast.graphs.classes import row_codes
from bench.learning.fast.graphs.sameness import same_rows
from bench.learning.isolation import contents_of
from bench.learning.memory import estimated_peak
from bench.learning.problem import Fitted
from models.sparse_features import SparseFeatures, is_sparse

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH = 700


def degrees(graph: Data, sparse: bool) -> Data:
    """The graph with its degrees as one-hot features, spread over a wide table."""
    new = graph.clone()
    columns = graph.edge_index[0].bincount(minlength=int(graph.num_nodes or 0)) * 37 % WIDTH
    new.x = SparseFeatures.one_hot(columns, WIDTH) if sparse else torch.nn.functional.one_hot(columns, WIDTH).float()
    return new


def weights(fitted: Fitted | Exception) -> dict[str, torch.Tensor]:
    assert isinstance(fitted, Fitted) and fitted.handed_over is None, fitted
    return dict(fitted.predictor.model.named_parameters())  # type: ignore[attr-defined]


# Every method but those that the reference engine trains inside the step.
EVERY = [name for name in AUGMENTERS.names() if not issubclass(AUGMENTERS.load(name), StepAugmenter)]
METHODS = {
    "gcn": [*EVERY, "s-mixup:matcher=gmn"],
    "gin": ["none", "dropedge", "gdm-rand"],
    "sage": ["none", "dropnode", "g-mixup"],
    "gat": ["none", "dropedge"],
}


@pytest.mark.parametrize(("backbone", "method"), [(one, method) for one in METHODS for method in METHODS[one]])
def test_the_same_bits(
    problem: Callable[..., Any], some_graphs: Callable[..., Any], backbone: str, method: str
) -> None:
    found = []
    for sparse in (True, False):
        graphs = [degrees(graph, sparse) for graph in some_graphs(0)]
        task = problem(method, graphs, backbone=backbone, epochs=3)
        found.append(weights(FastEngine().fit([task])[0]))
        assert not sparse or all(is_sparse(graph.x) for graph in graphs), "a dense table was made"
    for name, weight in found[0].items():
        assert torch.equal(weight, found[1][name]), name


@pytest.mark.parametrize("method", [name for name in AUGMENTERS.names() if name not in EVERY])
def test_the_same_weights_inside_the_step(
    problem: Callable[..., Any], some_graphs: Callable[..., Any], method: str
) -> None:
    found = []
    for sparse in (True, False):
        fitted = FastEngine().fit([problem(method, [degrees(graph, sparse) for graph in some_graphs(0)], epochs=2)])[0]
        assert isinstance(fitted, Fitted) and fitted.engine == "reference", fitted
        found.append(dict(fitted.predictor.model.named_parameters()))  # type: ignore[attr-defined]
    for name, weight in found[0].items():
        torch.testing.assert_close(weight, found[1][name])


@pytest.mark.parametrize("method", ["gdm-rand", "ifmixup", "s-mixup", "fgw-mixup", "geomix"])
def test_mixed_rows_are_held_by_their_columns_too(some_graphs: Callable[..., Any], method: str) -> None:
    graphs = [degrees(graph, sparse=True) for graph in some_graphs(0)[2:]]
    context = Context(2, lambda graphs, epochs: torch.full((len(graphs), 2), 0.5), lambda key: np.random.default_rng(0))
    made = AUGMENTERS.create(method)(graphs, np.random.default_rng(0), context)
    assert made and all(is_sparse(graph.x) for graph in (*made, *graphs))


def test_nodes_are_told_apart_as_those_of_tables_are() -> None:
    rng = np.random.default_rng(0)
    table = rng.choice(np.array([0, 0, 0, 1, 0.5], dtype=np.float32), (60, 5))
    matrix = SparseFeatures.of_matrix(sp.csr_array(table)).matrix()
    assert (row_codes(matrix) == row_codes(table)).all()
    one, other = rng.integers(60, size=(2, 500))
    assert (same_rows(matrix, None, one, other) == same_rows(table, None, one, other)).all()
    assert same_rows(matrix, None, one, one).all() and not same_rows(matrix, None, one, other).all()


def test_hash_and_estimate_need_no_table(problem: Callable[..., Any], some_graphs: Callable[..., Any]) -> None:
    wide, narrow = ([degrees(graph, sparse) for graph in some_graphs(0)] for sparse in (True, False))
    other = [graph.clone() for graph in wide]
    assert contents_of(wide) == contents_of(other)
    other[0].x.columns[0] += 1
    assert contents_of(wide) != contents_of(other)
    assert estimated_peak(problem("none", wide), "fast") < estimated_peak(problem("none", narrow), "fast")
    assert all(is_sparse(graph.x) for graph in wide)
