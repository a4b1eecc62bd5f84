"""A class of a notebook becomes a module: whole, the same text for the same code, and nothing that is not code."""

from __future__ import annotations

import importlib
import itertools
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from augmenters import AUGMENTERS
from bench.public.classes import spec_of, write_module
from bench.public.extraction import module_text
from bench.registry import UserError

Type = Callable[[str], ModuleType]

IMPORTS = """
import math
import numpy as np
import torch
import torch_geometric.utils as tools
from dataclasses import dataclass, field
from typing import Annotated
from augmenters import Unchanged
from bench.registry import Within
"""
METHOD = """
@dataclass(frozen=True)
class Scaled(Base):
    p: Annotated[float, Within(0, 1)] = 0.5

    def apply(self, graphs, drawn):
        kept = [torch.nn.functional.relu(helper(graph.x) * self.p) for graph in graphs]
        return [tools.degree(graph.edge_index[0], graph.num_nodes) for graph in graphs], kept
"""
HELPER = """
def helper(x):
    wide = np.float32(math.sqrt(FACTOR))
    return x * wide if x is not None else other(x)
"""


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Type]:
    """A namespace that is filled cell by cell, whose text Python keeps as it keeps a notebook's."""
    home = ModuleType("cells_of_a_test")
    sys.modules[home.__name__] = home
    number, before, loaded = itertools.count(), [*sys.path], set(sys.modules)
    files: list[str] = []

    def cell(text: str) -> ModuleType:
        file = f"<cell {next(number)} of {tmp_path}>"
        text = textwrap.dedent(text)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        files.append(file)
        exec(compile(text, file, "exec"), vars(home))
        return home

    yield cell
    sys.path[:] = before
    for name in {*sys.modules} - loaded | {home.__name__}:
        if name == home.__name__ or str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    for file in files:
        linecache.cache.pop(file, None)


def test_a_class_takes_along_what_it_uses_and_nothing_else(notebook: Type, tmp_path: Path) -> None:
    notebook(IMPORTS)
    notebook("graphs = [object()]\nunused = 3\nFACTOR = 4.0")
    notebook(HELPER + "\ndef other(x):\n    return helper(x)\n\nclass Base(Unchanged):\n    when = 'epoch'\n")
    home = notebook(METHOD)
    text = module_text(home.Scaled)
    assert "FACTOR = 4.0" in text and "def other" in text and "class Base(Unchanged)" in text
    assert "import torch_geometric.utils as tools" in text and "import numpy as np" in text
    assert "graphs =" not in text and "unused" not in text, "a parameter of the same name is no use of it"
    assert "import field" not in text
    name = write_module(home.Scaled, tmp_path)
    made = importlib.import_module(name)
    assert made.Scaled is not home.Scaled and made.Scaled().p == 0.5
    assert made.helper(2.0) == 4.0 and made.Scaled.when == "epoch"


def test_the_name_follows_the_text(notebook: Type, tmp_path: Path) -> None:
    """Another text is another method, a helper's and a constant's included; the same text is the same."""

    def spec() -> str:
        return spec_of(AUGMENTERS, notebook("").Scaled(p=0.25), tmp_path)

    notebook(IMPORTS)
    notebook("FACTOR = 4.0\nother = abs")
    notebook(HELPER)
    notebook("class Base(Unchanged):\n    pass\n")
    notebook(METHOD)
    first = spec()
    assert first.endswith(":Scaled:p=0.25") and first.startswith("Scaled_")
    notebook(METHOD)
    assert spec() == first
    seen = {first}
    for changed in ("FACTOR = 9.0", HELPER.replace("math.sqrt", "abs"), METHOD.replace("self.p", "2 * self.p")):
        notebook(changed)
        assert spec() not in seen
        seen.add(spec())
    assert {path.stem for path in tmp_path.glob("*.py")} == {one.partition(":")[0] for one in seen}


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (
            ["model = torch.nn.Linear(2, 2)", "class Own(Unchanged):\n    def go(self):\n        return model"],
            "`model`",
        ),
        (["class Own(Unchanged):\n    def go(self):\n        return later()"], "uses `later`, which is not defined"),
        (["def make():\n    class Own(Unchanged):\n        pass\n    return Own", "Own = make()"], "top level"),
        (["class own(Unchanged):\n    pass", "Own = own"], "starts with a capital letter"),
        (["data = [torch.ones(2)]", "class Own(Unchanged):\n    d: int = len(data)"], "uses `data` \\(list\\)"),
        (["big = 'x' * 20_000", "class Own(Unchanged):\n    d: int = len(big)"], "uses `big` \\(str\\)"),
    ],
)
def test_what_is_no_code_is_refused_by_name(notebook: Type, cells: list[str], reason: str) -> None:
    home: Any = notebook(IMPORTS)
    for cell in cells:
        home = notebook(cell)
    with pytest.raises(UserError, match=reason):
        module_text(home.Own)


def test_code_without_a_text_is_refused(notebook: Type) -> None:
    home: Any = notebook(IMPORTS)
    exec("class Own(Unchanged):\n    def go(self):\n        return 1", vars(home))
    with pytest.raises(UserError, match="the source of Own cannot be found"):
        module_text(home.Own)
