"""Kinds of augmenters: one method to write, the rest for nothing, and the promise that an engine may rely on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters import AUGMENTERS, DropEdge, DropNode, MMixup, SoftEdge
from augmenters.base import Context, GraphAugmenter
from augmenters.functional import EdgeNumbers, choose_within, with_edges
from augmenters.kinds import (
    EdgeFactorAugmenter,
    FeatureAugmenter,
    KeptNodes,
    KeptNodesAugmenter,
    OneByOneAugmenter,
    PairMixAugmenter,
    kind_of,
)


def graph(n: int, pairs: Sequence[tuple[int, int]], **more: Any) -> Data:
    both = torch.tensor([*pairs, *((j, i) for i, j in pairs)], dtype=torch.long).reshape(-1, 2).T
    return Data(x=torch.arange(float(n)).view(-1, 1), edge_index=both, y=torch.tensor([0]), num_nodes=n, **more)


GRAPHS = [graph(4, [(0, 1), (2, 1), (3, 0)]), graph(1, []), graph(3, [(0, 2)])]


def test_nodes_and_edges_are_numbered_through() -> None:
    numbers = EdgeNumbers(GRAPHS)
    assert numbers.sizes.tolist() == [4, 1, 3] and numbers.starts.tolist() == [0, 4, 5] and numbers.nodes == 8
    assert numbers.counts.tolist() == [3, 0, 1] and numbers.total == 4
    assert numbers.ends.tolist() == [[0, 0, 1, 5], [1, 3, 2, 7]]
    assert numbers.of_directed.tolist() == [0, 2, 1, 0, 2, 1, 3, 3]
    assert numbers.graph_of_node.tolist() == [0, 0, 0, 0, 1, 2, 2, 2]
    assert [part.tolist() for part in numbers.split(np.array([5, 6, 7, 8]))] == [[5, 7, 6, 5, 7, 6], [], [8, 8]]


@dataclass(frozen=True)
class Given(EdgeFactorAugmenter):
    """Factors as they are given."""

    given: tuple[float, ...] = ()

    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        return np.array(self.given)


class GivenWeights(Given):
    weighted = True


def test_a_factor_of_zero_drops_both_directions_and_others_multiply() -> None:
    rng = np.random.default_rng(0)
    dropped = Given((1, 0, 0.5, 1))(GRAPHS, rng)  # 0.5: not said to be weighted, so it only stays
    assert dropped[0].edge_index.tolist() == [[0, 2, 1, 1], [1, 1, 0, 2]] and dropped[0].get("edge_weight") is None
    heavy = [graph(4, [(0, 1), (2, 1), (3, 0)], edge_weight=torch.tensor([2.0, 3, 4, 2, 3, 4])), *GRAPHS[1:]]
    soft = GivenWeights((1, 0, 0.5, 0.25))(heavy, rng)
    assert soft[0].edge_index.tolist() == [[0, 2, 1, 1], [1, 1, 0, 2]]
    assert soft[0].edge_weight.tolist() == [2, 1.5, 2, 1.5] and soft[2].edge_weight.tolist() == [0.25, 0.25]
    assert soft[0].edge_weight.dtype == torch.float32
    assert heavy[0].edge_weight.tolist() == [2, 3, 4, 2, 3, 4]


@pytest.mark.parametrize("given", [(1.0,), (1.0,) * 5])
def test_a_factor_for_each_edge(given: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="for 4 undirected edges"):
        Given(given)(GRAPHS, np.random.default_rng(0))


@dataclass(frozen=True)
class Chosen(KeptNodesAugmenter):
    nodes: tuple[Any, ...] = ()

    def draw_kept(self, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        return np.array(self.nodes)


@pytest.mark.parametrize(
    "kept", [(0, 1, 3, 4, 7), (7, 3, 4, 1, 0), (True, True, False, True, True, False, False, True)]
)
def test_nodes_stay_by_number_or_by_mask_in_any_order(kept: tuple[Any, ...]) -> None:
    first, second, third = Chosen(kept)(GRAPHS, np.random.default_rng(0))
    assert first.x.view(-1).tolist() == [0, 1, 3] and first.edge_index.tolist() == [[0, 2, 1, 0], [1, 0, 0, 2]]
    assert second.num_nodes == third.num_nodes == 1 and third.x.item() == 2


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ((0, 4), "keeps no node of graph 2"),
        ((0, 0, 4, 5), "a node twice"),
        ((0, 4, 8), "numbers outside 0 to 7"),
        ((-1, 0, 4), "numbers outside 0 to 7"),
        ((0.0, 4.0, 5.0), "numbers outside 0 to 7"),
        ((True, False), "numbers outside 0 to 7"),
    ],
)
def test_nodes_that_make_no_sense_are_told(kept: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Chosen(kept)(GRAPHS, np.random.default_rng(0))


def test_several_draws_are_checked_together() -> None:
    draws = [np.array([3, 1, 4, 6]), np.array([7, 0, 4, 5])]
    found = KeptNodes.of(EdgeNumbers(GRAPHS), draws, "Mine")
    assert [part.tolist() for part in found.nodes] == [[3, 1, 4, 6], [0, 4, 7, 5]]
    assert found.counts.tolist() == [[2, 1, 1], [1, 1, 2]]
    assert found.masks.tolist() == [[0, 1, 0, 1, 1, 0, 1, 0], [1, 0, 0, 0, 1, 1, 0, 1]]


class Doubled(FeatureAugmenter):
    def draw_features(self, x: np.ndarray, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        return 2.0 * x.astype(np.float64)


class InPlace(FeatureAugmenter):
    def draw_features(self, x: np.ndarray, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        x *= 2
        return x


class TooFew(FeatureAugmenter):
    def draw_features(self, x: np.ndarray, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        return x[1:]


def test_features_change_and_nothing_else() -> None:
    new = Doubled()(GRAPHS, np.random.default_rng(0))
    assert new[2].x.tolist() == [[0], [2], [4]] and new[2].x.dtype == torch.float32
    assert torch.equal(new[0].edge_index, GRAPHS[0].edge_index) and GRAPHS[2].x.tolist() == [[0], [1], [2]]
    with pytest.raises(ValueError, match="read-only"):
        InPlace()(GRAPHS, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"\(7, 1\) for nodes with \(8, 1\)"):
        TooFew()(GRAPHS, np.random.default_rng(0))


class Numbered(OneByOneAugmenter):
    mode = "append"
    made: list[int] = []  # noqa: RUF012

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> int:
        return 3

    def generate_each(self, graphs: Sequence[Data], drawn: int) -> Iterator[Data]:
        for number in range(drawn):
            self.made.append(number)
            yield graph(number + 1, [])


def test_graphs_one_by_one() -> None:
    assert [new.num_nodes for new in Numbered()(GRAPHS, np.random.default_rng(0))] == [1, 2, 3]
    Numbered.made.clear()
    next(Numbered().generate_each(GRAPHS, 3))
    assert Numbered.made == [0]


class OwnShares(PairMixAugmenter):
    def draw_pairs(self, count: int, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
        return np.linspace(0, 1, count), np.zeros(count, dtype=np.int64)


def test_each_row_may_have_a_share_and_any_partner() -> None:
    mixing, drawn = OwnShares(), OwnShares().draw(GRAPHS, np.random.default_rng(0), None)  # type: ignore[arg-type]
    rows, targets = torch.tensor([[2.0], [4.0], [8.0]]), torch.eye(3)
    mixed, labels = mixing.mix(rows, targets, drawn)
    assert mixed.tolist() == [[2], [3], [8]] and labels.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]]


class WrongPartners(OwnShares):
    def draw_pairs(self, count: int, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(count), np.arange(2)


def test_one_partner_each() -> None:
    with pytest.raises(ValueError, match="one partner per graph"):
        WrongPartners().draw(GRAPHS, np.random.default_rng(0), None)  # type: ignore[arg-type]


class AppliesItself(DropEdge):
    def apply(self, graphs: Sequence[Data], drawn: list[Tensor]) -> list[Data]:
        return [with_edges(one, keep) for one, keep in zip(graphs, drawn, strict=True)]


class DrawsItself(DropNode):
    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[np.ndarray]:
        return [np.arange(1) for _ in graphs]


class CallsItself(SoftEdge):
    def __call__(self, graphs: Sequence[Data], rng: Generator, context: Context | None = None) -> list[Data]:
        return list(graphs)


class MixesItself(MMixup):
    def mix(self, embeddings: Tensor, targets: Tensor, drawn: Any) -> tuple[Tensor, Tensor]:
        return embeddings.tanh(), targets


class Beside(DropEdge):
    mode = "append"  # type: ignore[assignment]


class Once(DropEdge):
    when = "offline"  # type: ignore[assignment]


class OtherSettings(DropEdge):
    """A subclass that changes nothing of what is promised."""

    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        return rng.random(edges.total) >= self.p / 2


@pytest.mark.parametrize(
    ("cls", "kind"),
    [
        (DropEdge, EdgeFactorAugmenter),
        (SoftEdge, EdgeFactorAugmenter),
        (DropNode, KeptNodesAugmenter),
        (MMixup, PairMixAugmenter),
        (AUGMENTERS.load("gdm-unc"), OneByOneAugmenter),
        (OtherSettings, EdgeFactorAugmenter),
        (Chosen, KeptNodesAugmenter),
        (Doubled, FeatureAugmenter),
        (AUGMENTERS.load("g-mixup"), None),
        (AUGMENTERS.load("none"), None),
        (GraphAugmenter, None),
        (AppliesItself, None),
        (DrawsItself, None),
        (CallsItself, None),
        (MixesItself, None),
        (Beside, None),
        (Once, None),
    ],
)
def test_who_keeps_which_promise(cls: type, kind: type | None) -> None:
    assert kind_of(cls) is kind


def test_the_draws_are_those_on_record() -> None:
    """What DropEdge, SoftEdge and DropNode drew before they had a base: the same numbers from the same stream."""
    context: Any = None
    rng = np.random.default_rng(7)
    kept = rng.random(4) >= 0.25
    assert [part.tolist() for part in DropEdge().draw(GRAPHS, np.random.default_rng(7), context)] == [
        kept[[0, 2, 1, 0, 2, 1]].tolist(),
        [],
        kept[[3, 3]].tolist(),
    ]
    rng = np.random.default_rng(7)
    factor = np.ones(4, dtype=np.float32)
    chosen = choose_within(np.array([3, 0, 1]), np.array([2, 0, 0]), rng)  # rint(0.5 * [3, 0, 1])
    factor[chosen] = rng.random(2, dtype=np.float32)
    soft = SoftEdge(p=0.5).draw(GRAPHS, np.random.default_rng(7), context)
    assert soft[0].tolist() == factor[[0, 2, 1, 0, 2, 1]].tolist() and soft[2].tolist() == [1, 1]
    stay = choose_within(np.array([4, 1, 3]), np.array([2, 1, 2]), np.random.default_rng(7))
    nodes = DropNode(p=0.5).draw(GRAPHS, np.random.default_rng(7), context)
    assert [part.tolist() for part in nodes] == [stay[:2].tolist(), [0], (stay[3:] - 5).tolist()]
