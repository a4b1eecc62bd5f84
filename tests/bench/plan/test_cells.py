from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench.plan.cells import Cell
from bench.protocol.features import resolve_features
from bench.protocol.training import PRESETS, Training, base_preset, featureless, preset
from bench.registry import Choice, UserError
from bench.results.records import Flaw, parse


def make_cell(**changes: object) -> Cell:
    facts = {
        "dataset": "digits",
        "features": "native",
        "splits": "stratified",
        "k": 10,
        "learner": Choice("gnn", {}, "gnn"),
        "augmenter": Choice("dropedge", {"p": 0.25}, "dropedge"),
        "backbone": Choice("gcn", {"width": 64}, "gcn"),
        "readout": Choice("mean", {}, "mean"),
        "training": Training(),
        "versions": {"protocol": 1},
    }
    return Cell(**{**facts, **changes})  # type: ignore[arg-type]


def test_json_there_and_back_is_the_same_cell() -> None:
    cell = make_cell()
    again = Cell.from_json(json.loads(json.dumps({"type": "cell", "key": cell.key, **cell.to_json()})))
    assert again == cell
    assert again.key == cell.key


def test_a_line_that_says_nothing_of_tuning_is_of_a_cell_that_was_not_tuned() -> None:
    facts = make_cell().to_json()
    del facts["tuned"]
    assert Cell.from_json(facts) == make_cell()


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "synthetic"},
        {"features": "constant"},
        {"splits": "CHEMICAL"},
        {"k": 11},
        {"learner": Choice("other", {}, "other")},
        {"backbone": None, "readout": None},
        {"augmenter": Choice("dropedge", {"p": 0.3}, "dropedge:p=0.3")},
        {"backbone": Choice("gin", {"width": 64}, "gin")},
        {"readout": Choice("max", {}, "max")},
        {"training": Training(epochs=801)},
        {"versions": {"protocol": 2}},
        {"tuned": True},
    ],
)
def test_every_setting_and_version_is_part_of_the_key(change: dict[str, object]) -> None:
    assert make_cell(**change).key != make_cell().key


def test_labels_are_part_of_the_key_because_seeds_are_made_from_them() -> None:
    assert make_cell(augmenter=Choice("dropedge", {"p": 0.25}, "another label")).key != make_cell().key


def test_a_learner_without_a_network_has_no_backbone_and_no_readout() -> None:
    cell = make_cell(learner=Choice("wl-svm", {}, "wl-svm"), backbone=None, readout=None)
    assert Cell.from_json(json.loads(json.dumps(cell.to_json()))) == cell
    assert (cell.model, cell.part_label("backbone"), cell.part_label("learner")) == ("wl-svm", "", "wl-svm")
    assert make_cell().model == "gcn mean"


def test_k_below_one_is_refused() -> None:
    with pytest.raises(UserError, match="k=0"):
        make_cell(k=0)


def test_the_standard_preset_is_the_papers() -> None:
    standard = preset("standard")
    assert (standard.epochs, standard.lr, standard.weight_decay, standard.select) == (800, 0.01, 0.0, "last")


def test_presets_are_named_and_changes_are_checked() -> None:
    assert all(name == training.preset for name, training in PRESETS.items())
    changed = preset("standard").with_settings({"epochs": "20"})
    assert changed == replace(Training(), preset="standard+epochs=20", epochs=20)
    assert changed.with_settings({"lr": 0.1}).preset == "standard+epochs=20,lr=0.1"
    assert changed.with_settings({"epochs": 800}) == preset("standard")
    assert {base_preset(one.preset) for one in (changed, preset("standard"))} == {"standard"}
    with pytest.raises(UserError, match="Did you mean: standard"):
        preset("standart")
    with pytest.raises(UserError, match="Did you mean: epochs"):
        Training().with_settings({"epoch": 3})
    with pytest.raises(UserError, match="epochs=0 is not valid"):
        Training().with_settings({"epochs": 0})


def tuned_by_fold() -> Cell:
    """A cell whose first fold has another backbone and learning rate, whose second keeps the defaults."""
    narrow = {"name": "gcn", "settings": {"width": 16}, "label": "gcn:width=16"}
    by_fold = {"0": {"backbone": narrow, "training": {"lr": 0.003}}, "1": {}}
    return make_cell(tuned=True, tuned_from={"augmenter": "dropedge"}, tuned_how="nested", by_fold=by_fold)


def test_a_cell_that_was_tuned_by_fold_gives_each_fold_its_own_settings() -> None:
    cell = tuned_by_fold()
    first, second = cell.at(0), cell.at(1)
    assert (first.backbone.label, first.training.lr, first.augmenter) == ("gcn:width=16", 0.003, cell.augmenter)
    assert (second.backbone, second.training) == (cell.backbone, cell.training)
    assert first.at(0) == first and make_cell().at(7) == make_cell()
    with pytest.raises(UserError, match=r"no tuned settings for fold 2; run bench tune with more --folds"):
        cell.at(2)


def test_the_settings_of_every_fold_are_part_of_the_key_and_of_the_ledger_line() -> None:
    cell = tuned_by_fold()
    line = json.loads(json.dumps({"type": "cell", "key": cell.key, **cell.to_json()}))
    assert Cell.from_json(line) == cell and Cell.from_json(line).key == cell.key
    parse(line)
    other = replace(cell, by_fold={**(cell.by_fold or {}), "1": {"training": {"lr": 0.02}}})
    assert len({cell.key, other.key, replace(cell, tuned_how="pooled").key, make_cell(tuned=True).key}) == 4
    assert not {"tuned_from", "tuned_how", "by_fold"} & make_cell().to_json().keys(), "as it was before any tuning"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tuned_how", "somehow"),
        ("by_fold", []),
        ("by_fold", {"first": {}}),
        ("by_fold", {"0": {"dataset": "digits"}}),
        ("by_fold", {"0": {"backbone": {"name": "gcn"}}}),
        ("by_fold", {"0": {"training": {"lr": [1]}}}),
    ],
)
def test_a_line_with_impossible_tuning_is_refused(name: str, value: object) -> None:
    line = {"type": "cell", "key": "0", **tuned_by_fold().to_json(), name: value}
    with pytest.raises(Flaw, match=name):
        parse(line)


def test_the_letter_of_the_paper_is_a_preset_of_its_own() -> None:
    paper, standard = preset("paper"), preset("standard")
    assert (paper.head, standard.head, preset("quick").head) == ("relu", "linear", "linear")
    assert replace(paper, head="linear", preset="standard") == standard
    assert paper.with_settings({"head": "linear"}).preset == "paper+head=linear"
    assert standard.with_settings({"head": "relu"}).preset == "standard+head=relu"


def test_a_preset_says_what_auto_means_for_a_dataset_without_features() -> None:
    kinds = {name: resolve_features("auto", False, otherwise=featureless(name)) for name in ("paper", "standard")}
    assert kinds == {"paper": "degree-onehot", "standard": "constant"}
    assert featureless("paper+lr=0.1,select=best-val") == "degree-onehot"
    assert resolve_features("auto", True, otherwise="degree-onehot") == "native"
    assert resolve_features("constant", False, otherwise="degree-onehot") == "constant"
