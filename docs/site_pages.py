"""Pages of the site that are generated from the code: the command line, every plug-in's settings, and the Python API.

MkDocs calls the functions named `on_*`; `mkdocs.yml` lists this file under `hooks`.
"""

from __future__ import annotations

import html
import logging
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import griffe
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

LOG = logging.getLogger("mkdocs.hooks.site_pages")  # below mkdocs, so that a warning fails a strict build
ROOT = Path(__file__).resolve().parents[1]
# Pages from elsewhere in the repository, and their location on the site.
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "results/README.md": "results.md",
}
TORCH_METHODS = {"forward", "backward", "message"}  # documented by torch
# The public modules, in the order in which they are introduced.
API = {
    "bench": ["bench"],
    "augmenters": ["augmenters.base", "augmenters.kinds", "augmenters.functional", "augmenters.transforms"],
    "models": ["models.backbones", "models.readouts", "models.classifier"],
    "learners": ["bench.learning.learner", "bench.learning.problem"],
    "datasets": ["bench.datasets.base", "bench.protocol.splits", "bench.protocol.features", "bench.protocol.metrics"],
    "running": ["bench.execution.events", "bench.execution.pool", "bench.execution.request"],
    "statistics": ["tables.statistics"],
    "registry": ["bench.registry"],
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files in docs/."""
    for source, target in ELSEWHERE.items():
        files.append(File.generated(config, target, content=_moved(ROOT / source, target)))
    files.append(File.generated(config, "reference/commands.md", content=commands()))
    files.append(File.generated(config, "reference/plugins.md", content=plugins()))
    for missing in undocumented():
        LOG.warning("%s has no docstring", missing)
    for title, modules in API.items():
        text = f"# {title}\n\n" + "".join(f"::: {module}\n\n" for module in modules)
        files.append(File.generated(config, f"reference/api/{title}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adjust links from pages in docs/ to pages elsewhere in the repository."""
    if page.file.src_uri in ELSEWHERE.values():
        return markdown
    return _relinked(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


def _moved(source: Path, target: str) -> str:
    return _relinked(source.read_text(encoding="utf-8"), source.relative_to(ROOT).as_posix(), target)


def _relinked(text: str, source: str, target: str) -> str:
    """The text of `source` with relative links adjusted for the page `target`."""

    def mend(match: re.Match[str]) -> str:
        words, link, anchor = match[1], match[2], match[3] or ""
        if "://" in link or link.startswith(("#", "mailto:")):
            return match[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        if place in ELSEWHERE:
            found = ELSEWHERE[place]
        elif place.startswith("docs/"):
            found = place.removeprefix("docs/")
        else:  # a file that is not on the site
            return f"{words} (`{place}`)"
        return f"[{words}]({posixpath.relpath(found, posixpath.dirname(target) or '.')}{anchor})"

    return re.sub(r"\[([^\[\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)", mend, text)


def undocumented() -> Iterator[str]:
    """Public functions, classes and methods of the reference without docstrings."""
    for name in [module for modules in API.values() for module in modules]:
        module = griffe.load(name, search_paths=[str(ROOT)], resolve_aliases=False)
        for thing in module.members.values():
            if not thing.is_alias and _is_public(thing):
                yield from _undocumented(thing)


def _undocumented(thing: griffe.Object) -> Iterator[str]:
    if not thing.has_docstring:
        yield thing.path
    if isinstance(thing, griffe.Class):
        inherited = {name for base in _bases(thing) for name in base.members}
        for member in thing.members.values():
            if not member.is_alias and _is_public(member) and member.name not in inherited:
                yield from _undocumented(member)


def _bases(thing: griffe.Class) -> list[griffe.Class]:
    try:
        return thing.mro()
    except ValueError:  # bases from other packages
        return []


def _is_public(thing: griffe.Object) -> bool:
    known = thing.name.startswith("_") or thing.name in TORCH_METHODS
    return not known and (thing.is_function or thing.is_class)


def commands() -> str:
    """Every command with its options, as generated by typer."""
    call = [sys.executable, "-m", "typer", "bench.cli.app", "utils", "docs", "--name", "bench", "--title", "Commands"]
    made = subprocess.run(call, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    return _with_whole_summaries(html.unescape(made).replace("<", "&lt;"))


def _with_whole_summaries(page: str) -> str:
    """The page with the first line of each command's help in the lists of commands, where typer cuts it off."""
    summaries = dict(re.findall(r"^##+ `(bench [^`]+)`\n\n(.+)$", page, flags=re.MULTILINE))
    lines, command = [], "bench"
    for line in page.splitlines():
        if heading := re.match(r"##+ `(bench [^`]+)`", line):
            command = heading[1]
        if entry := re.match(r"\* `([a-z]+)`: ", line):
            line = f"* `{entry[1]}`: {summaries[f'{command} {entry[1]}']}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def plugins() -> str:
    """Every built-in plug-in with its settings."""
    sys.path.insert(0, str(ROOT))
    return "# Plug-ins and their settings\n\n" + "\n".join(_plugin_lines())


def _plugin_lines() -> Iterator[str]:
    from augmenters import AUGMENTERS
    from bench.learning import LEARNERS
    from bench.registry import show
    from models import BACKBONES, READOUTS

    yield "Write settings as `name:key=value,key=value`. `bench list NAME` shows the same in the terminal."
    for title, registry in {
        "Augmenters": AUGMENTERS,
        "Learners": LEARNERS,
        "Backbones": BACKBONES,
        "Readouts": READOUTS,
    }.items():
        yield f"\n## {title}\n"
        for entry in registry.entries().values():
            if entry.origin != "built in":
                continue
            yield f"\n### `{entry.name}`\n\n{_sentence(entry.summary)}\n"
            settings = registry.settings(entry.name).values()
            if settings:
                yield "| setting | takes | default |\n|---|---|---|"
            for setting in settings:
                domain = setting.domain.replace("|", " \\| ")
                yield f"| `{setting.name}` | {domain} | `{show(setting.default)}` |"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
