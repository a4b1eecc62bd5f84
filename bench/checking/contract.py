"""The contract: one small function per property, and the findings for an augmenter that keeps or breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from torch_geometric.data import Data

from bench.checking.cases import Case
from bench.checking.subject import Subject
from bench.registry import UserError

Status = Literal["holds", "broken", "does not apply"]
Judge = Callable[[Subject], str | None]  # returns a remark, or raises one of the two errors below
GraphJudge = Callable[[Data, Case, Subject], str | None]  # returns what is wrong with a graph, if anything
Concern = Literal["any", "graphs", "embeddings"]


class BrokenError(Exception):
    """The property does not hold; the message contains the offending value."""


class DoesNotApplyError(Exception):
    """The property does not apply to this augmenter; the message says why."""


@dataclass(frozen=True)
class Property:
    """A property that every augmenter of a kind must have."""

    title: str
    judge: Judge
    concern: Concern = "any"


@dataclass(frozen=True)
class Finding:
    """One row of the report."""

    title: str
    status: Status
    detail: str = ""


CONTRACT: list[Property] = []


def holds(title: str, concern: Concern = "any") -> Callable[[Judge], Judge]:
    """Register a function as a property with this title."""

    def register(judge: Judge) -> Judge:
        CONTRACT.append(Property(title, judge, concern))
        return judge

    return register


def holds_for_each_graph(title: str) -> Callable[[GraphJudge], GraphJudge]:
    """Register a function that judges single graphs; it is applied to every graph of every case."""

    def register(judge: GraphJudge) -> GraphJudge:
        def over_all(subject: Subject) -> str | None:
            for case, place, graph in looked_at(subject):
                wrong = judge(graph, case, subject)
                if wrong:
                    raise BrokenError(f"{case.name}, graph {place}: {wrong}")
            return None

        CONTRACT.append(Property(title, over_all, "graphs"))
        return judge

    return register


def looked_at(subject: Subject) -> Iterator[tuple[Case, int, Data]]:
    """All well-formed graphs that were generated; malformed ones are reported by a property of their own."""
    from bench.checking.graph_properties import malformed

    some = False
    for case, outcome in subject.outcomes():
        for place, graph in enumerate(outcome.made):
            if malformed(graph, case, subject) is None:
                some = True
                yield case, place, graph
    if not some:
        raise DoesNotApplyError("it generated no well-formed graph")


def judge(subject: Subject, item: Property) -> Finding:
    """One row of the report."""
    if item.concern == "graphs" and not subject.makes_graphs:
        return Finding(item.title, "does not apply", "it mixes embeddings and makes no graphs")
    if item.concern == "embeddings" and subject.makes_graphs:
        return Finding(item.title, "does not apply", "it makes graphs and mixes no embeddings")
    return verdict(item.title, partial(item.judge, subject))


def verdict(title: str, judge: Callable[[], str | None]) -> Finding:
    """The result of a property's function as a row of the report."""
    try:
        return Finding(title, "holds", judge() or "")
    except BrokenError as error:
        return Finding(title, "broken", str(error))
    except DoesNotApplyError as error:
        return Finding(title, "does not apply", str(error))
    except UserError:
        raise
    except Exception as error:  # third-party code: whatever it raises is a finding, not a failure of ours
        return Finding(title, "broken", one_line(error))


def one_line(error: Exception) -> str:
    """An error as one row of the report."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
