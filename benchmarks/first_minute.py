"""How long a user waits: seconds from Enter to the first line, to the first finished trial and to the end.

Each row is a command on a terminal of its own (a pseudo-terminal), timed by what appears there and in the ledger. The
rows take turns, round by round, and of each the median counts. The floor is what every run has to import before it can
train. Everything is measured warm: the first round only fills the caches of Python, of plug-ins and of datasets.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.registry import UserError
from benchmarks.scripts import call

ROOT = Path(__file__).resolve().parents[1]
BENCH = [sys.executable, "-c", "from bench.cli.entry import main; main()"]
FLOOR = [sys.executable, "-c", "import torch, torch_geometric"]
SIX = ["-d", "digits", "-a", "none,dropedge", "-k", "2", "--folds", "3", "--repeats", "1", "--preset", "quick"]
DRY = ["--grid", "10labelrate", "--dry-run", "--skip-unavailable"]
TRIAL = b'{"type":"trial"'
LOOK = 0.005  # seconds between two looks at the ledger
OVERHEAD = re.compile(r"\d+ trials took .*waiting for .*")


@dataclass
class Watched:
    """One command from Enter to its end."""

    first_line: float | None = None
    first_trial: float | None = None
    end: float = 0.0
    text: str = ""


@dataclass
class Row:
    """A command that is measured once a round, in a workspace that the round gives it."""

    name: str
    command: Callable[[Path], Sequence[str]]
    has_trials: bool = False
    rounds: list[Watched] = field(default_factory=list)

    def line(self) -> str:
        """The row of the table: medians over the rounds."""
        times = [[getattr(watched, name) for watched in self.rounds] for name in ("first_line", "first_trial", "end")]
        cells = ["-" if None in found else f"{statistics.median(found):.2f}" for found in times]
        return f"| {self.name} | {' | '.join(cells)} |"


def watch(command: Sequence[str], ledger: Path | None) -> Watched:
    """Run a command on a terminal of 80 columns and note when a line stands there and a trial in the ledger."""
    ours, its = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
    start, seen = time.perf_counter(), Watched()
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True)
    os.close(its)
    os.set_blocking(ours, False)
    said = b""
    while True:
        ended = process.poll() is not None
        now = time.perf_counter() - start
        with suppress(BlockingIOError, OSError):  # nothing new; or nobody is left at the other end
            while part := os.read(ours, 65536):
                said += part
        if seen.first_line is None and b"\n" in said:
            seen.first_line = now
        if seen.first_trial is None and ledger is not None and ledger.exists() and TRIAL in ledger.read_bytes():
            seen.first_trial = now
        if ended:
            break
        time.sleep(LOOK)
    seen.end, seen.text = now, said.decode(errors="replace")
    os.close(ours)
    if process.returncode:
        raise UserError(f"{' '.join(command)} ended with {process.returncode}: {seen.text.strip()[-300:]}")
    return seen


def rows(data: Sequence[str]) -> list[Row]:
    """The floor, a run of six short trials, the same again with nothing to do, and the forecast of one table."""
    return [
        Row('`python -c "import torch, torch_geometric"`', lambda home: FLOOR),
        Row("`bench run`, 6 short trials", lambda home: [*BENCH, "run", *SIX, *data, "-w", str(home / "six")], True),
        Row("the same again, nothing to do", lambda home: [*BENCH, "run", *SIX, *data, "-w", str(home / "six")]),
        Row(
            "`bench run --grid 10labelrate --dry-run`, nothing measured before",
            lambda home: [*BENCH, "run", *DRY, *data, "-w", str(home / "none")],
        ),
    ]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="data root (default: $BENCH_DATA)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-dry-run", action="store_true", help="leave out the dry run, which needs the TU datasets")
    parser.add_argument("--no-quick", action="store_true", help="leave out the grid `quick` and its overhead")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse()
    data = [] if options.data is None else ["--data", str(options.data)]
    table = rows(data)[: 3 if options.no_dry_run else 4]
    for turn in range(options.rounds + 1):
        with tempfile.TemporaryDirectory(prefix="augbench-first-minute-") as folder:
            for row in table:
                home = Path(folder)
                watched = watch(row.command(home), home / "six" / "ledger.jsonl" if row.has_trials else None)
                if turn:
                    row.rounds.append(watched)
    print("| seconds to | first line | first trial | end |\n|---|---:|---:|---:|")
    for row in table:
        print(row.line(), flush=True)
    if not options.no_quick:
        print_overhead(data)


def print_overhead(data: Sequence[str]) -> None:
    """What the grid `quick` says of itself: planning, MLflow and ledger beside the seconds of its trials."""
    with tempfile.TemporaryDirectory(prefix="augbench-first-minute-") as folder:
        said = watch([*BENCH, "run", "--grid", "quick", *data, "-w", folder], None).text
    found = OVERHEAD.search(" ".join(said.split()))
    if found is None:
        raise UserError(f"the grid quick did not say what it cost; its last words: {said.strip()[-300:]}")
    print(f"\nbench run --grid quick: {found[0].partition(' ledger: runs')[0]}")


if __name__ == "__main__":
    call(main)
