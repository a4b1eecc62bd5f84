"""The reference engine on small problems whose answers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from augmenters import AUGMENTERS
from bench.learning.augmentation import first_model
from bench.learning.problem import Fitted, MiniBatches, Problem, curve_epochs, training_set
from bench.learning.reference import ReferenceEngine, fit_problem
from bench.learning.steps import bare_graphs
from bench.protocol.training import Training
from bench.seeding import seed_from
from models import BACKBONES, READOUTS
from models.fit import Diverged, predict, pretrain, soft_cross_entropy


def ring(n: int, y: int, value: float = 1.0) -> Data:
    ends = torch.arange(n)
    edges = torch.stack([ends, (ends + 1) % n])
    return Data(
        x=torch.full((n, 2), value) * torch.tensor([1.0, float(y)]),
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
        y=torch.tensor([y]),
    )


def problem_of(augmenter: str = "none", epochs: int = 30, **changes: object) -> Problem:
    problem = Problem(
        graphs=[ring(n, y) for n in (3, 5, 6) for y in (0, 1)],
        num_classes=2,
        backbone=BACKBONES.resolve("gcn:width=8,layers=2"),
        readout=READOUTS.resolve("mean"),
        augmenter=AUGMENTERS.create(augmenter),
        training=Training(epochs=epochs),
        init_seed=1,
        augment_seed=2,
        pretrain_seed=3,
        shared_seed=lambda key: seed_from(key),
        featurize=lambda graph: graph,
    )
    return replace(problem, **changes)  # type: ignore[arg-type]


def weights_of(problem: Problem) -> list[torch.Tensor]:
    return [p.detach() for p in fit_problem(problem).predictor.model.parameters()]


METHODS = [
    "none",
    "duplicate",
    "dropnode",
    "dropedge",
    "softedge",
    "m-mixup",
    "g-mixup",
    "gdm-rand",
    "gdm-acc",
    "gdm-unc",
]


@pytest.mark.parametrize("augmenter", METHODS)
def test_every_method_learns_two_easy_classes(augmenter: str) -> None:
    problem = problem_of(augmenter, epochs=60)
    fitted = ReferenceEngine().fit([problem])[0]
    assert isinstance(fitted, Fitted)
    guess = predict(fitted.predictor.model, problem.graphs).argmax(dim=1)
    assert torch.equal(guess, torch.tensor([0, 1] * 3))
    assert set(fitted.seconds) == {"augment", "train"}


@pytest.mark.parametrize("augmenter", METHODS)
def test_the_same_seeds_give_the_same_weights_whatever_the_global_state(augmenter: str) -> None:
    first = weights_of(problem_of(augmenter))
    torch.manual_seed(99)
    np.random.seed(99)
    again = weights_of(problem_of(augmenter))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(
        torch.equal(a, b) for a, b in zip(first, weights_of(problem_of(augmenter, init_seed=5)), strict=True)
    )


def test_the_originals_are_untouched_by_training() -> None:
    for augmenter in METHODS:
        problem = problem_of(augmenter, epochs=3)
        before = [(g.x.clone(), g.edge_index.clone(), g.y.clone(), sorted(g.keys())) for g in problem.graphs]
        fit_problem(problem)
        for graph, (x, edge_index, y, keys) in zip(problem.graphs, before, strict=True):
            assert torch.equal(graph.x, x) and torch.equal(graph.edge_index, edge_index) and torch.equal(graph.y, y)
            assert sorted(graph.keys()) == keys


def test_duplicating_all_originals_is_training_with_twice_the_weight() -> None:
    """Six originals, six duplicates: the summed loss doubles, and Adam does not see a factor (but for its epsilon)."""
    plain, doubled = weights_of(problem_of("none", epochs=10)), weights_of(problem_of("duplicate", epochs=10))
    for a, b in zip(plain, doubled, strict=True):
        torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)


def test_weight_zero_makes_generated_graphs_count_nothing() -> None:
    plain, weightless = weights_of(problem_of("none")), weights_of(problem_of("duplicate:weight=0"))
    for a, b in zip(plain, weightless, strict=True):
        torch.testing.assert_close(a, b)


def test_loss_is_the_weighted_sum_over_graphs() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    targets = torch.tensor([[1.0, 0.0], [0.3, 0.7]])
    by_hand = -(np.log(np.exp(2) / (np.exp(2) + 1))) - 0.5 * (
        0.3 * np.log(1 / (1 + np.e)) + 0.7 * np.log(np.e / (1 + np.e))
    )
    assert soft_cross_entropy(logits, targets, torch.tensor([1.0, 0.5])).item() == pytest.approx(by_hand, rel=1e-6)


def test_replacing_methods_leave_the_originals_out_and_appending_ones_weigh_the_new() -> None:
    replaced = training_set(problem_of("dropedge"), [ring(3, 0)])
    assert len(replaced.graphs) == 1 and replaced.weights.tolist() == [1.0]
    appended = training_set(problem_of("gdm-rand:weight=0.25"), [ring(3, 0)])
    assert len(appended.graphs) == 7 and appended.weights.tolist() == [1.0] * 6 + [0.25]


def test_divergence_names_its_epoch_and_spares_the_others() -> None:
    broken = problem_of(graphs=[ring(3, 0, float("nan")), ring(3, 1)])
    results = ReferenceEngine().fit([broken, problem_of(epochs=2)])
    assert isinstance(results[0], Diverged) and "epoch 1" in str(results[0])
    assert isinstance(results[1], Fitted)


def test_mixed_weighted_and_plain_graphs_get_ones() -> None:
    weighted = ring(3, 0)
    weighted.edge_weight = torch.full((6,), 0.5)
    batch = Batch.from_data_list(bare_graphs([ring(3, 1), weighted]))
    assert batch.edge_weight.tolist() == [1.0] * 6 + [0.5] * 6


def test_features_are_made_anew_only_where_the_augmenter_asks() -> None:
    def marked(graph: Data) -> Data:
        new = graph.clone()
        new.x = torch.full_like(graph.x, 7.0)
        return new

    carried = weights_of(problem_of("gdm-rand", epochs=2, featurize=marked))
    anew = weights_of(problem_of("gdm-rand:features=recompute", epochs=2, featurize=marked))
    assert all(torch.equal(a, b) for a, b in zip(carried, weights_of(problem_of("gdm-rand", epochs=2)), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(carried, anew, strict=True))


def test_best_val_keeps_the_earliest_best_epoch() -> None:
    training = Training(epochs=15, select="best-val")
    fitted = fit_problem(problem_of(training=training, validation=[ring(4, 0), ring(7, 1)]))
    hits = predict(fitted.predictor.model, [ring(4, 0), ring(7, 1)]).argmax(dim=1).tolist()
    every = []
    for epochs in range(1, 16):
        model = fit_problem(problem_of(epochs=epochs)).predictor.model
        every.append(predict(model, [ring(4, 0), ring(7, 1)]).argmax(dim=1).tolist())
    scores = [(a == 0) + (b == 1) for a, b in every]
    assert (hits[0] == 0) + (hits[1] == 1) == max(scores)
    earliest = fit_problem(problem_of(epochs=1 + scores.index(max(scores)))).predictor.model
    for a, b in zip(fitted.predictor.model.parameters(), earliest.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_loss_curve_is_kept_at_some_epochs() -> None:
    fitted = fit_problem(problem_of(epochs=30))
    assert [epoch for epoch, _ in fitted.curve] == curve_epochs(30)
    assert fitted.curve[-1] == (30, fitted.loss)
    assert fitted.curve[0][1] > fitted.loss


def test_dropout_draws_from_a_stream_of_the_trial_alone() -> None:
    """Same seed, same numbers, whatever was drawn before in the same process; and nothing is taken from the others."""
    dropping = problem_of(backbone=BACKBONES.resolve("gcn:width=8,layers=2,dropout=0.5"))
    losses = []
    for before in (1, 2):
        torch.manual_seed(before)
        losses.append(fit_problem(dropping).loss)
        after = torch.rand(1)
        torch.manual_seed(before)
        assert torch.rand(1) == after
    assert losses[0] == losses[1] != fit_problem(problem_of()).loss


def test_a_mean_loss_counts_both_parts_by_their_own_size() -> None:
    generated = [ring(3, 0), ring(4, 1), ring(5, 0)]
    mean = Training(loss="mean")
    data = training_set(problem_of("gdm-rand:weight=0.5", training=mean), generated)
    assert data.weights.tolist() == pytest.approx([1 / 6] * 6 + [0.5 / 3] * 3)
    assert training_set(problem_of("dropedge", training=mean), generated).weights.tolist() == pytest.approx([1 / 3] * 3)


def test_mini_batches_take_every_graph_once_an_epoch() -> None:
    problem = problem_of(training=Training(epochs=2, batch=4))
    data = training_set(problem, list(problem.graphs))
    batches = MiniBatches(problem)
    places = {id(graph): place for place, graph in enumerate(data.graphs)}
    seen = [[[places[id(graph)] for graph in part.graphs] for part in batches.split(data)] for _ in range(2)]
    assert [[len(part) for part in epoch] for epoch in seen] == [[4, 2]] * 2
    assert all(sorted([*epoch[0], *epoch[1]]) == list(range(6)) for epoch in seen) and seen[0] != seen[1]
    (whole,) = MiniBatches(problem_of(training=Training(batch=6))).split(data)
    assert whole is data


def test_mini_batches_by_hand() -> None:
    problem = problem_of(training=Training(epochs=2, batch=4))
    model, batches, data = problem.fresh_model(), MiniBatches(problem), training_set(problem, list(problem.graphs))
    adam, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(2):
        losses.append(0.0)
        for part in batches.split(data):
            adam.zero_grad()
            loss = soft_cross_entropy(model(Batch.from_data_list(part.graphs)), part.targets, part.weights)
            loss.backward()
            adam.step()
            losses[-1] += loss.item()
    fitted = fit_problem(problem)
    assert all(torch.equal(a, b) for a, b in zip(fitted.predictor.model.parameters(), model.parameters(), strict=True))
    assert [loss for _, loss in fitted.curve] == pytest.approx(losses)


@pytest.mark.parametrize("augmenter", ["none", "dropedge", "m-mixup", "flag", "gdm-rand", "gdm-rand:generated=epoch"])
def test_every_kind_of_method_takes_mini_batches(augmenter: str) -> None:
    whole, cut = (weights_of(problem_of(augmenter, training=Training(epochs=2, batch=size))) for size in (0, 4))
    assert not all(torch.equal(a, b) for a, b in zip(whole, cut, strict=True))


def test_the_final_training_may_start_from_the_pretrained_weights() -> None:
    """An epoch from there is the hundred and first of the pre-training, but for Adam's moments, which start anew."""
    problem = problem_of(training=Training(epochs=1, start="pretrained", head="relu"))
    words = {"backbone": problem.backbone, "readout": problem.readout, "ending": "relu"}
    state = pretrain(problem.graphs, 2, epochs=100, seed=problem.pretrain_seed, **words).state  # type: ignore[arg-type]
    assert all(torch.equal(value, state[name]) for name, value in first_model(problem).state_dict().items())
    model = problem.fresh_model()
    model.load_state_dict(dict(state))
    before = [weight.detach().clone() for weight in model.parameters()]
    for old, new in zip(before, weights_of(problem), strict=True):
        assert float((old - new).abs().max()) <= 0.01 * 1.001  # one step of Adam moves no weight further


def test_generated_graphs_may_change_with_every_epoch() -> None:
    once, each = problem_of("gdm-rand", epochs=3), problem_of("gdm-rand:generated=epoch", epochs=3)
    assert fit_problem(each).generated == {} and fit_problem(once).generated["count"] == 6
    assert fit_problem(each).curve[0][1] == pytest.approx(fit_problem(once).curve[0][1])  # the first draw is the same
    assert fit_problem(each).curve[2][1] != pytest.approx(fit_problem(once).curve[2][1])
