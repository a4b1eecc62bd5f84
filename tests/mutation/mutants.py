"""Mutation testing: plant one fault after the other in a module and see whether the tests that mirror it notice.

    python tests/mutation/mutants.py                  # all of MIRRORS; the survivors are printed
    python tests/mutation/mutants.py bench.protocol.seeds      # one module
    python tests/mutation/mutants.py --every 8                 # one fault in eight

Each mutant runs in a process forked from one that has imported the heavy libraries already, but none of our modules.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import io
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType

import pytest
from operators import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
MIRRORS = {
    "bench.protocol.seeds": ["tests/bench/protocol/test_seeds.py"],
    "bench.protocol.budgets": ["tests/bench/protocol/test_budgets.py"],
    "bench.protocol.splits": ["tests/bench/protocol/test_splits.py", "tests/bench/protocol/test_split_families.py"],
    "bench.results.records": ["tests/bench/results/test_records.py"],
    "bench.results.ledger": ["tests/bench/results/test_ledger.py", "tests/bench/results/test_ledger_writing.py"],
    "tables.statistics": ["tests/tables/test_statistics.py"],
}
HEAVY = ["numpy", "pandas", "scipy.stats", "sklearn.metrics", "torch", "torch_geometric.data", "torch_geometric.utils"]
HEAVY += ["hypothesis", "filelock", "scikit_posthocs", "rich.console", "psutil"]
SLOWER = 10.0  # a mutant that takes this many times as long as the tests do without a fault is stuck
LEAST_SECONDS = 60.0


class _Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a given tree instead of from its file."""

    def __init__(self, name: str, tree: ast.Module, path: Path) -> None:
        self.name, self.tree, self.path = name, tree, path

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=str(self.path))
        spec.has_location = True
        return spec

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


def tests_fail(module: str, tree: ast.Module, path: Path, tests: Sequence[str], seconds: float) -> bool:
    """Whether the tests notice, by failing or by not coming to an end."""
    child = os.fork()
    if not child:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            sys.meta_path.insert(0, _Planted(module, tree, path))
            os.setsid()
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # half of the time of a small test file
            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout", *tests])
        os._exit(int(code))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status != 0
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def survivors(module: str, tests: Sequence[str], step: int) -> tuple[int, list[Mutant]]:
    """How many mutants a module has, and those that its tests let live."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    source = path.read_text(encoding="utf-8")
    start = time.monotonic()
    if tests_fail(module, ast.parse(source), path, tests, 600):
        sys.exit(f"{' '.join(tests)} fail without any fault in {module}; mend them first")
    limit = max(LEAST_SECONDS, SLOWER * (time.monotonic() - start))
    every = list(mutants(source))[::step]
    return len(every), [one for one in every if not tests_fail(module, one.tree, path, tests, limit)]


def main(chosen: Sequence[str], step: int) -> None:
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name in HEAVY:
        importlib.import_module(name)
    for module in chosen or MIRRORS:
        start = time.monotonic()
        count, alive = survivors(module, MIRRORS[module], step)
        share = 100 * (1 - len(alive) / count)
        print(f"{module}: {count} mutants, {count - len(alive)} noticed ({share:.0f} %), ", end="")
        print(f"{len(alive)} survive; {time.monotonic() - start:.0f} s", flush=True)
        for one in alive:
            print(f"  line {one.line}: {one.before}  ->  {one.after}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="*", choices=[*MIRRORS, []], metavar="MODULE")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    options = parser.parse_args()
    main(options.modules, options.every)
