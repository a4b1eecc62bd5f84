"""Graphs of REDDIT's size train within bounds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[4] / "benchmarks" / "memory.py"


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("method", ["none", "dropedge", "gdm-unc"])
def test_graphs_of_reddits_size_train_below_two_gib(method: str) -> None:
    command = [sys.executable, str(SCRIPT), "--methods", method]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"peak (\d+) MiB", said)
    assert found, said
    assert int(found[1]) < 2048
