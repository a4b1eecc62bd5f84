"""Results as a folder to share: all trials, tables, report, environment, and how to check them."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.datasets.catalogue import DATASETS
from bench.datasets.stored import DATA, FOLDER, NOTE, stored_folder, stored_names
from bench.plan.cells import PARTS
from bench.public.classes import CODE
from bench.public.results import Results
from bench.public.shown import Table, page_of
from bench.registry import UserError
from bench.results import verification
from bench.results.archive import write_archive
from bench.results.workspace import ARCHIVE, Workspace
from bench.temporary import replacing

if TYPE_CHECKING:
    from tables.grid import Request

TITLE = "augbench report"
README, ENVIRONMENT, REPORT, TABLES, GRAPHS = "README.md", "environment.txt", "report.html", "tables", "data"


@dataclass(frozen=True)
class Shared:
    """What was written, and what could not be."""

    folder: Path
    files: tuple[Path, ...]
    left_out: tuple[str, ...]


def share(sources: Sequence[Path], folder: Path, data: Path, with_graphs: bool = False) -> Shared:
    """Write the folder; its content does not depend on the time. With `graphs`, includes stored datasets.

    The trials are always complete. Tables that cannot be made (because cells do not agree) are listed instead.
    """
    if Workspace(folder).ledger.exists():
        raise UserError(f"{folder} is a workspace; name another folder to share")
    results = Results.load(sources)
    if not len(results):
        raise UserError(f"there are no finished trials in {', '.join(map(str, sources))}; start with `bench run`")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_archive(results.state.records(), folder / ARCHIVE)
        checked = [verification.write(results.verifications, folder)] if results.verifications else []
        texts, left_out = _rendered(results)
        texts |= {f"{CODE}/{path.name}": path.read_text(encoding="utf-8") for path in _own_code(results, sources)}
        texts[ENVIRONMENT] = _environment()
        copied = _copy_graphs(results, data, folder) if with_graphs else []
        facts = {"graphs": sorted({path.parent.name for path in copied}), "left_out": left_out}
        texts[README] = _readme(results, folder, data, texts, facts)
        for name, text in texts.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            with replacing(place) as part:
                part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; choose another folder") from error
    files = (folder / ARCHIVE, *checked, *(folder / name for name in texts), *copied)
    return Shared(folder, files, tuple(left_out))


def _rendered(results: Results) -> tuple[dict[str, str], list[str]]:
    """The report and every table as text, and why some are not there; one table for each way of training."""
    from tables.grid import fill
    from tables.selection import Index
    from tables.wanted import specs_for
    from tables.wording import KINDS

    index, requests = Index(results.frames), _requests(results)
    texts: dict[str, str] = {}
    left_out: list[str] = []
    for request in requests:
        for spec in specs_for(index, (), request.settings):
            try:
                table = Table(fill(index, spec, request), index)
            except UserError as error:
                left_out.append(f"table {spec.name}{request.suffix}: {error}")
                continue
            if len(requests) > 1 and not any(entry.value.n for entry in table.grid.entries):
                continue
            for kind in KINDS:
                stem = f"{TABLES}/{table.grid.name}" if kind == "values" else f"{TABLES}/{table.grid.name}-{kind}"
                texts[f"{stem}.tex"] = table.to_latex(kind=kind)
                texts[f"{stem}.md"] = table.to_markdown(kind=kind)
            texts[f"{TABLES}/{table.grid.name}.csv"] = table.to_csv()
    try:
        texts[REPORT] = page_of(results, TITLE, requests)
    except UserError as error:
        left_out.append(f"report: {error}")
    return texts, left_out


def _requests(results: Results) -> list[Request]:
    """All cells at once; where they were trained in several ways, which no table mixes, the cells of each."""
    from tables.grid import Request
    from tables.selection import SETTINGS, Pick

    cells = results.state.cells.values()
    found = []
    for preset in sorted({cell.training.preset for cell in cells}):
        tuned = {bool(cell.tuned) for cell in cells if cell.training.preset == preset}
        kinds = tuple(name for name, is_tuned in zip(SETTINGS, (False, True), strict=True) if is_tuned in tuned)
        suffix = "-" + re.sub(r"[^\w.+=-]", "-", preset)
        found.append(Request(settings=kinds, pick=Pick({"preset": preset}), suffix=suffix))
    return found if len(found) > 1 else [replace(request, pick=Pick(), suffix="") for request in found]


def _own_code(results: Results, sources: Sequence[Path]) -> Iterator[Path]:
    """The modules written from notebooks that these cells use."""
    named = {module for cell in results.state.cells.values() for module in _modules(cell)}
    for source in sources:
        home = source if source.is_dir() else source.parent
        yield from (path for name in sorted(named) if (path := home / CODE / f"{name}.py").is_file())


def _modules(cell: object) -> Iterator[str]:
    """The modules of the plug-ins that a cell names by path."""
    for part in PARTS:
        choice = getattr(cell, part)
        if choice is not None and ":" in choice.name:
            yield choice.name.partition(":")[0]


def _environment() -> str:
    """Every installed package with its version, in pip's format."""
    lines = {
        f"{found.name}=={found.version}".replace("augbench==", "# augbench ")
        for found in distributions()
        if found.name and found.version
    }
    head = f"# Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return "\n".join([head, *sorted(lines, key=str.lower)]) + "\n"


def _copy_graphs(results: Results, data: Path, folder: Path) -> list[Path]:
    copied = []
    for name in sorted({cell.dataset for cell in results.state.cells.values()} & stored_names(data)):
        place = folder / GRAPHS / FOLDER / name
        place.mkdir(parents=True, exist_ok=True)
        for file in (DATA, NOTE):
            if (stored_folder(data, name) / file).is_file():
                shutil.copy2(stored_folder(data, name) / file, place / file)
                copied.append(place / file)
    return copied


def _readme(results: Results, folder: Path, data: Path, texts: Mapping[str, str], facts: Mapping[str, Any]) -> str:
    import jinja2

    state, own = results.state, {module for cell in results.state.cells.values() for module in _modules(cell)}
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("shared.md.j2").render(
        cells=len(state.cells),
        finished=len(results),
        planned=sum(map(len, state.planned().values())),
        digest=hashlib.sha256((folder / ARCHIVE).read_bytes()).hexdigest(),
        tables=any(name.startswith(f"{TABLES}/") for name in texts),
        report=REPORT in texts,
        verified=verification.words_of(results.verifications) if results.verifications else "",
        code=any(name.startswith(f"{CODE}/") for name in texts),
        datasets=[*_datasets(results, data, set(facts["graphs"]))],
        machines=[*dict.fromkeys(_machine(one.facts) for one in state.provenance.values())],
        modules=sorted(own),
        **facts,
    )


def _machine(facts: Mapping[str, Any]) -> str:
    commit = f", commit {facts['commit']}" if facts.get("commit") else ""
    changes = " with changes" if facts.get("dirty") else ""
    versions = f"augbench {facts.get('augbench')}{commit}{changes}, torch {facts.get('torch')}"
    return f"{versions}, Python {facts.get('python')}, {(facts.get('machine') or {}).get('cpu', 'unknown processor')}"


def _datasets(results: Results, data: Path, copied: set[str]) -> Iterator[tuple[str, str]]:
    """How to get each dataset."""
    for name in sorted({cell.dataset for cell in results.state.cells.values()}):
        bare = name.partition(":")[0]
        if name in copied:
            yield name, f"in `{GRAPHS}/`"
        elif name in stored_names(data):
            yield name, "stored graphs that are not in this folder; ask for them"
        elif bare in DATASETS.entries() and DATASETS.entry(bare).target != "bench.datasets.tu:TUCollection":
            yield name, "built in" if DATASETS.entry(bare).origin == "built in" else "from an installed package"
        elif ":" in name:
            yield name, "a class of that path; it has to be installed"
        else:
            yield name, f"`bench data fetch {name}`"
