"""Every example of docs/python.md runs, in the order of the page, as a reader's own script would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
# six times two workers that import torch would take most of the test; the notebooks have workers
IN_ONE_PROCESS = """import bench, functools
    bench.run, bench.tune = (functools.partial(one, executor="serial") for one in (bench.run, bench.tune))"""


def test_its_examples_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 9
    body = "\n".join(blocks).replace("\n", "\n    ")
    script = tmp_path / "example.py"
    script.write_text(f'if __name__ == "__main__":\n    {IN_ONE_PROCESS}\n    {body}\n', encoding="utf-8")
    environment = {**os.environ, "BENCH_DATA": str(tmp_path / "data"), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    assert "<Results: 12 cells, 36 finished trials>" in done.stdout and "120 [" in done.stdout
    for name in ("rates.pdf", "differences.png", "tables/mine.md", "for-a-colleague/README.md"):
        assert (tmp_path / name).stat().st_size > 100, name
    assert re.search(r"0\.5 +[01]\.\d+", done.stdout), "the table by a setting"
