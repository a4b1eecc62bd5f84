"""SubMix by hand: which edges go, stay and come, and what the label is then."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hand_graphs import complete, context, edges_of, graph, path, ring

from augmenters import SubMix
from augmenters.submix import Swap, swapped_graph


def swap(taken: list[int], given: list[int]) -> Swap:
    return Swap(0, 1, np.array(taken, dtype=np.int64), np.array(given, dtype=np.int64))


def test_a_triangle_in_the_place_of_the_end_of_a_path() -> None:
    line, triangle = path(5, 0), complete(3, 1)
    triangle.x += 100
    made = swapped_graph(line, triangle, swap([4, 3, 2], [0, 1, 2]), 2, False)
    assert edges_of(made) == {(0, 1), (1, 2), (3, 4), (2, 4), (2, 3)}  # 2-3 and 3-4 went, 1-2 stayed, three came
    assert made.x.view(-1).tolist() == [0, 1, 102, 101, 100]
    assert made.y.tolist() == [[pytest.approx(2 / 5), pytest.approx(3 / 5)]]  # two of five edges are the path's
    assert "edge_weight" not in made
    assert line.x.view(-1).tolist() == [0, 1, 2, 3, 4]


def test_the_label_follows_the_destination_not_the_source() -> None:
    """One public option has this ratio the wrong way around."""
    made = swapped_graph(ring(10, 0), path(2, 1), swap([0], [0]), 2, False)
    assert made.y.tolist() == [[1.0, 0.0]]  # one node has no inner edge: all ten edges are the ring's


def test_nothing_left_gives_the_original() -> None:
    pair, apart = path(2, 0), graph(2, [], 1, torch.tensor([[7.0], [8.0]]))
    made = swapped_graph(pair, apart, swap([0, 1], [0, 1]), 2, False)
    assert edges_of(made) == {(0, 1)} and made.x.view(-1).tolist() == [0, 1] and made.y.tolist() == [[1.0, 0.0]]


def test_weights_come_with_their_edges() -> None:
    line, other = path(3, 0), path(2, 1)
    other.edge_weight = torch.tensor([0.5, 0.5])
    made = swapped_graph(line, other, swap([0, 1], [0, 1]), 2, True)
    weights = dict(zip(map(tuple, made.edge_index.T.tolist()), made.edge_weight.tolist(), strict=True))
    assert weights == {(0, 1): 0.5, (1, 0): 0.5, (1, 2): 1.0, (2, 1): 1.0}


def test_parts_are_connected_and_no_larger_than_p_of_the_shorter_list() -> None:
    graphs = [ring(10, 0), ring(20, 1), graph(9, [(0, 1), (1, 2), (5, 6)], 0)]
    drawn = SubMix(p=0.4, count=20)(graphs, np.random.default_rng(0), context())
    assert len(drawn) == 60
    for seed in range(30):
        swaps = SubMix(p=0.4).draw(graphs[:2], np.random.default_rng(seed), context()).swaps
        for one in swaps:
            assert 1 <= len(one.taken) == len(one.given) <= 4
            for nodes, size in ((one.taken, 10 if one.destination == 0 else 20),):
                steps = np.sort(np.diff(np.sort(nodes)))
                assert len(nodes) == 1 or (steps[:-1] == 1).all()  # an arc of the ring, which may go over its end
                assert len(nodes) == 1 or steps[-1] in (1, size - len(nodes) + 1)


def test_a_small_component_bounds_the_part() -> None:
    graphs = [graph(8, []), ring(8, 1)]
    for one in SubMix(p=1.0, count=10).draw(graphs, np.random.default_rng(1), context()).swaps:
        assert len(one.taken) == 1


def test_policies() -> None:
    augmenter = SubMix()
    assert (augmenter.when, augmenter.mode, augmenter.labels) == ("offline", "append", "mixed")
    assert (augmenter.features, augmenter.weighted) == ("recompute", False)
