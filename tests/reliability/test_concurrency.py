"""Many processes at one workspace: no line is lost, doubled or mixed with another."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bench.results.ledger import read_records
from bench.results.workspace import Workspace

HERE = Path(__file__).parent
PROCESSES = 8


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.soak)])
def test_eight_processes_write_and_read_one_ledger(tmp_path: Path, seconds: int) -> None:
    path = tmp_path / "ledger.jsonl"
    program = str(HERE / "ledger_user.py")
    users = [
        subprocess.Popen(
            [sys.executable, program, str(path), str(number), str(seconds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    told = [user.communicate() for user in users]
    assert [user.returncode for user in users] == [0] * PROCESSES, [err for _, err in told]
    written = {f"{number:016x}": int(out) for number, (out, _) in enumerate(told)}
    records = read_records(path)
    assert path.read_bytes().endswith(b"\n")
    assert Counter(record.cell for record in records) == written
    for key in written:
        assert [record.fold for record in records if record.cell == key] == list(range(written[key]))
    print(f"{sum(written.values())} lines of {PROCESSES} processes in {seconds} s")


class Repeated(threading.Thread):
    """A command of the harness, again and again until it is told to stop; a traceback or a crash is kept."""

    def __init__(self, arguments: list[str], fine: tuple[int, ...]) -> None:
        super().__init__()
        self.arguments, self.fine = arguments, fine
        self.codes: list[int] = []
        self.trouble: list[str] = []
        self.enough = threading.Event()

    def run(self) -> None:
        command = [sys.executable, "-c", "from bench.cli.app import main; main()", *self.arguments]
        while not self.enough.is_set():
            done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
            self.codes.append(done.returncode)
            if done.returncode not in self.fine or "Traceback" in done.stderr:
                self.trouble.append(done.stdout[-500:] + done.stderr[-2000:])
                return
            if self.arguments[0] == "run" and done.returncode == 0:
                return


@pytest.mark.soak
def test_two_drivers_a_sync_and_tables_at_the_same_time(workspace: Callable[..., Path], tools: ModuleType) -> None:
    folder = workspace()
    common = ["-w", str(folder), "-d", "synthetic:graphs=60", "--folds", "5", "--repeats", "2", "--epochs", "20"]
    drivers = [
        Repeated(["run", *common, "-a", "none", "-k", "2,3", "--jobs", "1"], (0, 2)),
        Repeated(["run", *common, "-a", "dropedge", "-a", "none", "-k", "2,4", "--jobs", "2"], (0, 2)),
    ]
    # 2: there is no ledger yet, no table has a number yet, or MLflow's SQLite is held by another for too long
    readers = [Repeated([name, "-w", str(folder)], (0, 2)) for name in ("sync", "tables")]
    for one in (*drivers, *readers):
        one.start()
    for driver in drivers:
        driver.join()
    for reader in readers:
        reader.enough.set()
        reader.join()
    assert not [trouble for one in (*drivers, *readers) for trouble in one.trouble]
    assert len(tools.results(folder)) == 5 * 10  # `results` refuses a trial that is there twice
    alone = workspace("alone")
    for augmenters, rates in ((("none",), [2, 3]), (("dropedge", "none"), [2, 4])):
        grid = tools.grid(augmenters, k=rates, folds=5, repeats=2, epochs=20, name="custom")
        assert tools.run(grid, alone)[0] == 0
    assert tools.results(folder) == tools.results(alone)
    assert_mirror_complete(folder)
    print({one.arguments[0]: len(one.codes) for one in (*drivers, *readers)})


def assert_mirror_complete(folder: Path) -> None:
    """After a last sync, one run a cell, whatever happened between."""
    from bench.tracking.cells import CELL_TAG, Mirror, sync_mirror

    home = Workspace(folder)
    sync_mirror(home, None)
    assert sync_mirror(home, None)[0] == 0
    client = Mirror(home.tracking_uri, home.artifacts).client
    runs = client.search_runs([one.experiment_id for one in client.search_experiments()], max_results=1000)
    assert len(runs) == len({run.data.tags[CELL_TAG] for run in runs}) == 5
