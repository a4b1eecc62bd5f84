"""The graph matching network: its layers by hand, its triplets, and what its training sees."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from models.graph_matching import (
    GraphMatchingNetwork,
    MatchingLayer,
    draw_triplets,
    fit_matching_network,
    node_inputs,
    triplet_loss,
)


def ring(n: int, label: int = 0) -> Data:
    around = torch.arange(n)
    edges = torch.stack([torch.cat([around, (around + 1) % n]), torch.cat([(around + 1) % n, around])])
    return Data(x=torch.ones(n, 1), edge_index=edges, y=torch.tensor([label]), num_nodes=n)


def star(n: int, label: int = 1) -> Data:
    hub, leaves = torch.zeros(n - 1, dtype=torch.long), torch.arange(1, n)
    edges = torch.stack([torch.cat([hub, leaves]), torch.cat([leaves, hub])])
    return Data(x=torch.ones(n, 1), edge_index=edges, y=torch.tensor([label]), num_nodes=n)


def test_a_layer_hears_neighbors_and_the_other_graph() -> None:
    layer = MatchingLayer(2)
    for map_ in (layer.update[0], layer.update[2]):
        torch.nn.init.zeros_(map_.bias)
    with torch.no_grad():  # the update is the sum of the neighbors, where positive, minus nothing else
        layer.update[0].weight.copy_(torch.tensor([[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]]))
        layer.update[2].weight.copy_(torch.eye(2))
    own, other = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
    edges, weights = torch.tensor([[0, 1], [1, 0]]), torch.tensor([3.0, 3.0])
    assert torch.allclose(layer(own, other, edges, weights), torch.tensor([[1.0, 3.0], [3.0, 1.0]]) / 10**0.5)
    with torch.no_grad():  # now it is the difference to what the other graph shows: one node, so that node
        layer.update[0].weight.copy_(torch.tensor([[0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]]))
    expected = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # (1,0) + 0, and (0,1) + relu(-1, 1), at length one
    assert torch.allclose(layer(own, other, edges, weights), expected)


def test_inputs_tell_the_degree() -> None:
    assert node_inputs(star(4))[:, 1].tolist() == pytest.approx(np.log([4, 2, 2, 2]).tolist())


def test_the_triplet_loss_by_hand() -> None:
    assert float(triplet_loss(torch.tensor(0.5), torch.tensor(0.75))) == 0.75
    assert float(triplet_loss(torch.tensor(0.5), torch.tensor(1.5))) == 0


def test_triplets_are_of_the_labels() -> None:
    labels = np.array([0, 0, 1, 1, 2])
    found = draw_triplets(labels, np.random.default_rng(0))
    assert sorted(anchor for anchor, _, _ in found) == [0, 1, 2, 3]  # the last is alone in its class
    for anchor, near, far in found:
        assert anchor != near and labels[anchor] == labels[near] != labels[far]
    assert draw_triplets(np.zeros(3, dtype=int), np.random.default_rng(0)) == []


def test_embeddings_depend_on_the_partner_and_not_on_its_order() -> None:
    torch.manual_seed(0)
    model = GraphMatchingNetwork(1, 8)
    first, _ = model(star(5), ring(4))
    assert len(model.layers) == 5 and not torch.allclose(first, model(star(5), star(6))[0])
    turned = ring(4)
    turned.edge_index = 3 - turned.edge_index
    assert torch.allclose(first, model(star(5), turned)[0], atol=1e-5)
    assert torch.allclose(model.distance(star(5), ring(4)), model.distance(ring(4), star(5)))


def test_training_pulls_classes_apart_and_is_the_seeds() -> None:
    graphs = [ring(4), ring(5), ring(6), star(4), star(5), star(6)]

    def loss(model: GraphMatchingNetwork) -> float:
        triplets = draw_triplets(np.array([0, 0, 0, 1, 1, 1]), np.random.default_rng(9))
        return sum(
            float(triplet_loss(model.distance(graphs[a], graphs[n]), model.distance(graphs[a], graphs[f])))
            for a, n, f in triplets
        )

    state = torch.get_rng_state()
    before, after, again = (fit_matching_network(graphs, np.random.default_rng(1), 8, epochs) for epochs in (0, 10, 10))
    assert loss(after) < 0.9 * loss(before)
    assert all(torch.equal(one, other) for one, other in zip(after.parameters(), again.parameters(), strict=True))
    assert torch.equal(state, torch.get_rng_state())  # nothing was drawn from torch's own stream
