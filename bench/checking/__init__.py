"""`bench check`, and the same for somebody's own tests: `check_augmenter("my_package.module:Mine").broken == []`."""

from __future__ import annotations

from dataclasses import dataclass

# The order of these imports is the order of the report's rows.
from bench.checking import embedding_properties, graph_properties, run_properties
from bench.checking.cases import cases
from bench.checking.contract import CONTRACT, Finding, Property, judge
from bench.checking.subject import Subject
from bench.registry import Choice

__all__ = ["Finding", "Report", "check_augmenter", "contract", "embedding_properties", "graph_properties"]


@dataclass(frozen=True)
class Report:
    """What was found of one augmenter, a finding for each property of the contract."""

    augmenter: str
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.status == "broken"]

    def count(self, status: str) -> int:
        return sum(finding.status == status for finding in self.findings)


def contract() -> list[Property]:
    """Every property: first that it runs on each case, then what must be true of what comes out."""
    return [*(run_properties.works_on(case) for case in cases()), *CONTRACT]


def check_augmenter(spec: str | Choice) -> Report:
    """Hold one augmenter, `name[:settings]` or `package.module:Class[:settings]`, to the whole contract."""
    subject = Subject.of(spec)
    return Report(subject.choice.label, tuple(judge(subject, item) for item in contract()))
