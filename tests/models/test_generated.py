"""No file of PyG's stays behind when models are built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import torch
from torch_geometric.data import Batch, Data
from models.classifier import build_classifier
batch = Batch.from_data_list([Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))])
for backbone in ("gcn", "gat", "gin", "sage", "gcn"):
    build_classifier(backbone, "mean", 2, 2, 0)(batch).sum().backward()
"""


def test_building_models_leaves_no_files(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "TMPDIR": str(tmp_path), "PYTHONPATH": str(root)},
        cwd=root,
        check=True,
    )
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []
