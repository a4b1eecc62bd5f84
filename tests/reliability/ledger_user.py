"""One of many processes at one ledger: `python ledger_user.py PATH NUMBER SECONDS`. Prints how often it wrote.

In turn it opens the ledger and appends some trials of its own (others are told to wait), or reads it without a lock.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.registry import UserError
from bench.results.ledger import Ledger, read_records
from bench.results.records import TrialRecord


def trial(number: int, count: int) -> TrialRecord:
    """Lines of very different lengths, the long ones longer than what a pipe takes in one piece."""
    text = f"{number}-{count} " * (1 if count % 3 else 2_000)
    return TrialRecord(f"{number:016x}", count, 0, "failed", text)


def main(path: Path, number: int, seconds: float) -> None:
    rng, end, count = random.Random(number), time.monotonic() + seconds, 0
    while time.monotonic() < end or not count:  # on a busy machine too, each writes at least once
        try:
            with Ledger(path) as ledger:
                for _ in range(rng.randint(1, 5)):
                    ledger.append(trial(number, count))
                    count += 1
        except UserError as error:
            if "another process is writing" not in str(error):
                raise
        trials = [record for record in read_records(path) if isinstance(record, TrialRecord)]
        own = [record.fold for record in trials if record.cell == f"{number:016x}"]
        if own != list(range(count)):
            sys.exit(f"process {number} wrote {count} trials and reads {own[-5:]}")
        time.sleep(rng.random() / 50)
    print(count)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
