"""The rooms of the house, the doors between them, and the order of the stages, as CONTRIBUTING.md tells them."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("augmenters", "bench", "models", "tables")
MAY_IMPORT = {
    "augmenters": {"augmenters", "models", "bench.registry"},
    "models": {"models", "bench.registry"},
    "tables": {"tables", "bench.registry", "bench.temporary", "bench.plan.cells", "bench.results"},
    "bench": set(OURS),
}
MOST_LINES = 400  # 300 are a smell
MOST_PARAMETERS = 8
SAYS = {"print", "input", "exit", "quit", "SystemExit", "sys.exit", "sys.stdout.write", "sys.stderr.write"}


def _load_graph() -> ModuleType:
    spec = importlib.util.spec_from_file_location("augbench_import_graph", ROOT / "docs" / "import_graph.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


graph = _load_graph()


def modules(*folders: str) -> Iterator[tuple[str, Path]]:
    """Our source files by their names."""
    for folder in folders:
        yield from ((str(path.relative_to(ROOT)), path) for path in sorted((ROOT / folder).rglob("*.py")))


@pytest.mark.parametrize("room", OURS)
def test_a_room_imports_only_through_its_doors(room: str) -> None:
    for place, path in modules(room):
        for name in graph.imported_by(path):
            if name.split(".")[0] in OURS:
                allowed = any(name == door or name.startswith(f"{door}.") for door in MAY_IMPORT[room])
                assert allowed, f"{place} imports {name}"
            if room == "tables":
                assert name.split(".")[0] not in ("torch", "torch_geometric", "mlflow"), f"{place} imports {name}"


def test_a_stage_imports_only_those_before_it() -> None:
    upward = [place for edge, places in graph.edges().items() if graph.is_upward(edge) for place in places]
    assert not upward


def test_every_file_of_bench_has_a_stage() -> None:
    found = {path.name.removesuffix(".py") for path in (ROOT / "bench").iterdir() if path.suffix in ("", ".py")}
    found -= {"__init__", "__pycache__"}
    assert found == {*graph.LEAVES, *graph.STAGES}


def test_registry_and_temporary_need_the_standard_library_alone() -> None:
    for leaf in ("registry.py", "temporary.py"):
        for name in graph.imported_by(ROOT / "bench" / leaf):
            assert name.split(".")[0] in sys.stdlib_module_names


def test_the_picture_of_the_stages_is_of_this_code() -> None:
    picture = (ROOT / graph.PICTURE).read_text(encoding="utf-8")
    assert graph.edges_of_picture(picture) == set(graph.edges()), "run `python docs/import_graph.py` and commit"
    assert graph.drawing(graph.edges()) == picture, "run `python docs/import_graph.py` and commit"


def test_an_import_counts_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "bench" / "plan").mkdir(parents=True)
    (tmp_path / "bench" / "plan" / "one.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from bench.api import run\n"
        "def later():\n    import bench.cli.app\n    return 'bench.tuning.tuner:Tuner', 'bench is a word'\n"
        "from bench import registry\nfrom bench.plan.cells import Cell\nimport numpy\n"
    )
    found = graph.edges(tmp_path)
    assert set(found) == {("plan", other) for other in ("api", "cli", "tuning", "registry")}
    assert found["plan", "cli"] == ["bench/plan/one.py imports bench.cli.app"]
    upward = {edge for edge in found if graph.is_upward(edge)}
    assert upward == set(found) - {("plan", "registry")}
    assert graph.is_upward(("registry", "seeding")), "a leaf imports nothing of ours"
    drawn = graph.drawing(found)
    assert graph.edges_of_picture(drawn) == set(found) and drawn.count("#cc0000") >= 3
    assert "#cc0000" not in graph.drawing(set(found) - upward)


def spoken(tree: ast.Module) -> Iterator[str]:
    """What a module prints or how it exits; not what it does as a program of its own."""
    own = [node for node in tree.body if not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))]
    for node in (found for statement in own for found in ast.walk(statement)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in SAYS or called.split(".")[-1] in ("print", "echo", "secho", "Console"):
                yield f"{called} in line {node.lineno}"
        elif isinstance(node, ast.Raise) and node.exc is not None and ast.unparse(node.exc).endswith("Exit"):
            yield f"{ast.unparse(node)} in line {node.lineno}"


def test_nothing_below_the_command_line_prints_or_exits() -> None:
    """Whoever calls `bench.api` from a notebook decides what is shown, and whether to go on."""
    for place, path in modules("augmenters", "bench", "models"):
        if not place.startswith("bench/cli/"):
            assert not list(spoken(ast.parse(path.read_text(encoding="utf-8")))), place
            shown = {name.split(".")[0] for name in graph.imported_by(path)} & {"rich", "typer", "click"}
            assert not shown, f"{place} imports {shown}"


@pytest.mark.parametrize(
    "line",
    [
        *("print(1)", "sys.exit(2)", "raise SystemExit", "raise SystemExit(1)", "raise typer.Exit", "exit()"),
        *("typer.echo(1)", "Console()", "console.print(1)", "rich.console.Console()", "sys.stderr.write('x')"),
    ],
)
def test_the_ways_to_print_or_exit_are_found(line: str) -> None:
    assert len(list(spoken(ast.parse(f"def f():\n    {line}")))) >= 1
    assert not list(spoken(ast.parse(f"if __name__ == '__main__':\n    {line}")))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return sum(one is not None and one.arg not in ("self", "cls") for one in named)


def test_only_commands_take_more_than_eight_parameters() -> None:
    """A command's parameters are its options; whoever calls a function gives one typed request instead."""
    for place, path in modules(*OURS, "benchmarks", "docs"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                command = place.startswith("bench/cli/commands/") and not node.name.startswith("_")
                assert command or parameters(node) <= MOST_PARAMETERS, f"{place}: {node.name}"


def test_files_end_where_their_subject_ends() -> None:
    for place, path in modules(*OURS, "benchmarks", "docs"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, place


@pytest.mark.parametrize("words", [["--help"], ["list"], ["run", "--help"], ["tune", "--help"]])
def test_help_and_lists_come_without_heavy_imports(words: list[str]) -> None:
    code = (
        "import sys; from bench.cli.app import main; sys.argv = ['bench', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "heavy = {'torch', 'mlflow', 'optuna', 'pandas', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert "gdm-acc" in done.stdout or "--" in done.stdout
