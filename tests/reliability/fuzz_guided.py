"""Coverage-guided fuzzing with atheris, which is no dependency: `pip install atheris`, then

    python tests/reliability/fuzz_guided.py TARGET [-runs=20000] [-max_total_time=60]

TARGET is one of settings, grid, ledger, splits, tu, archive, parquet. Anything but the documented error ends it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found]

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

with atheris.instrument_imports(include=["bench", "tables", "augmenters", "models"]):
    import bench.datasets.tu_files
    import bench.grid_files
    import bench.ledger
    import bench.splits
    import hostile_targets
    import tables.archive  # noqa: F401


def main() -> None:
    target = hostile_targets.OF_BYTES[sys.argv.pop(1)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        place = Path(folder)
        atheris.Setup(sys.argv, lambda content: target(content, place))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
