"""The estimate of what a trial needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Context
from augmenters.kinds import OneByOneAugmenter
from bench.learning.memory import estimated_peak

Make = Callable[..., Any]


def test_the_estimate_grows_with_what_is_trained(problem: Make) -> None:
    plain = estimated_peak(problem("none"), "fast")
    assert estimated_peak(problem("none", backbone="gcn:width=128"), "fast") > plain
    assert estimated_peak(problem("none", backbone="gcn:dropout=0.5"), "fast") > plain
    assert estimated_peak(problem("dropedge"), "fast") > plain
    assert estimated_peak(problem("gdm-unc"), "fast") > plain
    assert estimated_peak(problem("gdm-unc", backbone="gat"), "fast") > estimated_peak(problem("gdm-unc"), "fast")
    assert estimated_peak(problem("none"), "reference") > plain


class Copies(OneByOneAugmenter):
    mode = "append"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> None:
        return None

    def generate_each(self, graphs: Sequence[Data], drawn: None) -> Iterator[Data]:
        yield from graphs


class DenseCopies(Copies):
    near_complete = True


def test_a_third_party_may_say_that_its_graphs_are_near_complete(problem: Make) -> None:
    for engine in ("fast", "reference"):
        assert estimated_peak(problem(DenseCopies()), engine) == estimated_peak(problem("gdm-unc"), engine)
    assert estimated_peak(problem(DenseCopies()), "reference") > estimated_peak(problem(Copies()), "reference")


def test_what_is_handed_over_needs_what_the_reference_needs(problem: Make) -> None:
    left = problem(batch=4, backbone="gcn:dropout=0.5")
    assert estimated_peak(left, "fast") == estimated_peak(left, "reference")
