"""The plan knows which engine runs a backbone with settings that the fast one has no kernels for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.learning.fast.engine import FastEngine, fast_obstacle
from bench.learning.problem import Fitted, Problem
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from models.backbones import GCN
from models.readouts import MeanReadout


@pytest.mark.parametrize(
    ("backbone", "readout", "reason"),
    [
        ("gcn", "mean", None),
        ("gcn:width=8", "mean", None),
        ("gcn:norm=batch", "mean", "norm=batch"),
        ("gin:residual=true", "mean", "residual=true"),
        ("gcn", "diffpool", "DiffPool"),
        ("gcn", "mean+max", "MeanMaxReadout"),
    ],
)
def test_the_plan_and_the_engine_agree(
    backbone: str, readout: str, reason: str | None, tmp_path: Path, problem: Callable[..., Problem]
) -> None:
    plan = Planner(tmp_path).plan(Grid("g", product(["synthetic"], backbones=[backbone], readouts=[readout])))
    assert plan.cells[0].versions["engine"] == ("reference" if reason else "fast")
    fitted = FastEngine().fit([problem(backbone=backbone, readout=readout, epochs=2)])[0]
    assert isinstance(fitted, Fitted)
    assert fitted.engine == plan.cells[0].versions["engine"]
    assert fitted.handed_over == plan.handed_over.get(plan.cells[0].key)
    assert (reason or "") in (fitted.handed_over or "")


def test_settings_at_their_plain_values_are_no_obstacle() -> None:
    from augmenters.controls import Unchanged

    assert fast_obstacle(GCN, MeanReadout, Unchanged, {"norm": "none", "residual": False, "width": 8}) is None
