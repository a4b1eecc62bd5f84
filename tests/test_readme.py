"""The README's words and code are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from bench.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_its_python_runs(tmp_path: Path) -> None:
    said = []
    for code in blocks("python"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert "DropEdge" in said[0] or "dropedge" in said[0], said[0]
    assert "42" in said[1]  # 3 ceil(40 / 3) graphs


def test_its_picture_is_the_published_one() -> None:
    published = (ROOT / "results" / "tables" / "differences-k10.svg").read_bytes()
    assert (ROOT / "docs" / "images" / "differences.svg").read_bytes() == published


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_on_a_page_exists(page: Path) -> None:
    group = typer.main.get_command(app)
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for line in block.splitlines():
            words = line.split("#")[0].split()
            if not words or words[0] != "bench":
                continue
            command = group.commands[words[1]]  # type: ignore[attr-defined]
            if hasattr(command, "commands"):
                command = command.commands[words[2]]
            known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
            for word in words[2:]:
                flag = word.split("=")[0]
                if re.fullmatch(r"--?[a-z][a-z-]*", flag):
                    assert flag in known, f"{page.name}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_on_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} points to {target}"
