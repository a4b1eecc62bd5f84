"""Install the wheel outside the checkout and use it as the README says.

`make wheel` installs every dependency anew into an empty environment, as a user would, which takes minutes.
`make package` (part of `make test`) passes `--reuse`: the wheel itself is installed, but its dependencies come from the
environment that runs this script. That covers the content of the wheel, its metadata and its entry points, but not
whether the declared dependencies are complete and can be resolved.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Nothing of the checkout or of the environment around it may be found by accident.
PLAIN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
PACKAGES = ("augmenters", "bench", "models", "tables")
BESIDE = ("benchmarks", "docs", "tests")  # only in the source distribution
CODE = {".c", ".css", ".csv", ".j2", ".js", ".json", ".py", ".toml", ".typed"}
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
    parser = argparse.ArgumentParser(description="Install the wheel of dist/ outside the checkout and use it.")
    parser.add_argument("--reuse", action="store_true", help="Take dependencies from the environment of this Python.")
    reuse = parser.parse_args().reuse
    (wheel,) = (ROOT / "dist").glob("*.whl")
    (sdist,) = (ROOT / "dist").glob("*.tar.gz")
    check_contents(wheel, sdist)
    with tempfile.TemporaryDirectory(prefix="augbench-wheel-") as folder:
        home = Path(folder)
        install(wheel, home / "env", reuse)
        use(home)
    print(f"{wheel.name}: installed and used outside the checkout{', with dependencies from here' if reuse else ''}")


def check_contents(wheel: Path, sdist: Path) -> None:
    """Both have every file of the packages; the wheel has nothing else, and the sdist has the docs and the tests."""
    tracked = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()
    ours = {name for name in tracked if name.split("/")[0] in PACKAGES and Path(name).suffix in CODE}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        info = {name.split(".dist-info/")[1] for name in archive.namelist() if ".dist-info/" in name}
    assert packed == ours, f"in one of checkout and wheel only: {sorted(packed ^ ours)}"
    assert {"licenses/LICENSE", "entry_points.txt", "METADATA"} <= info, info
    with tarfile.open(sdist) as source:
        inside = {name.partition("/")[2] for name in source.getnames()}
    wanted = ours | {name for name in tracked if name.split("/")[0] in BESIDE or "/" not in name}
    missing = {name for name in wanted - inside if not name.startswith(".")}
    assert not missing, f"not in the source distribution: {sorted(missing)}"


def install(wheel: Path, env: Path, reuse: bool) -> None:
    """Into a new environment; with `reuse`, the path to the packages installed here is added to it."""
    venv.create(env, with_pip=not reuse)
    python = str(tools(env) / "python")

    def call(*command: str) -> str:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=env, env=PLAIN)
        return done.stdout.strip()

    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    if not reuse:
        call(*pip, "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel))
        call(*pip, "check")
        return
    call(*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    # A path of a .pth file is searched last, and .pth files in it, such as that of an editable install, are not read.
    here = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    place = call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    Path(place, "dependencies.pth").write_text("\n".join(here) + "\n", encoding="utf-8")


def tools(env: Path) -> Path:
    return env / ("Scripts" if os.name == "nt" else "bin")


def use(home: Path) -> None:
    """The commands and the example of the README, in a folder that is not the checkout."""

    def run(*command: str) -> None:
        print("$", *command, flush=True)
        subprocess.run([str(tools(home / "env") / command[0]), *command[1:]], check=True, cwd=home, env=PLAIN)

    where = f"import {', '.join(PACKAGES)}; from pathlib import Path\n"
    where += f"for package in ({', '.join(PACKAGES)}):\n"
    where += f"    assert Path(package.__file__).is_relative_to({str(home / 'env')!r}), package.__file__"
    run("python", "-c", where)
    run("bench", "run", "--grid", "quick")
    run("bench", "tables", "--out", "tables")
    run("bench", "report", "--out", "report.html")
    run("bench", "status")
    (home / "example.py").write_text(EXAMPLE, encoding="utf-8")
    run("python", "example.py")


if __name__ == "__main__":
    sys.exit(main())
