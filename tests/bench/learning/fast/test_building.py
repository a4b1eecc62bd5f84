"""The compiled sums are built once, kept where nobody else can write, and used only if they are torch's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.learning.fast import engine as fast
from bench.learning.fast.ops import building, self_check
from bench.learning.fast.ops import compiled as using
from bench.learning.fast.ops.building import PASSED, objection
from bench.learning.fast.ops.compiled import Compiled, compiled_or_reason, compiled_status

Make = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("one_thread", "cache")
LACKING = (
    "no C compiler"
    if shutil.which("cc") is None
    else "no AVX2"
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512")
    else ""
)
needs_compiled = pytest.mark.skipif(bool(LACKING), reason=LACKING)
MODULE = "bench.learning.fast.ops.compiled"
ASK = f"from {MODULE} import compiled_or_reason; found = compiled_or_reason(); print(type(found).__name__, found)"


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The compiler behind a script that notes each build; how many there were."""
    script, notes = tmp_path / "noting-cc", tmp_path / "builds"
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] || echo build >> "{notes}"\nexec cc "$@"\n')
    script.chmod(0o700)
    monkeypatch.setenv("BENCH_CC", str(script))
    return lambda: len(notes.read_text().split()) if notes.exists() else 0


def ask_anew() -> Compiled | str:
    compiled_or_reason.cache_clear()
    return compiled_or_reason()


def libraries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.so"))


def processes(count: int) -> list[str]:
    """What so many processes that start at the same time say."""
    asked = [
        subprocess.Popen([sys.executable, "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(count)
    ]
    said = [process.communicate(timeout=300)[0] for process in asked]
    assert all(process.returncode == 0 for process in asked), said
    return said


@needs_compiled
def test_many_processes_build_once(compiler: Callable[[], int], cache: Path) -> None:
    assert all(said.startswith("Compiled") for said in processes(4))
    assert compiler() == 1 and len(libraries(cache)) == 1
    assert all(said.startswith("Compiled") for said in processes(1)) and compiler() == 1
    assert not list(cache.glob("build-*"))


@needs_compiled
def test_the_folder_is_the_users_alone(cache: Path) -> None:
    assert isinstance(ask_anew(), Compiled)
    assert cache.stat().st_mode & 0o777 == 0o700
    assert objection(cache) is None


@needs_compiled
def test_the_check_is_remembered_for_one_torch(
    compiler: Callable[[], int], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = []
    check = self_check.first_difference

    def counted(found: Compiled) -> str | None:
        checks.append(found)
        return check(found)

    monkeypatch.setattr(self_check, "first_difference", counted)
    for _ in range(3):
        assert isinstance(ask_anew(), Compiled)
    assert len(checks) == 1
    monkeypatch.setattr(using, "torch_version", lambda: "2.99.0")
    assert isinstance(ask_anew(), Compiled) and isinstance(ask_anew(), Compiled)
    assert len(checks) == 2 and compiler() == 1
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2" if len(checks) < 3 else "AVX512")
    assert isinstance(ask_anew(), Compiled) and compiler() == 1


@needs_compiled
@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "renamed"])
def test_a_damaged_library_is_built_again(compiler: Callable[[], int], cache: Path, damage: str) -> None:
    assert isinstance(ask_anew(), Compiled)
    (library,) = libraries(cache)
    content = library.read_bytes()
    library.unlink()  # this process still has it loaded
    if damage == "renamed":
        library = library.with_name(library.name.split("-")[0] + "-" + 32 * "0" + ".so")
    place = len(content) // 2
    broken = {
        "truncated": content[:5000],
        "empty": b"",
        "flipped": content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
        "renamed": content,
    }[damage]
    library.write_bytes(broken)
    (said,) = processes(1)  # a process of its own, since loading such a file may end it
    assert said.startswith("Compiled") and compiler() == 2
    (library,) = libraries(cache)
    assert library.read_bytes() != broken or damage == "renamed"


@needs_compiled
def test_another_source_is_another_library(
    compiler: Callable[[], int], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(ask_anew(), Compiled)
    changed = tmp_path / "rows.c"
    changed.write_text(building.SOURCE.read_text() + "\n/* another version */\n")
    monkeypatch.setattr(building, "SOURCE", changed)
    assert isinstance(ask_anew(), Compiled) and compiler() == 2
    assert len({path.name.split("-")[0] for path in libraries(cache)}) == 2
    monkeypatch.setattr(building, "FLAGS", [*building.FLAGS, "-g"])
    assert isinstance(ask_anew(), Compiled) and compiler() == 3


@needs_compiled
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_may_write_to_is_left_alone(
    compiler: Callable[[], int], cache: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(ask_anew(), Compiled)
    cache.chmod(mode)
    monkeypatch.setattr(building, "kept_library", lambda *_: pytest.fail("it must not be looked into"))
    monkeypatch.setattr(using, "kept_library", lambda *_: pytest.fail("it must not be looked into"))
    assert isinstance(ask_anew(), Compiled)
    assert compiler() == 2, "built by this process, for itself"
    assert "built anew by each process, since" in compiled_status()


@needs_compiled
def test_a_folder_of_somebody_else_is_left_alone(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert objection(cache) == f"{cache} belongs to another user"
    assert isinstance(ask_anew(), Compiled) and not list(cache.iterdir())


@needs_compiled
def test_a_folder_below_one_that_others_may_write_to_is_left_alone(cache: Path) -> None:
    cache.mkdir(parents=True, mode=0o700)
    cache.parent.chmod(0o777)
    assert objection(cache) == f"{cache.parent} can be written to by others"
    cache.parent.chmod(0o1777)  # as /tmp: nobody can move what is another's
    assert objection(cache) is None
    cache.parent.chmod(0o700)
    link = cache.parent / "link"
    link.symlink_to(cache)
    assert objection(link) == f"{link} is not a folder"


@needs_compiled
def test_without_a_folder_each_process_builds_for_itself(
    compiler: Callable[[], int], cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert isinstance(ask_anew(), Compiled) and isinstance(ask_anew(), Compiled)
    assert compiler() == 2 and not list(temporary.iterdir()), "and leaves nothing behind"


@needs_compiled
def test_what_an_interrupted_build_left_is_removed(cache: Path) -> None:
    assert isinstance(ask_anew(), Compiled)
    (library,) = libraries(cache)
    key = library.name.split("-")[0]
    library.unlink()
    (cache / f"build-{key}-abc").mkdir()
    (cache / f"build-{key}-abc" / "rows.so").write_bytes(b"half")
    assert isinstance(ask_anew(), Compiled)
    assert not list(cache.glob("build-*")) and len(libraries(cache)) == 1


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [
        ("none", "BENCH_CC=none"),
        ("/no/such/cc", "no C compiler: '/no/such/cc' was not found; install one or set BENCH_CC"),
        ("sh -c 'echo no such option >&2; exit 1'", "failed: no such option"),
        ("true", "true produced no output file"),
        ("a ' quote", "BENCH_CC=a ' quote cannot be read: No closing quotation"),
        ("sh -c 'echo nonsense > $7'", "gave nothing to use: "),
    ],
)
def test_without_a_compiler_torch_does_it(
    problem: Make, monkeypatch: pytest.MonkeyPatch, cache: Path, compiler: str, reason: str
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setenv("BENCH_CC", compiler)
    found = compiled_or_reason()
    assert isinstance(found, str) and reason in found
    assert not libraries(cache)
    assert fast.fit_fast(problem("dropedge", epochs=3)).loss > 0


def test_other_processors_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    assert compiled_or_reason() == "the processor has DEFAULT, not AVX2"


@needs_compiled
@pytest.mark.usefixtures("double")
def test_they_are_found_whatever_the_default_precision() -> None:
    assert isinstance(compiled_or_reason(), Compiled)


def test_the_status_is_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CC", "none")
    assert compiled_status() == "compiled sums: not in use: BENCH_CC=none"
    monkeypatch.setenv("BENCH_CC", "/no/such/cc")
    assert compiled_status().startswith("compiled sums: not in use: no C compiler: '/no/such/cc' was not found")
    assert not cache.exists()


@needs_compiled
def test_the_status_knows_what_was_built(cache: Path) -> None:
    assert compiled_status() == "compiled sums: not built yet; the first trial builds them"
    compiled_or_reason()
    assert compiled_status() == "compiled sums: in use"
    (verdict,) = cache.glob("*.check")
    assert verdict.read_text() == PASSED


def test_the_status_needs_no_torch() -> None:
    code = f"import sys; from {MODULE} import compiled_status; print(compiled_status(), 'torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.startswith("compiled sums: ") and said.endswith("False\n")
