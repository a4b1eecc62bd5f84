"""The fast engine's folders: imports point one way, as docs/engine.md lists them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
FAST = ROOT / "bench" / "learning" / "fast"
ORDER = ["not_fast", "ops", "graphs", "kernels", "training", "pretraining", "evaluation", "engine"]


def imported(path: Path) -> set[str]:
    """The parts of the engine that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bench.learning.fast."):
            found.add(str(node.module).split(".")[3])
    return found


@pytest.mark.parametrize("place", range(len(ORDER)), ids=ORDER)
def test_imports_point_one_way(place: int) -> None:
    part = FAST / ORDER[place]
    files = sorted(part.rglob("*.py")) if part.is_dir() else [part.with_suffix(".py")]
    assert files
    for path in files:
        assert imported(path) <= set(ORDER[: place + 1]), path


def test_every_part_has_its_place() -> None:
    parts = {path.stem for path in FAST.iterdir() if path.stem not in ("__init__", "__pycache__")}
    assert parts == set(ORDER)


def test_the_page_names_files_and_tests_that_exist() -> None:
    page = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) < 120
    for name in re.findall(
        r"`((?:engine|evaluation|pretraining|kernels|not_fast|training/\w+|graphs/\w+|ops/\w+)\.(?:py|c))`", page
    ):
        assert (FAST / name).exists(), name
    for name in re.findall(r"`(?:tests/bench/learning/fast/)?(test_\w+\.py)`", page):
        assert (ROOT / "tests" / "bench" / "learning" / "fast" / name).exists(), name
