"""How long tables and report take on a full ledger of 13,200 made-up trials: `python tests/tables/measure.py`.

Not a test: times depend on the machine. Aims: tables under 10 s, report under 30 s, no torch in either.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
CODE = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from bench.cli.commands import tables
tables.{command}(workspace=Path({workspace!r}))
cpu = resource.getrusage(resource.RUSAGE_SELF).ru_utime
print("CPU", round(cpu, 1), "torch" in sys.modules)
"""


def main() -> None:
    sys.path[:0] = [str(HERE), str(HERE.parents[1])]
    from fake_ledger import ledger, lines

    from bench.results.records import TrialRecord

    with tempfile.TemporaryDirectory() as folder:
        records = ledger()
        (Path(folder) / "ledger.jsonl").write_text(lines(records))
        print(f"{sum(isinstance(record, TrialRecord) for record in records)} trials")
        for command, aim in (("tables", 10), ("report", 30)):
            start = time.perf_counter()
            code = CODE.format(root=str(HERE.parents[1]), command=command, workspace=folder)
            ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            wall = time.perf_counter() - start
            _, cpu, torch = ran.stdout.splitlines()[-1].split()
            print(f"{command}: {wall:.1f} s wall, {cpu} s CPU (aim {aim} s), torch imported: {torch}")


if __name__ == "__main__":
    main()
