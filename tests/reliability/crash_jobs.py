"""Jobs that are killed at every step of their way to disk, and then done again: `python crash_jobs.py FOLDER JOB...`.

Prints one line of JSON for each step: what was done at it, what was acknowledged before it, what the folder held after
it, and what it holds when the job was done again. One process loads everything once; each attempt is a fork of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import traceback
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench"), str(HERE.parents[1])]

import run_tools as tools  # noqa: E402
from faults import Killer, in_a_fork  # noqa: E402

from bench.results.ledger import Ledger, read_records  # noqa: E402
from bench.results.workspace import Workspace  # noqa: E402
from bench.tracking.cells import Mirror  # noqa: E402

GRID = tools.grid(("none",), k=[2], folds=2, epochs=2)
LEDGER = ("ledger.jsonl", "ledger.lock")


@dataclass(frozen=True)
class Job:
    """Something that writes below a folder, what lies there before, and what is to be seen of it afterwards."""

    prepare: Callable[[Path], Any]
    do: Callable[[Path], Any]
    look: Callable[[Path], Any]
    names: tuple[str, ...] = ()  # only the steps on files of these names


def kill_everywhere(name: str, job: Job, home: Path) -> None:
    """Attempts until one comes to its end by itself."""
    whole = home / "whole"
    whole.mkdir()
    prepared(job, whole)
    say(job=name, step="before", seen=job.look(whole))
    assert in_a_fork(lambda: job.do(whole)) == 0, "the job fails without any kill"
    say(job=name, step="never", seen=job.look(whole))
    for at in range(1, 10_000):
        folder, note, acknowledged = home / f"at{at}", home / f"note{at}", home / f"acknowledged{at}"
        folder.mkdir()
        prepared(job, folder)

        def attempt(folder: Path = folder, at: int = at, note: Path = note, log: Path = acknowledged) -> None:
            tell_acknowledged(log)
            Killer(folder, at, note, job.names).install()
            quiet(lambda: job.do(folder))

        code = in_a_fork(attempt)
        if code == 0:
            return
        assert code == -9, f"step {at} ended with {code}"
        told = [json.loads(line) for line in acknowledged.read_text().splitlines()] if acknowledged.exists() else []
        seen = job.look(folder)
        again = in_a_fork(lambda folder=folder: quiet(lambda: job.do(folder)))
        say(job=name, step=note.read_text(), acknowledged=told, seen=seen, code=again, again=job.look(folder))
        shutil.rmtree(folder)


def prepared(job: Job, folder: Path) -> None:
    with contextlib.redirect_stdout(sys.stderr):  # stdout is the report
        job.prepare(folder)


def tell_acknowledged(log: Path) -> None:
    """Note each trial at the moment at which `append` has returned."""
    real, file = Ledger.append_all, os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    write = os.write

    def append_all(self: Ledger, records: Any) -> None:
        real(self, records)
        for record in records:
            if isinstance(record, tools.TrialRecord):
                write(file, json.dumps([record.cell, record.fold, record.repeat]).encode() + b"\n")

    Ledger.append_all = append_all  # type: ignore[method-assign]


def say(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def quiet(job: Callable[[], Any]) -> None:
    """An error is told on stderr; what the job prints is of no interest."""
    try:
        job()
    except BaseException:
        traceback.print_exc()
        raise


def files(folder: Path) -> dict[str, str]:
    """The content of everything that is not hidden, by name."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    shown = (path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in shown}


def trials(folder: Path) -> list[Any]:
    """Every trial line of a ledger without its times: a list, so that a doubled one shows."""
    found = read_records(Workspace(folder).ledger)
    kept = [record for record in found if isinstance(record, tools.TrialRecord)]
    return sorted(([r.cell, r.fold, r.repeat, r.accuracy, r.loss, r.curve] for r in kept), key=str)


def run_job(store: Path, every_file: bool) -> Job:
    def prepare(folder: Path) -> None:
        tools.prepare(folder, store)
        Workspace(folder).ledger.write_bytes(b'{"type":"trial","cell":"')  # an earlier crash is part of the job

    def do(folder: Path) -> None:
        code, out = tools.run(GRID, folder)
        assert code == 0, out

    return Job(prepare, do, trials, () if every_file else LEDGER)


def merge_job(source: Path) -> Job:
    from bench.results.merge import merge_ledgers

    return Job(lambda folder: None, lambda folder: merge_ledgers([source], Workspace(folder)), trials, LEDGER)


def tables_job(source: Path) -> Job:
    """Tables over those of an earlier day; every file is one or the other."""
    from bench.cli.commands.tables import tables

    def prepare(folder: Path) -> None:
        shutil.copyfile(Workspace(source).ledger, Workspace(folder).ledger)
        tables(workspace=folder)
        for path in (folder / "tables").iterdir():
            path.write_text("of an earlier day")

    return Job(prepare, lambda folder: tables(workspace=folder), lambda folder: files(folder / "tables"))


def archive_job(source: Path) -> Job:
    from bench.results.archive import write_archive

    def write(folder: Path) -> None:
        write_archive(read_records(Workspace(source).ledger), folder / "all.parquet")

    return Job(lambda folder: (folder / "all.parquet").write_text("of an earlier day"), write, files)


def plan_cache_job() -> Job:
    from augmenters import AUGMENTERS
    from bench.plan.plugin_cache import Resolver

    def plan(folder: Path) -> None:
        resolver = Resolver(folder / "plugins.json")
        for name in ("none", "dropedge"):
            resolver.resolve(AUGMENTERS, name)
        resolver.save()

    return Job(lambda folder: None, plan, files)


def import_job(home: Path) -> Job:
    """Another version of a dataset over the one that is there."""
    from bench.datasets.importing import import_path

    old, new = (tiny_archive(home / version, graphs) for version, graphs in (("old", 40), ("new", 44)))
    first = home / "imported"
    import_path(old, first)
    return Job(
        lambda folder: shutil.copytree(first, folder, dirs_exist_ok=True),
        lambda folder: import_path(new, folder),
        lambda folder: files(folder / "tu" / "TINY" / "raw"),
    )


def tiny_archive(folder: Path, graphs: int) -> Path:
    folder.mkdir()
    nodes = range(1, 3 * graphs, 3)
    edges = "".join(f"{a}, {a + 1}\n{a + 1}, {a}\n{a + 1}, {a + 2}\n{a + 2}, {a + 1}\n" for a in nodes)
    indicator = "".join(f"{number // 3 + 1}\n" for number in range(3 * graphs))
    labels = "".join(f"{number % 2}\n" for number in range(graphs))
    with zipfile.ZipFile(folder / "TINY.zip", "w") as archive:
        for kind, text in (("A", edges), ("graph_indicator", indicator), ("graph_labels", labels)):
            archive.writestr(f"TINY/TINY_{kind}.txt", text)
    return folder / "TINY.zip"


def store_job() -> Job:
    from bench.tracking.cells import Mirror

    def make(folder: Path) -> None:
        Mirror(Workspace(folder).tracking_uri, Workspace(folder).artifacts).experiment("usable")

    return Job(lambda folder: None, make, lambda folder: sorted(name for name in files(folder) if name.endswith("db")))


def main(names: Sequence[str], home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    first = home / "first"
    sys.stdout, shown = sys.stderr, sys.stdout
    tools.run(GRID, first)  # also loads torch and MLflow, for every fork to have
    empty = Workspace(home / "empty")
    empty.prepare()
    _ = Mirror(empty.tracking_uri, empty.artifacts).client
    store = empty.root / "mlflow.db"
    jobs: dict[str, Callable[[], Job]] = {
        "run": lambda: run_job(store, every_file=False),
        "run, every file": lambda: run_job(store, every_file=True),
        "merge": lambda: merge_job(first),
        "tables, every file": lambda: tables_job(first),
        "archive": lambda: archive_job(first),
        "plan cache": plan_cache_job,
        "import, every file": lambda: import_job(home / "import, every file"),
        "store": store_job,
    }
    for name in names:
        (home / name).mkdir()
        job = jobs[name]()
        sys.stdout = shown
        kill_everywhere(name, job, home / name)
        sys.stdout = sys.stderr


if __name__ == "__main__":
    main(sys.argv[2:], Path(sys.argv[1]))
