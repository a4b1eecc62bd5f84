"""The checks behind `bench check`, also for your own tests: `check("my_package.module:Mine").broken == []`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from augmenters import AUGMENTERS

# The order of these imports is the order of the rows in the report.
from bench.checking import embedding_properties, graph_properties, run_properties  # noqa: F401
from bench.checking.cases import cases
from bench.checking.contract import CONTRACT, Finding, Property, judge
from bench.checking.learner_properties import learner_findings
from bench.checking.readout_properties import readout_findings
from bench.checking.subject import Subject
from bench.learning import LEARNERS
from bench.registry import Choice, Registry, UserError, split_spec, unknown
from models import READOUTS

__all__ = ["Finding", "Report", "check", "check_augmenter", "contract", "find"]


@dataclass(frozen=True)
class Report:
    """The findings for one plug-in, one for each property that its kind promises."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.status == "broken"]

    def count(self, status: str) -> int:
        return sum(finding.status == status for finding in self.findings)

    def __repr__(self) -> str:
        broken = "; ".join(f"{finding.title}: {finding.detail}" for finding in self.broken)
        words = f"{self.count('holds')} properties hold, {self.count('does not apply')} do not apply"
        return f"<Report of {self.name}: {words}, {len(self.broken)} broken{f' ({broken})' if broken else ''}>"


def contract() -> list[Property]:
    """The properties of an augmenter: first that it runs on each case, then what must hold for its output."""
    return [*(run_properties.works_on(case) for case in cases()), *CONTRACT]


def augmenter_findings(choice: Choice) -> list[Finding]:
    """Check one augmenter against the whole contract."""
    subject = Subject.of(choice)
    return [judge(subject, item) for item in contract()]


@dataclass(frozen=True)
class Kind:
    """A kind of plug-in that can be checked."""

    registry: Registry
    findings: Callable[[Choice], list[Finding]]


KINDS = {
    "augmenter": Kind(AUGMENTERS, augmenter_findings),
    "readout": Kind(READOUTS, readout_findings),
    "learner": Kind(LEARNERS, learner_findings),
}


def find(spec: str) -> tuple[str, Choice]:
    """The kind and the plug-in of `name[:settings]` or `package.module:Class[:settings]`.

    If two kinds have the same name, the first is used; `readout:NAME` and `learner:NAME` are explicit.
    """
    prefix, _, rest = spec.partition(":")
    if prefix in KINDS and rest:
        return prefix, KINDS[prefix].registry.resolve(rest)
    name = split_spec(spec)[0]
    for word, kind in KINDS.items():
        if name in kind.registry.entries() or (":" in name and _loads(kind.registry, name)):
            return word, kind.registry.resolve(spec)
    if ":" in name:
        return "augmenter", AUGMENTERS.resolve(spec)  # raises an error that explains what is wrong with the path
    raise unknown("augmenter, readout or learner", name, (n for kind in KINDS.values() for n in kind.registry.names()))


def _loads(registry: Registry, name: str) -> bool:
    try:
        registry.load(name)
    except UserError:
        return False
    return True


def check_augmenter(spec: str | Choice) -> Report:
    """Check one augmenter, `name[:settings]` or `package.module:Class[:settings]`, against the whole contract."""
    choice = AUGMENTERS.resolve(spec)
    return Report(choice.label, tuple(augmenter_findings(choice)))


def check(spec: str) -> Report:
    """Check one plug-in against the contract of its kind."""
    kind, choice = find(spec)
    return Report(choice.label, tuple(KINDS[kind].findings(choice)))
