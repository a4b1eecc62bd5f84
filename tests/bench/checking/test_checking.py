"""The contract of augmenters: the built-in ones hold it, and its cases are what they say."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from augmenters import AUGMENTERS
from augmenters.base import GraphAugmenter
from bench.checking import check_augmenter
from bench.checking.cases import cases
from bench.checking.subject import watched_globals
from bench.registry import UserError

VARIANTS = [
    "gdm-acc:encoder=vgsae,structure=onehot,without=med,count=2,features=recompute",
    "gdm-complete:sampler=unc,without=low",
    "g-mixup:preset=code",
    "dropedge:p=1",
    "dropnode:p=1",
    "softedge:p=1",
]


@pytest.mark.parametrize("spec", [*AUGMENTERS.names(), *VARIANTS])
def test_every_augmenter_of_the_house_holds_the_contract(spec, monkeypatch):
    if spec in ("gdm-acc", "gdm-unc", "gdm-cal"):  # the auto-encoder of gdm-rand, which is trained in full
        monkeypatch.setattr("augmenters.gdm.EPOCHS", 20)
    assert check_augmenter(spec).broken == []


def test_rows_that_say_nothing_of_an_augmenter_say_why():
    rows = {f.title: f for f in check_augmenter("m-mixup").findings}
    assert rows["no self loops"].status == "does not apply"
    assert rows["no self loops"].detail == "it mixes embeddings and makes no graphs"
    assert rows["mix keeps shapes"].status == "holds"
    assert (
        "no setting p"
        in {f.title: f for f in check_augmenter("gdm-complete").findings}["nothing changes at strength 0"].detail
    )


def test_an_empty_pool_of_difficulty_is_a_case_of_its_own():
    rows = {f.title: f.detail for f in check_augmenter("gdm-complete:sampler=acc").findings}
    assert rows["works on: all predicted right"] == "fallback_acc_empty_pool 1"
    assert rows["works on: all predicted wrong"] == "fallback_acc_empty_pool 1"
    assert rows["works on: mixed sizes"] == ""


def test_the_cases_are_what_their_names_say():
    by_name = {case.name: case.graphs for case in cases()}
    assert all(g.num_nodes == 1 for g in by_name["graphs of one node"])
    assert all(g.num_edges == 0 for g in by_name["graphs without edges"])
    assert all(g.num_edges == g.num_nodes * (g.num_nodes - 1) for g in by_name["complete graphs"])
    assert all(g.edge_weight.min() > 0 and g.is_undirected() for g in by_name["weighted graphs"])
    assert all(g.has_isolated_nodes() and g.num_edges for g in by_name["isolated nodes"])
    assert len(by_name["two per class (digits)"]) == 20
    for graphs in by_name.values():
        assert all(g.is_undirected() and not g.has_self_loops() and g.is_coalesced() for g in graphs)


def test_a_class_that_cannot_be_made_is_the_users_to_mend(monkeypatch):
    monkeypatch.setattr(AUGMENTERS, "_entries", dict(AUGMENTERS.entries()))

    class NoApply(GraphAugmenter):
        when: ClassVar[str] = "epoch"

        def draw(self, graphs, rng, context):
            return None

    AUGMENTERS.add("no-apply", NoApply)
    with pytest.raises(UserError, match="no-apply cannot be made"):
        check_augmenter("no-apply")


def test_moved_generators_are_noticed():
    with watched_globals() as leaks:
        pass
    assert leaks == []
    with watched_globals() as leaks:
        random.random()
        np.random.random()
        torch.rand(1)
    assert leaks == ["random", "numpy.random", "torch's default generator"]


def test_settings_of_the_identity_come_from_the_class(monkeypatch):
    @dataclass(frozen=True)
    class Shifted(GraphAugmenter):
        by: float = 1.0
        when: ClassVar[str] = "epoch"
        identity: ClassVar[dict] = {"by": 0.0}

        def draw(self, graphs, rng, context):
            return None

        def apply(self, graphs, drawn):
            new = [graph.clone() for graph in graphs]
            for graph in new:
                graph.x = graph.x + self.by
            return new

    monkeypatch.setattr(AUGMENTERS, "_entries", {**AUGMENTERS.entries()})
    AUGMENTERS.add("shifted", Shifted)
    report = check_augmenter("shifted")
    row = next(f for f in report.findings if f.title == "nothing changes at strength 0")
    assert (row.status, row.detail) == ("holds", "with by=0")
    assert report.broken == []
