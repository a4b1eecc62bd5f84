"""Fixtures for every room: real data where it is at hand, and tiny TU archives where it is not needed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TinyFiles = dict[str, str]


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The real datasets, imported with `bench data import`; tests that need them are skipped without."""
    given = os.environ.get("BENCH_DATA")
    if not given:
        pytest.skip("BENCH_DATA does not name a data root with the paper's datasets")
    root = Path(given).absolute()
    if not (root / "tu").is_dir():
        pytest.skip(f"BENCH_DATA={given} holds no datasets; fill it with `bench data fetch` or `bench data import`")
    return root


@pytest.fixture
def tmp_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root that is also the default one."""
    root = tmp_path / "data"
    monkeypatch.setenv("BENCH_DATA", str(root))
    return root


@pytest.fixture
def tiny_files() -> Callable[..., TinyFiles]:
    """The text files of a small TU set: alternating triangles (class -1) and paths (class 1) of three nodes."""

    def make(graphs: int = 40, node_labels: bool = True) -> TinyFiles:
        edges: list[str] = []
        for number in range(graphs):
            a = 3 * number + 1
            pairs = [(a, a + 1), (a + 1, a + 2)] + ([(a, a + 2)] if number % 2 == 0 else [])
            edges += [f"{i}, {j}" for i, j in pairs] + [f"{j}, {i}" for i, j in pairs]
        files = {
            "A": "\n".join(edges) + "\n",
            "graph_indicator": "".join(f"{number // 3 + 1}\n" for number in range(3 * graphs)),
            "graph_labels": "".join("-1\n" if number % 2 == 0 else "1\n" for number in range(graphs)),
        }
        if node_labels:
            files["node_labels"] = "".join(f"{5 + number % 3}\n" for number in range(3 * graphs))
        return files

    return make


@pytest.fixture
def write_archive(tmp_path: Path, tiny_files: Callable[..., TinyFiles]) -> Callable[..., Path]:
    """Write NAME.zip in TU layout; `files` are texts by kind, `extra` further members by path."""

    def write(name: str = "TINY", files: TinyFiles | None = None, extra: dict[str, str] | None = None) -> Path:
        path = tmp_path / "archives" / f"{name}.zip"
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for kind, text in (tiny_files() if files is None else files).items():
                archive.writestr(f"{name}/{name}_{kind}.txt", text)
            for member, text in (extra or {}).items():
                archive.writestr(member, text)
        return path

    return write


@pytest.fixture
def tiny_root(tmp_data_root: Path, write_archive: Callable[..., Path]) -> Path:
    """A data root with the set TINY in it."""
    from bench.datasets.importing import import_path

    import_path(write_archive(), tmp_data_root)
    return tmp_data_root


@pytest.fixture(scope="session")
def fake() -> ModuleType:
    """The generator of made-up ledgers, loaded by its path because test folders are no packages."""
    return _loaded("augbench_fake_ledger", "tables/fake_ledger.py")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """Headless Chromium; tests skip where there is none."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} here; on Debian: apt-get install chromium chromium-driver")
    opened = _loaded("augbench_browser_tools", "browser_tools.py").Browser(tmp_path / "profile")
    yield opened
    opened.close()


def _loaded(name: str, file: str) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / file)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
