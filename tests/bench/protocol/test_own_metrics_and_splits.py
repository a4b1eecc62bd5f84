"""Fixed splits and other metrics, proved on generated data in the shape of OGB's molecule sets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from bench.datasets.loading import load_dataset
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.protocol.metrics import metric_value, primary, scores
from bench.protocol.splits import load_splits, resolve_splits, splits_fingerprint
from bench.registry import UserError
from bench.results.records import TrialRecord

Bench = Callable[..., tuple[int, str, str]]
DATASET = "molecules:Molecules"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)


def trials(tools: ModuleType, workspace: Path) -> list[TrialRecord]:
    held = tools.state(workspace).trials
    return [record for found in held.values() for record in found.values()]


def test_a_dataset_with_its_own_split_and_metric_runs_end_to_end(
    bench: Bench, tools: ModuleType, workspace: Callable[..., Path], tmp_path: Path
) -> None:
    runs = workspace()
    words = ["--epochs", "15", "--repeats", "2", "--executor", "serial", "--workspace", str(runs)]
    run = ["run", "-d", DATASET, "-a", "none,dropedge", "-b", "gin", "-k", "4", *words, "--data", str(tmp_path)]
    code, out, err = bench(*run)
    assert code == 0, err
    assert "test roc_auc in %" in out and "1 folds x 2 label draws" in out
    done = trials(tools, runs)
    assert len(done) == 4 and {record.fold for record in done} == {0}
    assert all(record.scores.keys() == {"roc_auc"} and record.accuracy is not None for record in done)
    cells = tools.state(runs).cells.values()
    assert {(cell.splits, cell.metric, cell.versions["metric"]) for cell in cells} == {("given", "roc_auc", 1)}
    code, out, err = bench("tables", "--workspace", str(runs), "--label", f"{DATASET}=Molecules")
    assert code == 0, err
    written = (runs / "tables" / "custom-roc_auc.md").read_text(encoding="utf-8")
    assert written.startswith("Mean ROC-AUC in percent") and "folds of the user's own (given)" in written
    assert "Molecules" in written and DATASET not in written
    shown = f"{100 * np.mean([r.scores['roc_auc'] for r in done if r.cell == done[0].cell]):.1f}"
    assert shown in written
    assert bench("tables", "--workspace", str(runs), "--metric", "accuracy")[0] == 0
    assert "classification accuracy" in (runs / "tables" / "custom-roc_auc.md").read_text(encoding="utf-8")
    assert bench("tables", "--workspace", str(runs), "--metric", "recall")[2].startswith("error: unknown metric")
    code, out, _ = bench(*run, "--dry-run", "--no-probe")
    assert (code == 0 and "nothing" in out) or "0 trials to run" in out


def test_graphs_from_a_file_with_a_split_file_of_one_fold(bench: Bench, tmp_path: Path) -> None:
    import molecules

    torch.save(molecules.molecules(), tmp_path / "graphs.pt")
    words = ["--data", str(tmp_path / "data")]
    code, out, err = bench("data", "import", "graphs.pt", "--name", "mine", "--metric", "roc_auc", *words)
    assert (code, out) == (0, "new        mine: 60 graphs, judged by roc_auc\n"), err
    fold = {"test": [*range(48, 60)], "model_selection": [{"train": [*range(36)], "validation": [*range(36, 48)]}]}
    (tmp_path / "mine_splits.json").write_text(json.dumps([fold]), encoding="utf-8")
    code, out, err = bench("data", "import", "mine_splits.json", "--family", "scaffold", *words)
    assert (code, out) == (0, "new        mine splits scaffold: 1 fold of 60 graphs\n"), err
    plan = Planner(tmp_path / "data").plan(Grid("one", product(["mine"])))
    (cell,) = plan.cells
    assert (cell.splits, cell.metric, plan.size, len(plan.trials)) == ("scaffold", "roc_auc", 3, 3)
    usual = Planner(tmp_path / "data").plan(Grid("one", product(["mine"]), metric="accuracy", splits="stratified"))
    assert usual.cells[0].metric is None and "metric" not in usual.cells[0].to_json() and usual.size == 30
    assert load_dataset("mine", tmp_path / "data").graphs[0].x.dtype == torch.float32


def test_usual_cells_know_nothing_of_metrics(tmp_path: Path) -> None:
    (cell,) = Planner(tmp_path).plan(Grid("one", product(["digits"]), metric="accuracy")).cells
    (auto,) = Planner(tmp_path).plan(Grid("one", product(["digits"]))).cells
    assert cell.key == auto.key and not {"metric", "scores"} & cell.to_json().keys()
    (other,) = Planner(tmp_path).plan(Grid("one", product(["digits"]), metric="roc_auc")).cells
    assert other.key != cell.key and other.metric == "roc_auc"


def test_a_splitter_gives_the_folds_and_they_are_known_by_their_content(tmp_path: Path) -> None:
    data = load_dataset(DATASET, tmp_path)
    assert resolve_splits(DATASET, "auto", tmp_path) == "given"
    halves = resolve_splits(DATASET, "molecules:Halves", tmp_path)
    splits = load_splits(DATASET, halves, data.labels, tmp_path)
    assert splits.num_folds == 2 and splits.test(0).tolist() == list(range(1, 60, 2))
    assert splits.fingerprint == splits_fingerprint(DATASET, halves, tmp_path)
    one = load_splits(DATASET, resolve_splits(DATASET, "holdout:test=0.2", tmp_path), data.labels, tmp_path)
    again = load_splits(DATASET, "holdout:test=0.2", data.labels, tmp_path)
    assert one.num_folds == 1 and one.fingerprint == again.fingerprint != splits.fingerprint
    parts = [one.development(0).train, one.development(0).validation, one.test(0)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(60)) and len(parts[2]) == 12
    shares = [float(data.labels[part].mean()) for part in parts]
    assert max(shares) - min(shares) < 0.1, "class by class"
    for wrong, words in (
        ("molecules:Overlapping", "train and validation parts share 1 graphs"),
        ("given", "has no folds of its own"),
        ("holdout:test=2", "test=2 is not valid"),
    ):
        with pytest.raises(UserError, match=words):
            splits_fingerprint("digits", resolve_splits("digits", wrong, tmp_path), tmp_path)


def test_datasets_with_other_numbers_of_folds_run_apart(tmp_path: Path) -> None:
    both = product(["digits", DATASET])
    with pytest.raises(UserError, match="has 1 fold and digits has 10; run them in separate commands"):
        Planner(tmp_path).plan(Grid("both", both))
    assert Planner(tmp_path).plan(Grid("both", both, folds=1)).size == 6
    two = Planner(tmp_path).plan(Grid("two", product(["digits"]), splits="molecules:Halves"))
    assert two.grid.folds == 2 and two.size == 6


def test_metrics_agree_with_their_definitions() -> None:
    truth, chance = np.array([0, 1, 1, 0]), np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]])
    assert metric_value("roc_auc", truth, chance) == roc_auc_score(truth, chance[:, 1]) == 0.75
    assert metric_value("average_precision", truth, chance) == pytest.approx((1 + 2 / 3) / 2)
    three = np.eye(3)[[0, 1, 2, 2]] * 0.8 + 0.1
    assert metric_value("roc_auc", np.array([0, 1, 2, 2]), three) == 1
    assert metric_value("molecules:Hits", truth, chance) == pytest.approx(0.65)
    usual = scores(truth, chance.argmax(axis=1), 2)
    for name in ("accuracy", "balanced_accuracy", "macro_f1"):
        assert metric_value(name, truth, chance) == usual[name] == primary(usual, name)  # type: ignore[literal-required]
    assert (
        primary(usual, None) == usual["accuracy"] and primary({**usual, "scores": {"roc_auc": 0.5}}, "roc_auc") == 0.5
    )
    with pytest.raises(UserError, match="roc_auc needs test graphs of at least two classes"):
        metric_value("roc_auc", np.array([1, 1]), chance[:2])
    with pytest.raises(UserError, match=r"gave 7\.0; it must give a number from 0 to 1"):
        metric_value("molecules:Broken", truth, chance)
