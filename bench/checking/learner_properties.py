"""Properties of learners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from augmenters import AUGMENTERS
from augmenters.base import Augmenter
from bench.checking.cases import Case, graph_cases
from bench.checking.comparing import brief, first_difference
from bench.checking.contract import BrokenError, DoesNotApplyError, Finding, one_line, verdict
from bench.checking.probes import PROBES, SoftLabels
from bench.checking.run_properties import REPEATED, shifted_globals
from bench.checking.subject import watched_globals
from bench.learning import LEARNERS
from bench.learning.isolation import unlabeled
from bench.learning.learner import Fitted, Learner, create_learner, not_distributions
from bench.learning.problem import Problem
from bench.learning.reference import ReferenceEngine
from bench.protocol.training import Training
from bench.registry import Choice, UserError
from bench.seeding import seed_from
from models import BACKBONES, READOUTS

TOLERANCE = 1e-4


@dataclass(frozen=True)
class Trained:
    """The result of training on a case, and its side effects."""

    rows: Tensor
    fitted: Fitted | None = None
    error: str | None = None
    touched: str | None = None
    leaked: str | None = None


@dataclass
class LearnerSubject:
    """One learner with its settings, created anew for each training. Networks are small GCNs trained for two epochs."""

    choice: Choice
    _seen: dict[str, Trained] = field(default_factory=dict)
    backbone: ClassVar[str] = "gcn:width=8,layers=2"
    readout: ClassVar[str] = "mean"

    @property
    def cls(self) -> type[Learner]:
        return LEARNERS.load(self.choice.name)

    def make(self) -> Learner:
        try:
            return create_learner(self.choice, ReferenceEngine())
        except TypeError as error:
            raise UserError(
                f"{self.choice.name} cannot be made: {error}; implement fit, and give every setting a default and the "
                "type bool, int, float or str"
            ) from error

    def refuses(self, augmenter: type[Augmenter]) -> str | None:
        network = self.cls.network
        parts = (BACKBONES.load("gcn"), READOUTS.load("mean")) if network else (None, None)
        return self.cls.refuses(augmenter, *parts)

    def problem(self, case: Case, augmenter: Augmenter) -> Problem:
        network = self.cls.network
        return Problem(
            graphs=[graph.clone() for graph in case.graphs],
            num_classes=case.num_classes,
            augmenter=augmenter,
            training=Training(epochs=2),
            init_seed=seed_from("check", case.name, "init"),
            augment_seed=seed_from("check", case.name, "augment"),
            pretrain_seed=seed_from("check", case.name, "pretrain"),
            shared_seed=lambda key: seed_from("check", case.name, key),
            featurize=lambda graph: graph.clone(),
            backbone=BACKBONES.resolve(self.backbone) if network else None,
            readout=READOUTS.resolve(self.readout) if network else None,
        )

    def seen(self, case: Case) -> Trained:
        if case.name not in self._seen:
            self._seen[case.name] = self.train(case)
        return self._seen[case.name]

    def train(self, case: Case, augmenter: Augmenter | None = None) -> Trained:
        """Train on a case and predict the same graphs without their labels."""
        problem = self.problem(case, augmenter or AUGMENTERS.create("none"))
        asked = [unlabeled(graph) for graph in case.graphs]
        fitted, rows, error = None, torch.empty(0), None
        with watched_globals() as leaks:
            try:
                fitted = self.make().fit(problem)
                rows = fitted.predictor.probabilities(asked)
            except UserError:
                raise
            except Exception as raised:  # third-party code: whatever it raises is a finding
                error = one_line(raised)
        touched = first_difference(case.graphs, problem.graphs)
        touched = touched or first_difference([unlabeled(graph) for graph in case.graphs], asked)
        return Trained(rows, fitted, error, touched, ", ".join(leaks) or None)


def bears(case: Case, subject: LearnerSubject) -> str | None:
    error = subject.seen(case).error
    if error is not None:
        raise BrokenError(error)
    return None


def trained_cases(subject: LearnerSubject) -> list[tuple[Case, Trained]]:
    """Every case that it runs on; failures have a row of their own in the report."""
    found = [(case, subject.seen(case)) for case in graph_cases() if subject.seen(case).error is None]
    if not found:
        raise DoesNotApplyError("it ran on no case")
    return found


def gives_distributions(subject: LearnerSubject) -> str | None:
    for case, trained in trained_cases(subject):
        wrong = not_distributions(trained.rows, len(case.graphs), case.num_classes)
        if wrong:
            raise BrokenError(f"{case.name}: {wrong}")
    return None


def repeats_itself(subject: LearnerSubject) -> str | None:
    """Results do not depend on earlier trainings or on the global generators."""
    for case, first in trained_cases(subject):
        if case.name in REPEATED:
            with shifted_globals():
                again = subject.train(case)
            if again.error or not torch.equal(first.rows, again.rows):
                raise BrokenError(f"{case.name}, a second time: {brief(first.rows)} became {brief(again.rows)}")
    return None


def judges_each_by_itself(subject: LearnerSubject) -> str | None:
    for case, trained in trained_cases(subject):
        if case.name in REPEATED and trained.fitted is not None:
            ask = trained.fitted.predictor.probabilities
            alone = torch.cat([ask([unlabeled(graph)]) for graph in case.graphs])
            unlike = (alone - trained.rows).abs().max(dim=1).values > TOLERANCE
            if alone.shape != trained.rows.shape or unlike.any():
                place = int(torch.nonzero(unlike)[0])
                found = f"{brief(trained.rows[place])} among others, {brief(alone[place])} alone"
                raise BrokenError(f"{case.name}, graph {place}: {found}")
    return None


def leaves_its_input(subject: LearnerSubject) -> str | None:
    for case in graph_cases():
        touched = subject.seen(case).touched
        if touched:
            raise BrokenError(f"{case.name}: {touched}")
    return None


def uses_no_global_generator(subject: LearnerSubject) -> str | None:
    for case in graph_cases():
        leaked = subject.seen(case).leaked
        if leaked:
            raise BrokenError(f"{case.name}: {leaked} moved; draw only from the problem's seeds")
    return None


def says_what_it_takes(subject: LearnerSubject) -> str | None:
    taken = []
    for word, cls in PROBES.items():
        reason = subject.refuses(cls)
        if not (reason is None or (isinstance(reason, str) and reason.strip())):
            raise BrokenError(f"refuses returns {reason!r} for augmenters that work {word}; return None or a reason")
        taken += [word] if reason is None else []
    return f"takes augmenters that work {', '.join(taken)}" if taken else "takes no augmenter"


def uses_what_it_takes(subject: LearnerSubject) -> str | None:
    """A learner that accepts an augmenter but never calls it would report the baseline under the augmenter's name."""
    for word, cls in PROBES.items():
        if subject.refuses(cls) is None:
            augmenter = cls()
            trained = subject.train(graph_cases()[0], augmenter)
            if trained.error:
                raise BrokenError(f"with an augmenter that works {word}: {trained.error}")
            if not augmenter.calls:
                raise BrokenError(f"an augmenter that works {word} was never called; refuse it, or use it")
    return None


def takes_soft_labels(subject: LearnerSubject) -> str | None:
    reason = subject.refuses(SoftLabels)
    if reason is not None:
        raise DoesNotApplyError(f"it refuses them: {reason}")
    trained = subject.train(graph_cases()[0], SoftLabels())
    if trained.error:
        raise BrokenError(f"it does not refuse an augmenter with mixed labels, and then fails: {trained.error}")
    return None


PROMISES: dict[str, Callable[[LearnerSubject], str | None]] = {
    "probabilities are distributions": gives_distributions,
    "same seed, same predictions": repeats_itself,
    "each graph is judged by itself": judges_each_by_itself,
    "the input is untouched": leaves_its_input,
    "no global random state is used": uses_no_global_generator,
    "says which augmenters it takes": says_what_it_takes,
    "uses the augmenters that it takes": uses_what_it_takes,
    "takes soft labels, or refuses them": takes_soft_labels,
}


def learner_findings(choice: Choice) -> list[Finding]:
    """Check one learner against the contract of learners."""
    subject = LearnerSubject(choice)
    subject.make()
    borne = [verdict(f"works on: {case.name}", partial(bears, case, subject)) for case in graph_cases()]
    return [*borne, *(verdict(title, partial(judge, subject)) for title, judge in PROMISES.items())]
