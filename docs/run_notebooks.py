"""Executes the notebooks in docs/notebooks and stores their output: `python docs/run_notebooks.py`.

Each runs in an empty folder with its own data root. Progress bars and warnings are left out of the file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "notebooks"


def refresh(path: Path) -> None:
    """Execute one notebook and write it back."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="augbench-notebook-") as place:
        os.environ["BENCH_DATA"] = str(Path(place) / "data")
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": place}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for found in [Path(word) for word in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        refresh(found)
