"""A command of the harness in this process, then what it cost: `python measured.py COMMAND ...`; CPU, never the clock.

The last line of stdout is JSON: seconds of processor time and the peak of memory in MiB.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def append(workspace: Path) -> None:
    """What a driver does with a ledger: open it, add trials one by one, close it."""
    from bench.results.ledger import Ledger

    with Ledger(workspace / "ledger.jsonl") as ledger:
        key = next(iter(ledger.state.cells))
        template = next(iter(ledger.state.trials[key].values()))
        start = time.process_time()
        for repeat in range(1000, 1100):
            ledger.append(replace(template, fold=0, repeat=repeat))
        print(f"{(time.process_time() - start) / 100:.6f} s a trial")


def main(command: str, workspace: str) -> None:
    if command == "append":
        append(Path(workspace))
    else:
        from bench.cli.app import app

        app([command, "-w", workspace], standalone_mode=False)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss / 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
