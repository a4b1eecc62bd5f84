"""Somebody else's augmenter, in a package of its own: once installed it is listed, checked and run like any other."""

from __future__ import annotations

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
    """A folder with the plug-in installed in it by pip, built from a copy, without a network."""
    folder = tmp_path_factory.mktemp("plugin")
    source, target = folder / "source", folder / "site"
    shutil.copytree(PLUGIN, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
    words = [*pip, "--no-deps", "--no-build-isolation", "--target", str(target), str(source)]
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
    one = bench("list", "hidenodes", path=installed, cwd=tmp_path)
    assert "a number from 0 to 1; default 0.2" in one.stdout


def test_it_is_checked(installed, tmp_path):
    done = bench("check", "hidenodes", path=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"hidenodes: \d+ hold, 3 do not apply", done.stdout)
    assert re.search(r"nothing changes at strength 0 +holds +with p=0", done.stdout)


def test_it_is_run_and_its_version_kept(installed, tmp_path):
    words = ["run", "-d", "digits", "-a", "hidenodes", "-a", "hidenodes:p=0.5", "-k", "1"]
    words += ["--folds", "1", "--repeats", "1", "--epochs", "3", "-j", "1", "-w", "w"]
    done = bench(*words, path=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = (tmp_path / "w" / "ledger.jsonl").read_text(encoding="utf-8")
    assert len(re.findall(r'"status": ?"done"', ledger)) == 2
    assert re.search(r'"augmenter": ?"0\.3"', ledger)


def test_the_page_shows_the_very_files():
    page = (ROOT / "docs" / "writing-an-augmenter.md").read_text(encoding="utf-8")
    for name, kind in (("hidenodes.py", "python"), ("pyproject.toml", "toml")):
        assert f"```{kind}\n{(PLUGIN / name).read_text(encoding='utf-8')}```" in page
    code = [line for line in (PLUGIN / "hidenodes.py").read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(code) <= 20
