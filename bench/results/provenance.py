"""The origin of a number: versions, commit and machine, recorded once per run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from bench.plan.identity import package_version
from bench.results.records import ProvenanceRecord

PACKAGES = ("augbench", "torch", "torch-geometric", "numpy", "scipy", "scikit-learn")


def provenance() -> ProvenanceRecord:
    """A ledger record of the code, its packages and the type of machine; its id is a hash of them."""
    commit, dirty = git_state(Path(__file__).resolve().parents[2])
    facts: dict[str, Any] = {
        **{name: package_version(name) for name in PACKAGES},
        "commit": commit,
        "dirty": dirty,
        "python": platform.python_version(),
        "machine": {"system": platform.system(), "cpu": cpu_name(), "cores": os.cpu_count()},
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
    return ProvenanceRecord(digest, facts)


def git_state(folder: Path) -> tuple[str | None, bool | None]:
    """The commit, and whether files differ from it; empty if the code is not in its own checkout."""
    if not (folder / ".git").exists():
        return None, None
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return commit, bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return None, None


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def cpu_name() -> str:
    """The processor's model as reported by the system."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux: use the general name below
    return platform.processor() or platform.machine()
