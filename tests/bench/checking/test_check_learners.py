"""What `bench check` says of learners: the one of the house holds, each defect is found."""

from __future__ import annotations

import pytest
import torch

from bench.checking import check, find
from bench.learning import LEARNERS
from bench.learning.augmentation import offline_data
from bench.learning.gnn import GNN
from bench.learning.learner import Fitted, Learner
from bench.registry import UserError


class Uniform(Learner):
    """Harmless: every class is as likely as any other; to be broken in one way by each class below."""

    def fit(self, problem):
        self.data, self.num_classes = offline_data(problem), problem.num_classes
        self.labels = self.data.samples()
        return Fitted(self)

    def probabilities(self, graphs):
        return torch.full((len(graphs), self.num_classes), 1 / self.num_classes)


class Lopsided(Uniform):
    def probabilities(self, graphs):
        return super().probabilities(graphs) * 2


class OneColumn(Uniform):
    def probabilities(self, graphs):
        return torch.ones(len(graphs), 1)


class Unseeded(Uniform):
    def probabilities(self, graphs):
        return torch.rand(len(graphs), self.num_classes).softmax(dim=1)


class Remembering(Uniform):
    trained = 0

    def fit(self, problem):
        Remembering.trained += 1
        self.share = 1 / (1 + Remembering.trained)
        return super().fit(problem)

    def probabilities(self, graphs):
        rows = super().probabilities(graphs) * (1 - self.share)
        rows[:, 0] += self.share
        return rows


class ByRank(Uniform):
    """The larger half of the graphs asked about is class 1: an answer that depends on the company."""

    def probabilities(self, graphs):
        sizes = torch.tensor([float(graph.num_nodes) for graph in graphs])
        return torch.nn.functional.one_hot((sizes > sizes.mean()).long(), self.num_classes).float()


class WritesTraining(Uniform):
    def fit(self, problem):
        problem.graphs[0].x.zero_()
        return super().fit(problem)


class WritesQuestions(Uniform):
    def probabilities(self, graphs):
        graphs[-1].x.zero_()
        return super().probabilities(graphs)


class NeedsHardLabels(Uniform):
    def fit(self, problem):
        fitted = super().fit(problem)
        [int(graph.y) for graph in self.data.graphs]
        return fitted


class IgnoresAugmenters(Uniform):
    @classmethod
    def refuses(cls, augmenter, backbone=None, readout=None):
        return None

    def fit(self, problem):
        self.num_classes = problem.num_classes
        return Fitted(self)


class SaysTrue(Uniform):
    @classmethod
    def refuses(cls, augmenter, backbone=None, readout=None):
        return True


class RefusesSoftLabels(NeedsHardLabels):
    """Right: what it cannot use it refuses."""

    @classmethod
    def refuses(cls, augmenter, backbone=None, readout=None):
        return "it knows hard labels alone" if augmenter.labels == "mixed" else super().refuses(augmenter)


DEFECTS = [
    (Lopsided, "probabilities are distributions", "graph 0 are [1.0, 1.0]"),
    (OneColumn, "probabilities are distributions", "shape [6, 1] for 6 graphs and 2 classes"),
    (Unseeded, "same seed, same predictions", "mixed sizes, a second time"),
    (Unseeded, "no global random state is used", "torch's default generator moved"),
    (Remembering, "same seed, same predictions", "mixed sizes, a second time"),
    (ByRank, "each graph is judged by itself", "among others"),
    (WritesTraining, "the input is untouched", "graph 0: x was"),
    (WritesQuestions, "the input is untouched", "graph 5: x was"),
    (NeedsHardLabels, "takes soft labels, or refuses them", "it does not refuse an augmenter with mixed labels"),
    (IgnoresAugmenters, "uses the augmenters that it takes", "before training was never called"),
    (SaysTrue, "says which augmenters it takes", "refuses returns True"),
]


@pytest.fixture(autouse=True)
def known_by_name(monkeypatch):
    """The classes of this file as if they were installed."""
    monkeypatch.setattr(LEARNERS, "_entries", dict(LEARNERS.entries()))
    for cls in {cls for cls, _, _ in DEFECTS} | {Uniform, RefusesSoftLabels}:
        LEARNERS.add(cls.__name__, cls)


def found(spec: str) -> dict[str, str]:
    return {finding.title: finding.detail for finding in check(spec).broken}


@pytest.mark.parametrize(("cls", "title", "words"), DEFECTS, ids=[f"{d[0].__name__}: {d[1]}" for d in DEFECTS])
def test_a_defect_is_found_and_its_value_named(cls, title, words):
    broken = found(f"{LEARNERS.kind}:{cls.__name__}")
    assert words in broken.get(title, f"not found; broken are {broken}")


@pytest.mark.parametrize("name", ["Uniform", "RefusesSoftLabels", "gnn"])
def test_what_is_harmless_is_not_accused(name):
    assert found(name) == {}


def test_a_name_is_found_in_whatever_kind_it_is():
    assert find("dropedge:p=0.5")[0] == "augmenter"
    assert find("mean")[0] == "readout"
    assert find("gnn") == ("learner", LEARNERS.resolve("gnn"))
    assert find("learner:bench.learning.gnn:GNN")[0] == "learner"
    assert find("bench.learning.gnn:GNN")[0] == "learner"
    assert find("models.readouts:MaxReadout")[0] == "readout"
    assert find("augmenters.controls:Unchanged")[0] == "augmenter"
    with pytest.raises(UserError, match=r"unknown augmenter, readout or learner 'meen'\. Did you mean: mean"):
        find("meen")


def test_what_cannot_be_made_is_the_users_to_mend():
    class NoEngine(GNN):
        def __init__(self) -> None: ...

    LEARNERS.add("no-engine", NoEngine)
    with pytest.raises(UserError, match="no-engine cannot be made"):
        check("no-engine")
