"""`make wheel`: the wheel in an environment of its own, outside the checkout, does what the README says.

Not a test that pytest collects: it installs every dependency anew, which takes minutes without pip's cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = """
import sys

import bench

if __name__ == "__main__":
    assert "torch" not in sys.modules, "importing bench imported torch"
    from augmenters import DropEdge

    methods = ["none", DropEdge(p=0.4)]
    results = bench.run(datasets=["digits"], augmenters=methods, k=[2], folds=2, repeats=1, preset="quick")
    found = results.trials[results.trials["dataset"] == "digits"]
    assert found["accuracy"].between(0, 1).sum() >= 4, found
    print(results.table(rows="augmenter", columns="dataset,k", where={"dataset": "digits", "k": 2}).to_latex())
"""


def main() -> None:
    (wheel,) = (ROOT / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="augbench-wheel-") as folder:
        home = Path(folder)
        venv.create(home / "env", with_pip=True)
        tools = home / "env" / ("Scripts" if os.name == "nt" else "bin")
        plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

        def run(*command: str) -> None:
            print("$", *command, flush=True)
            subprocess.run([str(tools / command[0]), *command[1:]], check=True, cwd=home, env=plain)

        pip = ["python", "-m", "pip", "--disable-pip-version-check"]
        run(*pip, "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel))
        run(*pip, "check")
        run("bench", "run", "--grid", "quick")
        run("bench", "tables", "--out", "tables")
        run("bench", "report", "--out", "report.html")
        run("bench", "status")
        (home / "example.py").write_text(EXAMPLE, encoding="utf-8")
        run("python", "example.py")
        outside = "import bench, augmenters, models, tables, pathlib; print(bench.__file__)"
        run("python", "-c", outside + f"; assert {str(ROOT)!r} not in bench.__file__")
        for room in ("bench", "augmenters", "models", "tables"):
            assert next((home / "env").rglob(f"site-packages/{room}/py.typed")).exists(), room
    print(f"{wheel.name}: installed and used outside the checkout")


if __name__ == "__main__":
    sys.exit(main())
