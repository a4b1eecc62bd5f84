"""GDM as a whole: counts, sharing, weights, settings, and use in somebody's own loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters import AUGMENTERS, GDM
from augmenters.base import Context
from augmenters.functional import density
from augmenters.gdm import subset_size
from bench.registry import UserError
from models.autoencoder_fit import fit_autoencoder


def ring(n: int, label: int) -> Data:
    i = torch.arange(n)
    edges = torch.stack([torch.cat([i, (i + 1) % n]), torch.cat([(i + 1) % n, i])])
    return Data(
        x=torch.rand(n, 2, generator=torch.Generator().manual_seed(n)), edge_index=edges, y=torch.tensor([label])
    )


GRAPHS = [ring(n, n % 2) for n in range(4, 12)]


def made(spec: str, seed: int = 0, graphs: list[Data] = GRAPHS) -> list[Data]:
    new: list[Data] = AUGMENTERS.create(spec)(graphs, np.random.default_rng(seed))
    return new


def test_readme_usage() -> None:
    new = GDM(sampler="unc")(GRAPHS, np.random.default_rng(0))
    assert len(new) == 9 and all(graph.y.shape == (1, 2) for graph in new)


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ("gdm-rand", 9),
        ("gdm-acc", 9),
        ("gdm-acc:without=low", 6),
        ("gdm-unc:without=high", 6),
        ("gdm-unc:count=2", 18),
        ("gdm-rand:count=0.5", 6),
    ],
)
def test_how_many_are_made(spec: str, count: int) -> None:
    assert len(made(spec)) == count


@pytest.mark.parametrize(("n", "count", "size"), [(20, 1, 7), (30, 1, 10), (4, 1, 2), (20, 0.5, 4), (10, 0.3, 1)])
def test_three_ceil_of_a_third(n: int, count: float, size: int) -> None:
    assert subset_size(n, count) == size


def test_controls_differ_in_their_wiring_alone() -> None:
    for graph in made("gdm-complete"):
        assert density(graph) == 1.0
    for graph in made("gdm-identity:sampler=acc"):
        assert graph.num_edges == 0
    plan = GDM(wiring="calibrated").draw(GRAPHS, np.random.default_rng(0), context())
    for graph, mixing in zip(GDM(wiring="calibrated").apply(GRAPHS, plan), plan.mixings, strict=True):
        first, second = density(GRAPHS[mixing.first]), density(GRAPHS[mixing.second])
        pairs = graph.num_nodes * (graph.num_nodes - 1) / 2
        assert density(graph) == pytest.approx(mixing.share * first + (1 - mixing.share) * second, abs=0.51 / pairs)


def context() -> Context:
    def classify(graphs: Any, epochs: int) -> torch.Tensor:
        return torch.rand(len(graphs), 2, generator=torch.Generator().manual_seed(1)).softmax(dim=1)

    return Context(2, classify, lambda key: np.random.default_rng(len(key)))


@pytest.fixture
def shared_keys(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys under which something was made to be shared, in order."""
    keys: list[str] = []
    share = Context.share

    def watched(self: Context, key: str, make: Any) -> Any:
        return share(self, key, lambda rng: (keys.append(key), make(rng))[1])

    monkeypatch.setattr(Context, "share", watched)
    return keys


def test_methods_of_one_trial_share_the_autoencoder(shared_keys: list[str]) -> None:
    shared = context()
    plans = [GDM(sampler=s).draw(GRAPHS, np.random.default_rng(0), shared) for s in ("acc", "unc", "rand")]
    assert len(shared_keys) == 1
    for plan in plans[1:]:
        assert plan.encoded is not None and plans[0].encoded is not None
        assert all(torch.equal(a, b) for a, b in zip(plan.encoded.rows, plans[0].encoded.rows, strict=True))
    other = [GDM(encoder="vgsae"), GDM(width=8), GDM(output="relu")]
    for augmenter in other:
        augmenter.draw(GRAPHS, np.random.default_rng(0), shared)
    assert len(shared_keys) == 4
    GDM(eps=0.7, alpha=2.0, count=0.5, padding="graph", alignment="rank").draw(GRAPHS, np.random.default_rng(0), shared)
    assert len(shared_keys) == 4


def test_controls_train_no_autoencoder(shared_keys: list[str]) -> None:
    shared = context()
    GDM(wiring="complete").draw(GRAPHS, np.random.default_rng(0), shared)
    assert not shared_keys


def test_fallbacks_are_counted() -> None:
    certain = Context(
        2, lambda graphs, epochs: torch.tensor([[1.0, 0.0]] * len(graphs)), lambda key: np.random.default_rng(0)
    )
    graphs = [ring(n, 0) for n in range(4, 8)]
    GDM(sampler="acc", wiring="identity")(graphs, np.random.default_rng(0), certain)
    GDM(sampler="unc", wiring="identity")(graphs, np.random.default_rng(0), certain)
    assert certain.notes == {"fallback_acc_empty_pool": 1.0, "fallback_unc_empty_pool": 1.0}


def test_embeddings_are_those_of_the_graphs_in_their_own_order(shared_keys: list[str]) -> None:
    shared = context()
    plan = GDM().draw(GRAPHS, np.random.default_rng(0), shared)
    (key,) = shared_keys
    expected = fit_autoencoder(GRAPHS, np.random.default_rng(len(key))).encode(GRAPHS)
    assert plan.encoded is not None
    for rows, right in zip(plan.encoded.rows, expected, strict=True):
        assert torch.equal(rows, right)


@pytest.mark.parametrize("wiring", ["threshold", "calibrated", "complete", "identity"])
def test_weighted_originals_give_weighted_graphs(wiring: Any) -> None:
    graphs = [graph.clone() for graph in GRAPHS]
    for graph in graphs:
        graph.edge_weight = torch.full((graph.num_edges,), 0.5)
    for graph in GDM(wiring=wiring)(graphs, np.random.default_rng(0)):
        assert graph.edge_weight.shape == (graph.num_edges,)
        assert ((graph.edge_weight > 0) & (graph.edge_weight <= 1)).all()
    assert all("edge_weight" not in graph for graph in GDM(wiring=wiring)(GRAPHS, np.random.default_rng(0)))


def test_degrees_of_weighted_originals_are_sums_of_weights() -> None:
    heavy = [graph.clone() for graph in GRAPHS]
    for graph in heavy:
        graph.edge_weight = torch.full((graph.num_edges,), 3.0)
    light = GDM().draw(GRAPHS, np.random.default_rng(0), context()).encoded
    other = GDM().draw(heavy, np.random.default_rng(0), context()).encoded
    assert light is not None and other is not None and not torch.allclose(light.rows[0], other.rows[0])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("gdm-acc:eps=1.5", "eps=1.5 is not valid"),
        ("gdm-acc:encoder=gae", "gsae|vgsae"),
        ("gdm-acc:sampler=unc", "fixed by the name gdm-acc"),
        ("gdm-rand:without=low", "without is fixed by the name gdm-rand"),
        ("gdm-complete:width=8", "fixed by the name gdm-complete"),
        ("gdm-cal:eps=0.2", "fixed by the name gdm-cal"),
        ("gdm-cal:without=low", "use sampler=acc or sampler=unc"),
    ],
)
def test_mistakes_are_told_in_one_line(spec: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        AUGMENTERS.create(spec)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_mistakes_in_python_are_told_too() -> None:
    with pytest.raises(UserError, match=r"GDM: sampler=foo is not valid; .*rand\|acc\|unc"):
        GDM(sampler="foo")  # type: ignore[arg-type]


def test_what_is_worth_searching() -> None:
    searched = {name for name, setting in AUGMENTERS.settings("gdm-acc").items() if setting.tune}
    assert searched == {"alpha", "count", "encoder", "eps", "structure", "weight", "width"}
    assert {name for name, s in AUGMENTERS.settings("gdm-complete").items() if s.tune} == {"alpha", "count", "weight"}


@pytest.mark.parametrize("encoder", ["gsae", "vgsae"])
def test_a_relu_after_the_encoder_makes_every_graph_complete(encoder: str) -> None:
    """No entry of H is negative, so no product of two rows is, and sigmoid of none is below a half."""
    assert all(density(graph) == 1 for graph in made(f"gdm-rand:output=relu,encoder={encoder}"))
    assert not all(density(graph) == 1 for graph in made(f"gdm-rand:encoder={encoder}"))


@pytest.mark.parametrize("structure", ["diag", "onehot", "scalar"])
def test_padding_a_graph_before_it_is_encoded(structure: Any) -> None:
    """The row of a node without edges is what the encoder gives every node that padding adds, and no other changes."""
    encoded = GDM(structure=structure).draw(GRAPHS, np.random.default_rng(0), context()).encoded
    assert encoded is not None
    key = f"autoencoder:encoder=gsae,epochs=200,structure={structure},width=64"
    model = fit_autoencoder(GRAPHS, np.random.default_rng(len(key)), structure=structure)
    padded = GRAPHS[0].clone()
    padded.num_nodes, padded.x = 9, None
    (rows,) = model.encode([padded])
    torch.testing.assert_close(rows, torch.cat([encoded.rows[0], encoded.lonely.expand(5, -1)]))


def test_graphs_are_generated_once_or_afresh_in_each_epoch() -> None:
    assert GDM().when == GDM.when == "offline"
    assert GDM(generated="epoch").when == "epoch"
    assert GDM(generated="epoch").mode == "append"
