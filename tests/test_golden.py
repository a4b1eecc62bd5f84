"""A built-in whose numbers change without its version would let old results stand under new code's key."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

_spec = importlib.util.spec_from_file_location("augbench_golden", Path(__file__).with_name("golden.py"))
assert _spec is not None and _spec.loader is not None
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)

HELD: dict[str, dict[str, Any]] = json.loads(golden.FILE.read_text(encoding="utf-8"))
TOLERANCE = 1e-4
COMPARED = 5  # the first losses: later ones depend on the last digits of a processor, training is chaotic


@pytest.mark.parametrize(("kind", "name", "version"), list(golden.built_ins()))
def test_a_built_in_gives_what_its_version_stands_for(kind: str, name: str, version: Any) -> None:
    assert name in HELD.get(kind, {}), f"{kind} {name} is new: run `python tests/golden.py`"
    held = HELD[kind][name]
    assert held["version"] == version, f"the version of {kind} {name} was raised: run `python tests/golden.py`"
    for engine in golden.ENGINES:
        found = golden.measured(kind, name, engine)
        assert found[:COMPARED] == pytest.approx(held[engine][:COMPARED], rel=TOLERANCE), (
            f"{kind} {name} gives other numbers ({engine} engine) under the same version: raise `version` in its "
            "registry line, then run `python tests/golden.py`"
        )


def test_nothing_is_held_that_is_gone() -> None:
    there = {(kind, name) for kind, name, _ in golden.built_ins()}
    assert {(kind, name) for kind, names in HELD.items() for name in names} == there
