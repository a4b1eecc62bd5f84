"""Coverage-guided fuzzing with atheris, which is no dependency: `pip install atheris`, then

    python tests/reliability/fuzz_guided.py TARGET [-runs=20000] [-max_total_time=60]

TARGET is one of settings, grid, ledger, splits, tu, archive, parquet. Anything but the documented error ends it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found]

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

with atheris.instrument_imports(include=["bench", "tables", "augmenters", "models"]):
    import hostile_targets


# What each target takes for granted, so that the search does not begin with guessing JSON.
SEEDS = {
    "settings": b"gdm-acc:encoder=vgsae,eps=0.1",
    "grid": b'datasets = ["digits"]\nk = [2]\n[[block]]\naugmenters = "none"\n[training]\nepochs = 5\n',
    "ledger": hostile_targets.ledger_lines(hostile_targets.ledger_records()),
    "splits": json.dumps(hostile_targets.split_content()).encode(),
    "tu": b"\0".join(hostile_targets.tu_texts(4).values()),
}


def main() -> None:
    name = sys.argv.pop(1)
    target = hostile_targets.OF_BYTES[name]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        place, seeds = Path(folder) / "work", Path(folder) / "seeds"
        place.mkdir()
        seeds.mkdir()
        (seeds / "valid").write_bytes(SEEDS.get(name, b""))
        atheris.Setup([*sys.argv, str(seeds)], lambda content: target(content, place))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
