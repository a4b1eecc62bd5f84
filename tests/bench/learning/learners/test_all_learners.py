"""What holds for every learner that is not built from a backbone and a readout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from augmenters.base import Augmenter
from bench.learning import LEARNERS
from bench.learning.learner import Learner, predictions
from bench.learning.problem import Fitted
from models.fit import one_thread

NAMES = [name for name, entry in LEARNERS.entries().items() if entry.origin == "built in" and name != "gnn"]
OFFLINE = ["none", "duplicate", "g-mixup", "gdm-rand", "gdm-complete", "gdm-identity"]
Learn = Callable[..., Fitted]


def rows(fitted: Fitted, graphs: list[Data], classes: int = 2) -> torch.Tensor:
    return predictions(fitted.predictor, graphs, classes)


@pytest.fixture
def mixed(some_graphs: Callable[..., list[Data]]) -> list[Data]:
    """Random graphs with labels, one of them without an edge."""
    return some_graphs(3)


@pytest.mark.parametrize("augmenter", OFFLINE)
@pytest.mark.parametrize("name", NAMES)
def test_offline_augmenters_are_taken_and_probabilities_are_distributions(
    name: str, augmenter: str, mixed: list[Data], learn: Learn
) -> None:
    fitted = learn(name, mixed, augmenter)
    found = rows(fitted, mixed)  # checks shape, range and sums
    assert found.shape == (len(mixed), 2)
    assert (fitted.generated.get("count", 0) > 0) == (AUGMENTERS.load(augmenter).mode == "append")
    assert set(fitted.seconds) in ({"augment", "fit"}, {"augment", "train"})
    assert fitted.engine is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("augmenter", ["dropedge", "dropnode", "softedge", "m-mixup"])
def test_what_works_during_training_is_refused_with_a_reason(name: str, augmenter: str) -> None:
    learner: type[Learner] = LEARNERS.load(name)
    method: type[Augmenter] = AUGMENTERS.load(augmenter)
    reason = learner.refuses(method)
    assert reason is not None and method.__name__ in reason and "offline" in reason


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seeds_give_the_same_digits_whatever_the_global_state(
    name: str, mixed: list[Data], learn: Learn
) -> None:
    first = rows(learn(name, mixed), mixed)
    torch.manual_seed(99)
    np.random.seed(99)
    assert torch.equal(rows(learn(name, mixed), mixed), first)


@pytest.mark.parametrize("name", ["statistics", "random-gin", "deepsets"])
def test_the_seed_of_the_weights_is_the_problems(name: str, mixed: list[Data], learn: Learn) -> None:
    assert not torch.equal(rows(learn(name, mixed), mixed), rows(learn(name, mixed, init_seed=77), mixed))


@pytest.mark.parametrize("name", NAMES)
def test_a_class_without_a_labeled_graph_has_a_column_of_its_own(name: str, mixed: list[Data], learn: Learn) -> None:
    for graph in mixed:
        graph.y = torch.where(graph.y > 0, 3, 1)
    found = rows(learn(name, mixed, num_classes=5), mixed, 5)
    assert found.shape == (len(mixed), 5)
    if name != "deepsets":  # its head knows all classes from the start
        assert bool((found[:, [0, 2, 4]] == 0).all())


@pytest.mark.parametrize("name", NAMES)
def test_a_single_class_among_the_labels_is_what_is_predicted(name: str, mixed: list[Data], learn: Learn) -> None:
    for graph in mixed:
        graph.y = torch.tensor([1])
    assert rows(learn(name, mixed, num_classes=3), mixed, 3).argmax(dim=1).tolist() == [1] * len(mixed)


@pytest.mark.parametrize("name", NAMES)
def test_one_label_per_class(name: str, mixed: list[Data], learn: Learn) -> None:
    assert rows(learn(name, mixed[:2]), mixed).shape == (len(mixed), 2)


@pytest.mark.parametrize("labels", [None, [1]])
@pytest.mark.parametrize("name", NAMES)
def test_single_nodes_and_graphs_without_edges(
    name: str, labels: list[int] | None, graph: Callable[..., Data], learn: Learn
) -> None:
    given = [graph(n, [], y, labels and labels * n) for n in (1, 2, 5) for y in (0, 1)]
    assert bool(rows(learn(name, given), given).isfinite().all())
    unseen = [graph(40, [(0, 1), (1, 2), (0, 2)], 0, labels and labels * 40)]  # larger, denser than all before
    assert bool(rows(learn(name, given), unseen).isfinite().all())


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_nodes_does_not_matter(name: str, mixed: list[Data], learn: Learn) -> None:
    fitted = learn(name, mixed)
    shuffled = [permuted(graph, seed) for seed, graph in enumerate(mixed)]
    with one_thread():
        torch.testing.assert_close(rows(fitted, shuffled), rows(fitted, mixed), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_is_judged_alone(name: str, mixed: list[Data], learn: Learn) -> None:
    fitted = learn(name, mixed)
    together = rows(fitted, mixed)
    alone = torch.cat([rows(fitted, [graph]) for graph in mixed])
    torch.testing.assert_close(alone, together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["statistics", "wl", "histogram", "random-gin"])
def test_rings_and_stars_of_the_same_sizes_are_told_apart(name: str, rings_and_stars: list[Data], learn: Learn) -> None:
    truth = torch.cat([graph.y for graph in rings_and_stars])
    assert torch.equal(rows(learn(name, rings_and_stars), rings_and_stars).argmax(dim=1), truth)


@pytest.mark.parametrize("name", ["majority", "size", "deepsets"])
def test_and_by_none_that_sees_no_edge(name: str, rings_and_stars: list[Data], learn: Learn) -> None:
    found = rows(learn(name, rings_and_stars), rings_and_stars)
    torch.testing.assert_close(found[0::2], found[1::2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_bounds_or_choices_and_something_to_tune(name: str) -> None:
    settings = LEARNERS.settings(name)
    assert all(s.bounds or s.choices or s.type is bool for s in settings.values())
    assert name == "majority" or any(s.tune for s in settings.values())


def permuted(graph: Data, seed: int) -> Data:
    order = torch.randperm(int(graph.num_nodes or 0), generator=torch.Generator().manual_seed(seed))
    new: Any = Data(edge_index=torch.argsort(order)[graph.edge_index], num_nodes=graph.num_nodes, y=graph.y)
    new.x = graph.x[order]
    return new
