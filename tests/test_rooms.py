"""The rooms of the house and the doors between them, as CONTRIBUTING.md draws them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("augmenters", "bench", "models", "tables")
MAY_IMPORT = {
    "augmenters": {"augmenters", "models", "bench.registry"},
    "models": {"models", "bench.registry"},
    "tables": {"tables", "bench.registry", "bench.results", "bench.temporary"},
    "bench": set(OURS),
}


def imported_by(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("room", OURS)
def test_a_room_imports_only_through_its_doors(room: str) -> None:
    for path in sorted((ROOT / room).rglob("*.py")):
        for name in imported_by(path):
            if name.split(".")[0] in OURS:
                allowed = any(name == door or name.startswith(f"{door}.") for door in MAY_IMPORT[room])
                assert allowed, f"{path.relative_to(ROOT)} imports {name}"
            if room == "tables":
                assert name.split(".")[0] not in ("torch", "torch_geometric", "mlflow"), f"{path.name} imports {name}"


def test_the_registry_is_a_leaf() -> None:
    for leaf in ("registry.py", "temporary.py"):
        for name in imported_by(ROOT / "bench" / leaf):
            assert name.split(".")[0] in sys.stdlib_module_names
    assert (ROOT / "bench" / "__init__.py").read_text() == ""


def test_nothing_below_the_command_line_prints_or_exits() -> None:
    """Whoever calls `bench.api` from a notebook decides what is shown, and whether to go on."""
    for path in sorted((ROOT / "bench").rglob("*.py")):
        if "cli" in path.relative_to(ROOT).parts:
            continue
        text = path.read_text(encoding="utf-8")
        for name in imported_by(path):
            assert name.split(".")[0] not in ("rich", "typer"), f"{path.relative_to(ROOT)} imports {name}"
            assert not name.startswith("bench.cli"), f"{path.relative_to(ROOT)} imports {name}"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("print", "sys.exit", "exit", "quit"), f"{path.relative_to(ROOT)}: {called}"


def test_no_function_below_the_commands_takes_more_than_eight_arguments() -> None:
    for room in OURS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if "commands" in path.parts:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    words = [
                        one.arg for one in (*node.args.args, *node.args.kwonlyargs) if one.arg not in ("self", "cls")
                    ]
                    assert len(words) <= 8, f"{path.relative_to(ROOT)}: {node.name}"


def test_files_stay_small() -> None:
    for room in (*OURS, "tests", "benchmarks"):
        for path in (ROOT / room).rglob("*.py"):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 300, path


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
