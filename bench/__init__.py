"""augbench from Python: `bench.run(...)`, `bench.load("runs")`. Heavy modules are imported on first use."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from augmenters import AUGMENTERS
    from bench.datasets.catalogue import DATASETS
    from bench.learning import LEARNERS
    from bench.public.calls import check, inspect, load, plan, run, share, tune
    from bench.public.results import Results
    from models import BACKBONES, READOUTS

_HOMES = {
    "run": "bench.public.calls",
    "tune": "bench.public.calls",
    "plan": "bench.public.calls",
    "load": "bench.public.calls",
    "check": "bench.public.calls",
    "inspect": "bench.public.calls",
    "share": "bench.public.calls",
    "Results": "bench.public.results",
    "AUGMENTERS": "augmenters",
    "BACKBONES": "models",
    "READOUTS": "models",
    "LEARNERS": "bench.learning",
    "DATASETS": "bench.datasets.catalogue",
}
__all__ = [
    "AUGMENTERS",
    "BACKBONES",
    "DATASETS",
    "LEARNERS",
    "READOUTS",
    "Results",
    "check",
    "inspect",
    "load",
    "plan",
    "run",
    "share",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import an attribute on first access."""
    if name not in _HOMES:
        raise AttributeError(f"module 'bench' has no attribute '{name}'")
    from bench.public.packages import refuse_other_packages

    refuse_other_packages()
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Callable(ModuleType):
    """Makes the package `bench.plan` callable: Python binds this name to the package once one of its modules is
    imported.
    """

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return importlib.import_module(_HOMES["plan"]).plan(*args, **keywords)


class _Bench(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        if name == "plan" and isinstance(value, ModuleType):
            value.__class__ = _Callable
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Bench
