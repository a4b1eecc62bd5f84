"""Augmenters joined by a plus: the grammar, the order, the streams, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hand_graphs import context, edges_of, path, ring

from augmenters import AUGMENTERS, DropEdge, MaskAttr, NodeSam
from augmenters.base import generator
from augmenters.composed import compose
from bench.checking import check_augmenter
from bench.plan.identity import plugin_version
from bench.plan.planner import Planner
from bench.protocol.training import preset
from bench.registry import UserError
from bench.tuning.space import space_for
from tables.specs import Coordinate


def test_the_grammar() -> None:
    choice = AUGMENTERS.resolve("dropedge:p=0.2+maskattr")
    assert (choice.name, choice.label) == ("dropedge+maskattr", "dropedge:p=0.2+maskattr")
    assert choice.settings == {"dropedge.features": "carry", "dropedge.p": 0.2, "maskattr.p": 0.2}
    assert AUGMENTERS.resolve(choice.label) == choice
    assert AUGMENTERS.resolve("dropedge+maskattr:dropedge.p=0.2") == choice
    assert AUGMENTERS.resolve("dropedge + maskattr:p=1e-1").label == "dropedge+maskattr:p=0.1"
    assert AUGMENTERS.resolve("featurenoise:std=1e+2+dropedge").settings["featurenoise.std"] == 100
    made = AUGMENTERS.create(choice)
    assert made.parts == [DropEdge(p=0.2), MaskAttr(p=0.2)]
    assert AUGMENTERS.settings("dropedge+maskattr")["dropedge.p"].tune is not None
    assert AUGMENTERS.load("dropedge+maskattr") is type(made)


def test_the_order_matters_to_the_name_and_the_versions_of_all_parts_count() -> None:
    assert AUGMENTERS.resolve("maskattr+dropedge").name == "maskattr+dropedge"
    assert plugin_version(AUGMENTERS, "dropedge+maskattr") == "dropedge=1+maskattr=1"


def test_one_after_the_other_each_with_a_stream_of_its_own() -> None:
    graphs = [ring(30), path(20)]
    composed = AUGMENTERS.create("dropedge:p=0.5+maskattr:p=0.5")
    first, second = np.random.default_rng(5).integers(2**63, size=2).tolist()
    expected = MaskAttr(p=0.5)(DropEdge(p=0.5)(graphs, generator(first)), generator(second))
    made = composed(graphs, np.random.default_rng(5), context())
    for one, other, original in zip(made, expected, graphs, strict=True):
        assert torch.equal(one.x, other.x) and torch.equal(one.edge_index, other.edge_index)
        assert edges_of(one) < edges_of(original) and not torch.equal(one.x, original.x)
    assert edges_of(graphs[0]) == edges_of(ring(30))


def test_what_a_part_makes_the_next_one_sees() -> None:
    made = AUGMENTERS.create("dropnode:p=0.5+dropedge:p=0")([ring(10)], np.random.default_rng(0), context())
    assert made[0].num_nodes == 5


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("gdm-acc+dropedge", "gdm-acc works once before training"),
        ("dropedge+m-mixup", "m-mixup works inside the step"),
        ("flag+dropedge", "flag works inside the step"),
        ("dropedge+dropedge", "twice"),
        ("dropedge+nothing", "unknown augmenter 'nothing'"),
        ("dropedge:q=1+maskattr", "dropedge has no setting 'q'"),
    ],
)
def test_what_cannot_be_composed_is_refused_with_a_reason(spec: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        AUGMENTERS.resolve(spec)


def test_features_made_anew_would_undo_a_mask() -> None:
    with pytest.raises(UserError, match="set features=carry for PerturbEdge"):
        AUGMENTERS.create("perturbedge+maskattr")
    assert AUGMENTERS.create("perturbedge:features=carry+maskattr").features == "carry"
    assert AUGMENTERS.create("perturbedge+dropnode").features == "recompute"


def test_what_the_parts_say_the_whole_says() -> None:
    assert compose({"softedge": AUGMENTERS.load("softedge"), "nodesam": NodeSam}).weighted
    assert not AUGMENTERS.load("dropedge+maskattr").weighted
    assert AUGMENTERS.load("dropedge+maskattr").labels == "kept"


@pytest.mark.parametrize("spec", ["dropedge:p=0.2+maskattr", "nodesam+dropnode"])
def test_a_composition_holds_the_contract(spec: str) -> None:
    assert check_augmenter(spec).broken == []


def test_the_settings_of_all_parts_can_be_searched(tmp_path: Path) -> None:
    cell = Planner(tmp_path).cell(Coordinate("digits", 3, "dropedge+maskattr:p=0.1"), preset("quick"))
    space = space_for(cell, {"dropedge.p": "0.1..0.2"})
    (found,) = (one for one in space.dimensions if one.part == "augmenter")  # what the user wrote stays
    assert (found.name, found.low, found.high) == ("augmenter.dropedge.p", 0.1, 0.2)
    assert space.apply(cell, {found.name: 0.15}).augmenter.label == "dropedge:p=0.15+maskattr:p=0.1"
    assert cell.versions["augmenter"] == "dropedge=1+maskattr=1"
