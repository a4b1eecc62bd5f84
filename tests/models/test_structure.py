"""Structure of many graphs at once, against dense and hand-made values."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from models.structure import Structure


def graph(n: int, pairs: list[tuple[int, int]], weights: list[float] | None = None) -> Data:
    both = torch.tensor(pairs + [(j, i) for i, j in pairs], dtype=torch.long).reshape(-1, 2).T
    data = Data(edge_index=both, num_nodes=n)
    if weights is not None:
        data.edge_weight = torch.tensor(weights + weights)
    return data


def complete(n: int) -> Data:
    return graph(n, [(i, j) for j in range(n) for i in range(j)])


def test_two_graphs_by_hand() -> None:
    structure = Structure.of([graph(3, [(0, 1), (1, 2)]), graph(4, [(0, 3)])])
    first, second = structure.edges
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 1), (1, 2), (3, 6)]
    assert structure.owner.tolist() == [0, 0, 1]
    assert structure.degrees.tolist() == [1, 2, 1, 1, 0, 0, 1]
    assert structure.positions.tolist() == [0, 1, 2, 0, 1, 2, 3]


def test_weights_are_those_of_the_edge_and_self_loops_do_not_count() -> None:
    data = graph(3, [(0, 1), (1, 2)], [0.5, 2.0])
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[1], [1]])], dim=1)
    data.edge_weight = torch.cat([data.edge_weight, torch.tensor([9.0])])
    structure = Structure.of([data])
    assert structure.weights.tolist() == [0.5, 2.0]
    assert structure.degrees.tolist() == [0.5, 2.5, 2.0]


def test_adjacency_is_the_normalization_of_a_gcn() -> None:
    data = graph(5, [(0, 1), (1, 2), (0, 2), (3, 1)], [1.0, 0.3, 2.0, 1.5])
    index, weight = gcn_norm(data.edge_index, data.edge_weight, num_nodes=5)
    expected = to_dense_adj(index, edge_attr=weight, max_num_nodes=5)[0].numpy()
    np.testing.assert_allclose(Structure.of([data]).adjacency.toarray(), expected, rtol=1e-6)


def test_non_edges_are_uniform_over_all_of_them() -> None:
    data = graph(5, [(0, 1), (1, 2), (2, 3), (0, 4), (1, 4), (0, 3)])  # 10 pairs, 4 of them free
    structure, rng = Structure.of([complete(4), data, complete(3)]), np.random.default_rng(0)
    counts: dict[tuple[int, int], int] = {}
    for _ in range(500):
        for pair in zip(*(ends.tolist() for ends in structure.sample_non_edges(rng)), strict=True):
            counts[pair] = counts.get(pair, 0) + 1
    assert set(counts) == {(4 + i, 4 + j) for i, j in [(0, 2), (1, 3), (2, 4), (3, 4)]}
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2**36 - 1)), min_size=1, max_size=5), st.integers(0, 99))
def test_one_non_edge_for_each_edge_of_the_same_graph(drawn: list[tuple[int, int]], seed: int) -> None:
    graphs, free, edges = [], [], []
    for n, bits in drawn:
        pairs = [(i, j) for j in range(n) for i in range(j)]
        chosen = [pair for k, pair in enumerate(pairs) if bits >> k & 1]
        graphs.append(graph(n, chosen))
        free.append(len(pairs) - len(chosen))
        edges.append(set(chosen))
    structure = Structure.of(graphs)
    first, second = structure.sample_non_edges(np.random.default_rng(seed))
    starts = structure.node_starts.tolist()
    for number, (start, size) in enumerate(zip(starts, structure.sizes.tolist(), strict=True)):
        inside = (first >= start) & (first < start + size)
        pairs = set(zip((first[inside] - start).tolist(), (second[inside] - start).tolist(), strict=True))
        assert int(inside.sum()) == (len(edges[number]) if free[number] else 0)
        assert all(0 <= i < j < size for i, j in pairs)
        assert not pairs & edges[number]
