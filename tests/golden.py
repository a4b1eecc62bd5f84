"""What each built-in gives for fixed trials: `python tests/golden.py` writes golden.json anew.

The key of a cell holds a version number for each built-in. This is what makes the number true: a change that alters
what a method computes fails `tests/test_golden.py` until its version is raised and the figures are written anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FILE = Path(__file__).with_name("golden.json")
KINDS = ("augmenter", "backbone", "readout", "learner")
PLAIN = {"augmenter": "none", "backbone": "gcn", "readout": "mean", "learner": "gnn"}
ENGINES = ("fast", "reference")
EPOCHS = 12


def built_ins() -> Iterator[tuple[str, str, Any]]:
    """Kind, name and version of everything that is built in."""
    from bench.plan.identity import REGISTRIES

    for kind in KINDS:
        for entry in REGISTRIES[kind].entries().values():
            if entry.origin == "built in":
                yield kind, entry.name, entry.version


def measured(kind: str, name: str, engine: str) -> list[float]:
    """Losses and scores of a short trial with this built-in, everything else plain."""
    from bench.execution.worker import Task, WorkerSettings, run_task
    from bench.plan.cells import Trial
    from bench.plan.planner import Planner
    from bench.protocol.training import preset
    from tables.specs import Coordinate

    at = replace(Coordinate("digits", 3, "none"), **{**PLAIN, kind: name})
    with TemporaryDirectory() as root:
        planner = Planner(Path(root), engine)
        cell = planner.cell(at, preset("quick").with_settings({"epochs": EPOCHS}))
        record = run_task(WorkerSettings(root, engine), Task(((cell, Trial(0, 0)),)).to_json())[0]
    assert record.done, record.reason
    assert record.accuracy is not None
    return [loss for _, loss in record.curve] or [record.accuracy]


def main() -> None:
    found: dict[str, dict[str, Any]] = {}
    for kind, name, version in built_ins():
        figures = {engine: measured(kind, name, engine) for engine in ENGINES}
        found.setdefault(kind, {})[name] = {"version": version, **figures}
        print(kind, name, file=sys.stderr)
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
