"""ifMixup by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hand_graphs import context, edges_of, graph, path

from augmenters import AUGMENTERS, IfMixup
from augmenters.gdm_mixup import Mixing
from augmenters.ifmixup import overlay
from bench.learning.gnn import GNN
from models import BACKBONES


def weights_of(made) -> dict[tuple[int, int], float]:  # type: ignore[no-untyped-def]
    found = dict(zip(map(tuple, made.edge_index.T.tolist()), made.edge_weight.tolist(), strict=True))
    assert all(found[j, i] == w for (i, j), w in found.items())
    return {(i, j): pytest.approx(w) for (i, j), w in found.items() if i < j}


def test_a_pair_over_a_path_by_hand() -> None:
    line, pair = path(3, 0), path(2, 1)
    made = overlay(line, pair, Mixing(0, 1, 0.25, np.array([2, 1])), 2)  # node 0 of the pair goes to 2, node 1 to 1
    assert weights_of(made) == {(0, 1): 0.25, (1, 2): 1.0}
    assert made.x.view(-1).tolist() == [0.0, 0.25 * 1 + 0.75 * 1, 0.25 * 2 + 0.75 * 0]
    assert made.y.tolist() == [[0.25, 0.75]]


def test_the_smaller_graph_moves_when_it_is_the_first() -> None:
    pair, line = path(2, 1), path(3, 0)
    made = overlay(pair, line, Mixing(0, 1, 0.75, np.array([0, 2])), 2)
    assert weights_of(made) == {(0, 2): 0.75, (0, 1): 0.25, (1, 2): 0.25}
    assert made.y.tolist() == [[0.25, 0.75]]  # the share is the first graph's, and its class is 1


def test_given_weights_are_mixed_and_nothing_weighs_nothing() -> None:
    line, pair = path(3, 0), path(2, 1)
    line.edge_weight = torch.full((4,), 2.0)
    assert weights_of(overlay(line, pair, Mixing(0, 1, 0.5, np.array([0, 1])), 2)) == {(0, 1): 1.5, (1, 2): 1.0}
    assert edges_of(overlay(line, pair, Mixing(0, 1, 0.0, np.array([0, 2])), 2)) == {(0, 2)}


def test_alignment_by_file_and_at_random() -> None:
    graphs = [path(6, 0), path(4, 1)]
    files = IfMixup(align="file").draw(graphs, np.random.default_rng(0), context()).mixings
    assert all(m.places.tolist() == [0, 1, 2, 3] for m in files)
    drawn = IfMixup(count=9).draw(graphs, np.random.default_rng(0), context()).mixings
    assert len({tuple(m.places.tolist()) for m in drawn}) > 10


def test_attention_refuses_its_weights() -> None:
    reason = GNN.refuses(AUGMENTERS.load("ifmixup"), BACKBONES.load("gat"), None)
    assert reason is not None and "edge weights" in reason
    assert GNN.refuses(AUGMENTERS.load("ifmixup"), BACKBONES.load("gcn"), None) is None


def test_as_many_as_gdm_beside_the_originals() -> None:
    graphs = [path(3, 0), path(2, 1), graph(1, [], 1), path(5, 0)]
    made = IfMixup()(graphs, np.random.default_rng(0), context())
    assert len(made) == 6 and all("edge_weight" in g for g in made)
    assert (IfMixup.when, IfMixup.mode, IfMixup.labels) == ("offline", "append", "mixed")
