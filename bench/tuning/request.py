"""The request of a search, as one typed value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.execution.request import RunRequest
from bench.registry import UserError, unknown
from bench.tuning.objective import VALIDATION
from bench.tuning.strategies import PRUNERS, SAMPLERS
from bench.tuning.study import Search


@dataclass(frozen=True)
class TuneRequest:
    """A search; the part that it has in common with a run is in `run`."""

    run: RunRequest
    search: Search
    validation: str = "budget"
    storage: str | None = None
    timeout: float | None = None
    narrowing: Mapping[str, str] = field(default_factory=dict)
    pooled: bool = False

    def check(self) -> None:
        """Validate what can be validated without looking at the machine."""
        self.run.check()
        if self.search.trials < 1:
            raise UserError(
                f"--trials {self.search.trials} searches nothing; give 1 or more (the first one uses the defaults)"
            )
        if self.timeout is not None and not self.timeout > 0:
            raise UserError(f"--timeout {self.timeout:g} leaves no time; give more than 0 seconds")
        for kind, name, known in (
            ("validation", self.validation, VALIDATION),
            ("sampler", self.search.sampler, SAMPLERS),
            ("pruner", self.search.pruner, PRUNERS),
        ):
            if name not in known:
                raise unknown(kind, name, known)
