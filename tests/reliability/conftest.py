"""The fixtures of whole runs (tests/bench/conftest.py) for the reliability tests; test folders are no packages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def _load(file: str) -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "bench" / file
    name = f"augbench_shared_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


_runs = _load("conftest.py")
tools, tuning, mlflow_store = _runs.tools, _runs.tuning, _runs.mlflow_store
servers, postgresql = _runs.servers, _runs.postgresql
workspace, misbehaving, one_thread = _runs.workspace, _runs.misbehaving, _runs.one_thread
