"""`import bench` costs next to nothing, prints nothing and offers what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bench

ROOT = Path(__file__).parents[3]


def python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True, timeout=300
    )


def test_importing_prints_nothing_and_needs_no_torch() -> None:
    done = python("import bench; print(bench.__all__)", "-X", "importtime")
    assert done.stdout == f"{bench.__all__}\n"
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "bench" in imported
    heavy = {"torch", "pandas", "numpy", "mlflow", "optuna", "sklearn", "matplotlib", "tqdm", "rich"}
    assert not imported & heavy


@pytest.mark.parametrize("name", ["augmenters", "models", "tables"])
def test_a_package_of_ones_own_under_one_of_our_names_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").touch()
    code = """import bench
try:
    bench.plan(datasets="digits", k=2)
except Exception as error:
    print(type(error).__name__, error)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300
    )
    assert done.stdout.startswith(f"UserError the package `{name}` that Python finds is the one in {tmp_path}")
    assert len(done.stdout.splitlines()) == 1 and f"not augbench's in {ROOT}; rename yours" in done.stdout


def test_everything_that_is_offered_is_there() -> None:
    for name in bench.__all__:
        assert getattr(bench, name) is not None and name in dir(bench)


def test_the_folder_plan_is_a_function_before_and_after_its_files_are_used() -> None:
    """`bench.plan` is a folder of ours too, and Python binds the folder's name when a file of it is imported."""
    call = "bench.plan(datasets='synthetic:graphs=60', k=2, folds=2, repeats=1).size"
    code = f"import bench; print({call}); import bench.plan.cells as cells; print({call}, cells.Trial.__name__)"
    done = python(f"{code}; from bench.plan import grids; print(grids.product(['digits'])[0].k)")
    assert done.stdout.split() == ["2", "2", "Trial", "10"]
