from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from bench.protocol.features import FEATURES, Featurizer, resolve_features
from bench.registry import UserError


def star(leaves: int, width: int | None = None) -> Data:
    """A hub with some leaves; its degrees are known at sight."""
    ends = torch.arange(1, leaves + 1)
    hub = torch.zeros_like(ends)
    edges = torch.stack([torch.cat([hub, ends]), torch.cat([ends, hub])])
    graph = Data(edge_index=edges, y=torch.tensor([0]), num_nodes=leaves + 1)
    if width:
        graph.x = torch.eye(leaves + 1, width)
    return graph


def test_auto_takes_the_datasets_own_features_where_it_has_some() -> None:
    assert resolve_features("auto", True) == "native"
    assert resolve_features("auto", False) == "constant"
    assert resolve_features("degree", True) == "degree"


def test_features_that_cannot_be_are_refused_with_a_remedy() -> None:
    with pytest.raises(UserError, match=r"IMDB-BINARY has no node features .* constant, degree-onehot, degree"):
        resolve_features("native", False, "IMDB-BINARY")
    with pytest.raises(UserError, match="Did you mean: degree-onehot"):
        resolve_features("degree-one-hot", False)


@pytest.mark.parametrize("kind", FEATURES)
def test_the_input_is_not_changed_and_the_width_is_as_told(kind: str) -> None:
    graph = star(3, width=4)
    before = graph.clone()
    featurizer = Featurizer.fit(kind, [graph])
    result = featurizer(graph)
    assert torch.equal(graph.x, before.x) and torch.equal(graph.edge_index, before.edge_index)
    assert result.x.shape == (4, featurizer.width) and result.x.dtype == torch.float32
    assert torch.equal(result.y, graph.y)


def test_one_hot_degrees_are_capped_at_the_training_graphs_largest() -> None:
    featurizer = Featurizer.fit("degree-onehot", [star(2), star(4)])
    assert featurizer.width == 5
    assert featurizer(star(4)).x.argmax(dim=1).tolist() == [4, 1, 1, 1, 1]
    assert featurizer(star(9)).x[0].tolist() == [0, 0, 0, 0, 1]  # above the cap: the last column


def test_scalar_degrees_are_scaled_by_the_training_graphs_mean() -> None:
    featurizer = Featurizer.fit("degree", [star(3)])  # degrees 3, 1, 1, 1: mean 1.5
    assert featurizer(star(6)).x[:, 0].tolist() == pytest.approx([4.0] + [1 / 1.5] * 6)


def test_isolated_nodes_have_degree_zero_and_an_edgeless_fold_does_not_divide_by_zero() -> None:
    lonely = Data(edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([0]), num_nodes=3)
    assert Featurizer.fit("degree", [lonely])(lonely).x.tolist() == [[0.0]] * 3
    assert Featurizer.fit("degree-onehot", [star(2)])(lonely).x.tolist() == [[1.0, 0.0, 0.0]] * 3


def test_constant_features_forget_the_datasets_own() -> None:
    assert Featurizer.fit("constant", [star(3, width=4)])(star(5, width=6)).x.tolist() == [[1.0]] * 6


def test_features_are_made_anew_for_a_generated_structure() -> None:
    featurizer = Featurizer.fit("degree-onehot", [star(5)])
    generated = featurizer(star(5))
    generated.edge_index = star(3).edge_index
    assert featurizer(generated).x.argmax(dim=1).tolist() == [3, 1, 1, 1, 0, 0]


def test_native_features_of_a_graph_without_any_are_an_error() -> None:
    with pytest.raises(UserError, match="a graph has no node features"):
        Featurizer.fit("native", [star(3)])
