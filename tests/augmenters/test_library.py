"""The augmenters in somebody's own loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch_geometric.transforms as T
from hand_graphs import edges_of, path, ring

from augmenters import GDM, DropEdge, Duplicate, IfMixup, MMixup, SubMix
from bench.registry import UserError

ROOT = Path(__file__).parent.parent.parent


def test_the_library_needs_no_harness() -> None:
    code = (
        "import sys, numpy, torch\n"
        "from torch_geometric.data import Data\n"
        "from augmenters import DropEdge, SubMix\n"
        "edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])\n"
        "graphs = [Data(x=torch.ones(3, 2), edge_index=edges, y=torch.tensor([i])) for i in range(2)]\n"
        "assert len(SubMix()(graphs, numpy.random.default_rng(0))) == 3\n"
        "DropEdge(p=0.2).as_transform(seed=0)(graphs[0])\n"
        "there = {'mlflow', 'optuna', 'typer', 'rich', 'bench.cli', 'bench.plan'} & set(sys.modules)\n"
        "assert not there, there"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_a_transform_draws_afresh_and_leaves_its_input_alone() -> None:
    graph = ring(40)
    steps = T.Compose([DropEdge(p=0.5).as_transform(seed=0), T.ToUndirected()])
    first, second = steps(graph), steps(graph)
    assert edges_of(first) != edges_of(second) and len(edges_of(graph)) == 40
    again = DropEdge(p=0.5).as_transform(seed=0)
    assert edges_of(again(graph)) == edges_of(first)
    assert "DropEdge(p=0.5" in repr(again)
    bare = path(4)
    del bare.y
    assert edges_of(DropEdge(p=0.0).as_transform()(bare)) == edges_of(path(4))


@pytest.mark.parametrize(
    ("augmenter", "reason"),
    [
        (SubMix(), "SubMix mixes graphs and labels"),
        (IfMixup(), "mixes graphs and labels"),
        (GDM(), "mixes graphs and labels"),
        (Duplicate(), "works on all graphs at once"),
        (MMixup(), "acts inside the training step"),
    ],
)
def test_others_say_why_they_are_no_transforms(augmenter: SubMix, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        augmenter.as_transform(seed=0)


def test_every_transform_is_repeated_by_its_seed() -> None:
    from augmenters import AUGMENTERS, GraphAugmenter

    count = 0
    for name in AUGMENTERS.names():
        cls = AUGMENTERS.load(name)
        if issubclass(cls, GraphAugmenter) and cls.when == "epoch" and cls.labels == "kept":
            made = [AUGMENTERS.create(name).as_transform(seed=3)(ring(12)) for _ in range(2)]
            assert torch.equal(made[0].x, made[1].x) and torch.equal(made[0].edge_index, made[1].edge_index), name
            count += 1
    assert count >= 10
