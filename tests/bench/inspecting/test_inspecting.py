"""What `bench inspect` measures, against hand-computed graphs; that it sees what a run trains on; what it keeps."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import torch
from rich.console import Console
from torch_geometric.data import Data

from bench.cli.inspect_report import inspect_and_report
from bench.execution.trial import TrialRunner, engines
from bench.inspecting import looking, shapes
from bench.inspecting.features import feature_distance, feature_rows, new_rows
from bench.inspecting.looking import chosen_trials, inspect_trials, resolve_cells
from bench.inspecting.request import InspectRequest
from bench.inspecting.shapes import Shape, distances, grown_piece, pooled, shape_of
from bench.inspecting.summary import figures, remarks
from bench.learning.augmentation import make_context
from bench.learning.steps import ModelView
from bench.plan.cells import Trial
from bench.registry import UserError


def graph(nodes, *pairs, weight=None):
    both = [*pairs, *((b, a) for a, b in pairs)]
    data = Data(edge_index=torch.tensor(both, dtype=torch.long).reshape(-1, 2).T, num_nodes=nodes)
    if weight is not None:
        data.edge_weight = torch.full((data.num_edges,), weight)
    return data


def measured(data):
    return shape_of(data, np.random.default_rng(0))


def test_a_triangle_with_a_tail():
    found = measured(graph(4, (0, 1), (1, 2), (0, 2), (2, 3)))
    assert found.nodes == 4
    assert found.density == pytest.approx(4 / 6)
    assert found.degree.tolist() == [2, 2, 3, 1]
    assert found.clustering == pytest.approx([1, 1, 1 / 3, 0])
    assert found.weight is None
    assert not found.pieced


def test_spectra_known_by_heart():
    assert measured(graph(2, (0, 1))).spectrum == pytest.approx([0, 2])
    complete = graph(5, *[(a, b) for a in range(5) for b in range(a)])
    assert measured(complete).spectrum == pytest.approx([0] + [5 / 4] * 4)
    ring = graph(6, *[(a, (a + 1) % 6) for a in range(6)])
    assert measured(ring).spectrum == pytest.approx(sorted(1 - np.cos(2 * np.pi * np.arange(6) / 6)), abs=1e-9)


def test_a_node_alone_and_a_graph_without_edges():
    alone = measured(graph(1))
    assert (alone.density, alone.degree.tolist(), alone.clustering.tolist(), alone.spectrum.tolist()) == (
        0,
        [0],
        [0],
        [0],
    )
    assert measured(graph(3)).spectrum.tolist() == [0, 0, 0]


def test_weights_are_reported_and_do_not_count_as_structure():
    found = measured(graph(3, (0, 1), (1, 2), weight=0.25))
    assert found.weight == pytest.approx(0.25)
    assert found.degree.tolist() == [1, 2, 1]


def test_an_edge_listed_twice_is_one():
    assert measured(graph(2, (0, 1), (0, 1))).degree.tolist() == [1, 1]


def test_large_graphs_are_seen_through_a_connected_piece(monkeypatch):
    monkeypatch.setattr(shapes, "MOST_NODES", 50)
    monkeypatch.setattr(shapes.grown_piece, "__defaults__", (50,))
    n = 200
    lattice = graph(n, *[(a, (a + step) % n) for a in range(n) for step in (1, 2)])
    found = measured(lattice)
    assert found.pieced
    assert len(found.degree) == n  # degrees and density are always exact
    assert set(found.degree) == {4}
    assert found.density == pytest.approx(4 / (n - 1))
    assert len(found.clustering) == len(found.spectrum) == 50
    assert np.median(found.clustering) == pytest.approx(0.5)  # as in the whole; only the rim differs
    assert found.spectrum[0] == pytest.approx(0, abs=1e-9)
    assert found.spectrum[1] > 1e-6  # one component


def test_a_piece_goes_on_in_another_component():
    import scipy.sparse as sp

    blocks = sp.csr_array(sp.block_diag([np.ones((3, 3))] * 4))
    assert len(grown_piece(blocks, np.random.default_rng(1), size=7)) == 7


def shape_with(degree):
    return Shape(len(degree), 0.5, np.array(degree, dtype=float), np.zeros(1), np.zeros(1), None, False)


def test_every_graph_counts_the_same_in_a_distance():
    small, large = shape_with([0]), shape_with([2] * 9)
    values, weights = pooled([small, large], "degree")
    assert weights[values == 0].sum() == pytest.approx(weights[values == 2].sum())
    # half of the mass moves from 0 to 2
    assert distances([small, large], [large])["degree"] == pytest.approx(1.0)
    assert distances([small, large], [large, small])["degree"] == pytest.approx(0.0)


def test_trials_follow_one_another_over_the_folds():
    assert chosen_trials(8, 0, 4) == [Trial(8, 0), Trial(9, 0), Trial(0, 1), Trial(1, 1)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fold": 10}, "--fold 10 is not a fold"),
        ({"repeat": -1}, "--repeat -1"),
        ({"trials": 0}, "--trials 0"),
        ({"augmenters": []}, "add -a NAME"),
        ({"augmenters": ["m-mixup"]}, "m-mixup mixes embeddings inside the step and makes no graphs"),
        ({"augmenters": ["dropegde"]}, "Did you mean: dropedge"),
        ({"dataset": "PROTEINZ"}, "unknown dataset 'PROTEINZ'"),
        ({"dataset": "PROTEINS"}, "is not in the data root"),
        ({"k": 0}, "k=0 is not a label budget"),
    ],
)
def test_a_mistake_is_one_line(change, words, tmp_path):
    options = {"dataset": "digits", "augmenters": ["none"], "k": 1, "trials": 1, **change}
    with pytest.raises(UserError, match=words.replace("(", r"\(")) as error:
        inspect_and_report(
            InspectRequest(workspace=tmp_path / "w", data=tmp_path, **options), Console(file=io.StringIO())
        )
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("augmenter", ["gdm-rand", "g-mixup"])
def test_it_looks_at_the_graphs_that_a_run_trains_on(augmenter, tmp_path):
    """The ledger's figures of the same trial are the same numbers."""
    cells = resolve_cells("synthetic:graphs=80,nodes=12,degree=2", [augmenter], 2, tmp_path)
    seen = inspect_trials(cells, [Trial(3, 1)], tmp_path, lambda label, trial: None)
    cell = seen.cells[augmenter]
    record = TrialRunner(tmp_path, engines()["reference"]()).run([(one_epoch(cell), Trial(3, 1))])[0]
    assert record.done, record.reason
    found = figures(seen.columns[-1])
    assert record.generated["count"] == found["graphs"][0]
    assert record.generated["density"] == pytest.approx(found["density"][0], rel=1e-9)
    assert record.generated["density_original"] == pytest.approx(figures(seen.columns[0])["density"][0], rel=1e-9)
    assert record.seconds["augment"] > 0


def one_epoch(cell):
    from dataclasses import replace

    return replace(cell, training=replace(cell.training, epochs=1))


def test_graphs_that_stay_are_at_no_distance_and_dropped_nodes_are_seen(tmp_path):
    cells = resolve_cells("digits", ["none", "dropnode:p=0.5", "softedge"], 1, tmp_path)
    heard = []
    seen = inspect_trials(
        cells, chosen_trials(0, 0, 2), tmp_path, lambda label, trial: heard.append((label, trial.fold))
    )
    assert heard[:2] == [("none", 0), ("dropnode:p=0.5", 0)]
    by_label = {column.label: figures(column) for column in seen.columns}
    assert {by_label["none"][f"{name}_distance"][0] for name in shapes.COMPARED} == {0.0}
    assert by_label["other originals"]["degree_distance"][0] > 0
    kept = by_label["dropnode:p=0.5"]["nodes"][0] / by_label["originals"]["nodes"][0]
    assert 0.45 < kept < 0.55
    assert by_label["softedge"]["edge_weight"][0] == pytest.approx(1 - 0.25 / 2, abs=0.02)
    assert by_label["none"]["label_entropy"] == (0.0, 0.0)
    assert "seconds_per_graph" not in by_label["originals"]


def test_fallbacks_are_shared_out_over_trials(tmp_path, monkeypatch):
    cells = resolve_cells("synthetic:graphs=40", ["gdm-complete:sampler=acc"], 1, tmp_path)

    def always_right(problem):
        context = make_context(problem)
        context.classify = lambda graphs, epochs: torch.eye(4)
        return context

    monkeypatch.setattr(looking, "make_context", always_right)
    seen = inspect_trials(cells, chosen_trials(0, 0, 2), tmp_path, lambda label, trial: None)
    assert figures(seen.columns[-1])["fallback_share"] == (1.0, 0.0)
    assert "gdm-complete:sampler=acc: fallback_acc_empty_pool in 2 of 2 trials" in remarks(seen)


def test_label_entropy_of_two_halves_is_one_bit(tmp_path):
    cells = resolve_cells("synthetic:graphs=40", ["none"], 1, tmp_path)
    problem, _ = TrialRunner(tmp_path, engines()["reference"]()).problem(cells["none"], Trial(0, 0))
    half = graph(2, (0, 1))
    half.y = torch.tensor([[0.5, 0.5, 0.0, 0.0]])
    assert looking.look_at(problem, [half], "x", Trial(0, 0)).entropy == pytest.approx(1.0)


def test_table_picture_and_run_are_kept_and_replaced(tmp_path):
    from mlflow import MlflowClient

    from bench.results.workspace import Workspace

    request = InspectRequest("digits", ["dropedge", "g-mixup"], k=1, trials=2, workspace=tmp_path / "w", data=tmp_path)
    for _ in range(2):
        out = io.StringIO()
        outcome = inspect_and_report(request, Console(file=out, width=100))
        picture, numbers = outcome.picture, outcome.figures
    assert picture.parent == tmp_path / "w" / "inspect"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "distance: spectrum" in out.getvalue()
    rows = {row["graphs_of"]: row for row in csv.DictReader(io.StringIO(numbers.read_text(encoding="utf-8")))}
    assert list(rows) == ["originals", "other originals", "dropedge", "g-mixup"]
    assert float(rows["dropedge"]["density"]) < float(rows["originals"]["density"])
    assert rows["originals"]["degree_distance"] == ""

    client = MlflowClient(Workspace(request.workspace).tracking_uri)
    experiment = client.get_experiment_by_name("inspect")
    runs = {run.data.params["augmenter"]: run for run in client.search_runs([experiment.experiment_id])}
    assert sorted(runs) == ["dropedge", "g-mixup"]
    assert len(client.search_runs([experiment.experiment_id])) == 2
    metrics = runs["dropedge"].data.metrics
    assert metrics["density"] == pytest.approx(float(rows["dropedge"]["density"]), rel=1e-4)
    assert metrics["density_original"] == pytest.approx(float(rows["originals"]["density"]), rel=1e-4)
    kept = {file.path for file in client.list_artifacts(runs["dropedge"].info.run_id)}
    assert kept == {picture.name, numbers.name, "provenance.json"}


def test_feature_distances_by_hand():
    first = [np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 1.0]])]  # first feature: mean 0.75, each graph a half
    second = [np.array([[1.0, 3.0]])]
    assert feature_distance(first, second) == pytest.approx((0.25 + 2.0) / 2)
    assert feature_distance(first, first) == 0
    assert new_rows(first, [np.array([[1.0, 1.0], [0.0, 1.0], [-0.0, 1.0], [0.5, 1.0]])]) == 0.25
    bare = [feature_rows(graph(3, (0, 1)))]
    assert feature_distance(bare, bare) is None and new_rows(bare, bare) is None


def test_a_method_that_only_changes_features_is_seen(tmp_data_root):
    cells = resolve_cells("digits", ["featurenoise", "dropedge"], 2, tmp_data_root)
    seen = inspect_trials(cells, chosen_trials(0, 0, 1), tmp_data_root, lambda label, trial: None)
    noise, dropped = (figures(column) for column in seen.columns[2:])
    assert noise["degree_distance"][0] == 0 and noise["feature_distance"][0] > 0.01
    assert noise["new_feature_rows"][0] == 1
    assert dropped["degree_distance"][0] > 0 and dropped["new_feature_rows"][0] == dropped["feature_distance"][0] == 0


@pytest.mark.parametrize("name", ["flag", "graph-transplant:p=1"])
def test_of_a_method_inside_the_step_it_looks_at_the_first_one(name, tmp_path, monkeypatch):
    """The graphs that the reference engine learns from in its first epoch."""
    learned = []
    learn = ModelView.learn

    def watched(view, graphs, share=1.0):
        learned.extend(graphs)
        return learn(view, graphs, share)

    cells = resolve_cells("synthetic:graphs=80,nodes=12,degree=2", [name], 2, tmp_path)
    seen = inspect_trials(cells, [Trial(3, 1)], tmp_path, lambda label, trial: None).columns[-1]
    (cell,) = cells.values()
    with monkeypatch.context() as patched:
        patched.setattr(ModelView, "learn", watched)
        record = TrialRunner(tmp_path, engines()["reference"]()).run([(one_epoch(cell), Trial(3, 1))])[0]
    assert record.done, record.reason
    assert len(seen.examples) == len(learned) == seen.looks[0].count
    for one, other in zip(seen.examples, learned, strict=True):
        assert torch.equal(one.edge_index, other.edge_index) and one.num_nodes == other.num_nodes
    entropy = seen.looks[0].entropy
    assert entropy == 0 if name == "flag" else entropy > 0
