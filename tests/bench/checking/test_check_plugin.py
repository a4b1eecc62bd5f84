"""Somebody else's plug-ins, each in a package of its own: once installed, listed, checked and run like any other."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = ROOT / "tests" / "plugin"
BENCH = "from bench.cli.app import main; main()"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the plug-ins installed in it by pip, built from copies, without a network."""
    folder = tmp_path_factory.mktemp("plugin")
    source, target = folder / "source", folder / "site"
    shutil.copytree(PLUGIN, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
    sources = [str(path.parent) for path in sorted(source.rglob("pyproject.toml"))]
    words = [*pip, "--no-deps", "--no-build-isolation", "--target", str(target), *sources]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def bench(*words: str, path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`bench ...` in a process of its own that finds the plug-in as an installed package."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "120",
        "BENCH_DATA": str(cwd / "data"),
    }
    return subprocess.run(
        [sys.executable, "-c", BENCH, *words], capture_output=True, text=True, check=False, env=environment, cwd=cwd
    )


def test_it_is_listed_with_its_settings(installed, tmp_path):
    every = bench("list", path=installed, cwd=tmp_path)
    assert every.returncode == 0, every.stderr
    assert re.search(r"augmenter\s+hidenodes\s+from augbench-hidenodes", every.stdout)
    assert re.search(r"readout\s+softclusters\s+from augbench-softclusters", every.stdout)
    assert re.search(r"learner\s+gnn\s+graph neural network", every.stdout)
    assert re.search(r"learner\s+nodecount\s+from augbench-nodecount", every.stdout)
    one = bench("list", "hidenodes", path=installed, cwd=tmp_path)
    assert "a number from 0 to 1; default 0.2" in one.stdout


def test_it_is_checked(installed, tmp_path):
    done = bench("check", "hidenodes", path=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"hidenodes: \d+ hold, 3 do not apply", done.stdout)
    assert re.search(r"nothing changes at strength 0 +holds +with p=0", done.stdout)


def test_the_readout_and_the_learner_are_checked(installed, tmp_path):
    done = bench("check", "softclusters:clusters=2", "learner:nodecount", path=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"auxiliary loss is one finite number +holds", done.stdout)
    assert re.search(r"softclusters:clusters=2: \d+ hold, 0 do not apply", done.stdout)
    assert re.search(r"nodecount: \d+ hold, 0 do not apply", done.stdout)


def test_the_readout_is_run_by_the_reference_engine(installed, tmp_path):
    """The fast engine does not know it; the plan says so and names the engine that runs."""
    words = ["run", "-d", "digits", "-a", "none", "-a", "dropedge", "-r", "softclusters", "-k", "1"]
    words += ["--folds", "1", "--repeats", "1", "--epochs", "3", "-j", "1", "-w", "w"]
    done = bench(*words, path=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in (tmp_path / "w" / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    trials = [line for line in lines if line["type"] == "trial"]
    assert [line["status"] for line in trials] == ["done", "done"]
    assert all(line["engine"] == "reference" for line in trials)
    assert all(line["versions"]["engine"] == "reference" for line in lines if line["type"] == "cell")
    assert "2 cells run on the reference engine" in done.stdout and "SoftClusters" in done.stdout


def test_the_learner_is_run_and_tuned(installed, tmp_path):
    words = ["-d", "synthetic:graphs=40", "-k", "2", "--folds", "2", "--repeats", "1", "-j", "1", "-w", "w"]
    for command in (
        ["run", *words, "-m", "nodecount,nodecount:strength=10", "-a", "none", "-a", "g-mixup"],
        ["tune", *words, "-m", "nodecount", "-n", "2"],
        ["run", *words, "-m", "nodecount", "--tuned"],
    ):
        done = bench(*command, path=installed, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "nodecount, tuned" in done.stdout
    lines = [json.loads(line) for line in (tmp_path / "w" / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    trials = [line for line in lines if line["type"] == "trial"]
    assert [line["status"] for line in trials] == ["done"] * 10
    assert all(0 < line["accuracy"] <= 1 and line.get("loss") is None for line in trials)
    cells = [line for line in lines if line["type"] == "cell"]
    assert all(re.fullmatch(r"0\.1\+[0-9a-f]{12}.*", line["versions"]["learner"]) for line in cells)
    assert [sorted(line["by_fold"]) for line in cells if line["tuned"]] == [["0", "1"]]


def test_it_is_run_and_its_version_kept(installed, tmp_path):
    words = ["run", "-d", "digits", "-a", "hidenodes", "-a", "hidenodes:p=0.5", "-k", "1"]
    words += ["--folds", "1", "--repeats", "1", "--epochs", "3", "-j", "1", "-w", "w"]
    done = bench(*words, path=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = (tmp_path / "w" / "ledger.jsonl").read_text(encoding="utf-8")
    assert len(re.findall(r'"status": ?"done"', ledger)) == 2
    assert re.search(r'"augmenter": ?"0\.3\+[0-9a-f]{12}', ledger)


def test_the_page_shows_the_very_files():
    page = (ROOT / "docs" / "writing-an-augmenter.md").read_text(encoding="utf-8")
    for name, kind in (("hidenodes.py", "python"), ("pyproject.toml", "toml")):
        assert f"```{kind}\n{(PLUGIN / name).read_text(encoding='utf-8')}```" in page
    page = (ROOT / "docs" / "writing-a-learner.md").read_text(encoding="utf-8")
    for name in ("softclusters", "nodecount"):
        assert f"```python\n{(PLUGIN / name / f'{name}.py').read_text(encoding='utf-8')}```" in page


@pytest.mark.parametrize("path", sorted(PLUGIN.rglob("*.py")), ids=lambda path: path.stem)
def test_a_plug_in_is_short(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) < 20
