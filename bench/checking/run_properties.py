"""Properties of an augmenter's behavior: which graphs it can process, and that it has no side effects."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch

from augmenters import AUGMENTERS
from augmenters.base import GraphAugmenter, StepAugmenter, generator
from bench.checking.cases import Case, cases
from bench.checking.comparing import changed_by, first_difference, same_value
from bench.checking.contract import BrokenError, DoesNotApplyError, Property, holds
from bench.checking.subject import Outcome, Subject, context_of, make, observe
from bench.registry import Choice, show

REPEATED = ("mixed sizes", "weighted graphs")
SEEDS = (1, 2, 3)


def works_on(case: Case) -> Property:
    """The property that an augmenter runs on a case."""
    return Property(f"works on: {case.name}", partial(bears, case))


def bears(case: Case, subject: Subject) -> str | None:
    """No error occurs; a recorded fallback is worth a remark."""
    outcome = subject.outcome(case)
    if outcome.error is not None:
        raise BrokenError(outcome.error)
    return ", ".join(f"{note} {count:g}" for note, count in sorted(outcome.notes.items())) or None


@holds("works without the harness")
def works_alone(subject: Subject) -> str | None:
    """`augmenter(graphs, rng)` works outside the harness, with a classifier trained on request."""
    outcome = observe(subject.fresh(), cases()[0], standalone=True)
    if outcome.error is not None:
        raise BrokenError(outcome.error)
    return None


@holds("the input is untouched")
def input_untouched(subject: Subject) -> str | None:
    for case in cases():
        touched = subject.outcome(case).touched
        if touched:
            raise BrokenError(f"{case.name}: {touched}")
    return None


@holds("shares no memory with the input", "graphs")
def no_aliases(subject: Subject) -> str | None:
    """Even unchanged graphs are copies: writing to a new graph must never affect an original."""
    if isinstance(subject.instance, StepAugmenter):
        raise DoesNotApplyError("its graphs exist only during the step")
    for case in cases():
        aliased = subject.outcome(case).aliased
        if aliased:
            raise BrokenError(f"{case.name}: {aliased}")
    return None


@holds("no global random state is used")
def own_randomness(subject: Subject) -> str | None:
    for case in cases():
        leaked = subject.outcome(case).leaked
        if leaked:
            raise BrokenError(f"{case.name}: {leaked} moved; draw only from the `rng` passed to draw")
    return None


@holds("same seed, same result")
def repeats_itself(subject: Subject) -> str | None:
    """Results do not depend on earlier calls or on the global generators."""
    for case in (case for case in cases() if case.name in REPEATED):
        first = subject.outcome(case)
        if first.error is not None:
            continue
        with shifted_globals():
            require_same(first, observe(subject.fresh(), case), f"{case.name}, a second time")
            used, new = observe(subject.instance, case, seed=9), observe(subject.fresh(), case, seed=9)
        require_same(used, new, f"{case.name}, another seed, an instance in use beside a new one")
    return None


def require_same(first: Outcome, second: Outcome, what: str) -> None:
    found = unlike(first, second)
    if found:
        raise BrokenError(f"{what}: {found}")


def unlike(first: Outcome, second: Outcome) -> str | None:
    """Where two outcomes differ."""
    if first.error != second.error:
        return f"{first.error or 'it worked'}, then {second.error or 'it worked'}"
    if first.mixed is not None and second.mixed is not None:
        same = all(same_value(a, b) for a, b in zip(first.mixed, second.mixed, strict=True))
        return None if same else "mixed embeddings or targets differ"
    return first_difference(first.made, second.made)


@contextmanager
def shifted_globals() -> Iterator[None]:
    """Change the global generators inside the block; yields where they were afterwards."""
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(20)
    np.random.seed(20)
    torch.manual_seed(20)
    try:
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
        torch.set_rng_state(kept[2])


@holds("the drawing is all in draw", "graphs")
def apply_is_deterministic(subject: Subject) -> str | None:
    """Applying the same draw twice gives the same graphs."""
    augmenter = subject.fresh()
    case = cases()[0]
    if isinstance(augmenter, StepAugmenter):
        raise DoesNotApplyError("its step may draw from a generator returned by `draw`")
    if subject.outcome(case).error is not None or not isinstance(augmenter, GraphAugmenter):
        raise DoesNotApplyError(f"it does not work on: {case.name}")
    graphs = [graph.clone() for graph in case.graphs]
    drawn = augmenter.draw(graphs, generator(5), context_of(case, 5))
    with shifted_globals():
        first = augmenter.apply(graphs, drawn)
        second = augmenter.apply(graphs, drawn)
    found = first_difference(first, second)
    if found:
        raise BrokenError(f"applied twice: {found}")
    return None


@holds("another seed, another result")
def seed_matters(subject: Subject) -> str | None:
    case = cases()[0]
    first = subject.outcome(case)
    if first.error is not None:
        raise DoesNotApplyError(f"it does not work on: {case.name}")
    if any(unlike(first, observe(subject.instance, case, seed)) for seed in SEEDS):
        return None
    if not first.drew:
        raise DoesNotApplyError("it draws nothing at random")
    raise DoesNotApplyError(f"its random draws have no effect at these settings ({len(SEEDS) + 1} seeds)")


@holds("nothing changes at strength 0", "graphs")
def identity_at_zero(subject: Subject) -> str | None:
    """At the settings that the class declares as its identity, or at p = 0."""
    settings = harmless_settings(subject)
    weakest = make(settings)
    for case in cases():
        outcome = observe(weakest, case)
        if outcome.error is not None:
            raise BrokenError(f"{settings.label}, {case.name}: {outcome.error}")
        one_to_one = weakest.mode == "replace" and isinstance(weakest, GraphAugmenter)
        if one_to_one and len(outcome.made) != len(case.graphs):
            raise BrokenError(f"{settings.label}, {case.name}: {len(case.graphs)} graphs became {len(outcome.made)}")
        for place, graph in enumerate(outcome.made):
            partners = [case.graphs[place]] if one_to_one else case.graphs
            changes = [changed_by(original, graph, case.num_classes) for original in partners]
            if all(changes):
                raise BrokenError(f"{settings.label}, {case.name}, graph {place}: {changes[0]}")
    return f"with {settings.label}"


def harmless_settings(subject: Subject) -> Choice:
    """The augmenter's own settings, with those of its identity substituted."""
    name = subject.choice.name
    declared = type(subject.instance).identity
    offered = AUGMENTERS.settings(name)
    if declared is None:
        strength = offered.get("p")
        if strength is None:
            raise DoesNotApplyError("it has no setting p, and its class declares no `identity`")
        if strength.type is not float or (strength.bounds is not None and not strength.bounds.admits(0.0)):
            raise DoesNotApplyError("its p cannot be 0")
        declared = {"p": 0.0}
    for key in declared:
        if key not in offered:
            raise BrokenError(f"its `identity` names {key}, which is not one of its settings")
    values = {**subject.choice.settings, **{key: offered[key].check(value, name) for key, value in declared.items()}}
    words = ",".join(f"{key}={show(value)}" for key, value in declared.items())
    return Choice(name, values, words or "any settings")
