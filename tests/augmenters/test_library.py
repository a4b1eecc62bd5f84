"""The augmenters in somebody's own loop."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from hand_graphs import edges_of, path, ring
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, global_mean_pool

import augmenters
from augmenters import AUGMENTERS, FLAG, GDM, Context, DropEdge, Duplicate, IfMixup, MMixup, SubMix
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
    from augmenters import GraphAugmenter

    count = 0
    for name in AUGMENTERS.names():
        cls = AUGMENTERS.load(name)
        if issubclass(cls, GraphAugmenter) and cls.when == "epoch" and cls.labels == "kept":
            made = [AUGMENTERS.create(name).as_transform(seed=3)(ring(12)) for _ in range(2)]
            assert torch.equal(made[0].x, made[1].x) and torch.equal(made[0].edge_index, made[1].edge_index), name
            count += 1
    assert count >= 10


def test_editors_and_type_checkers_see_every_public_name() -> None:
    tree = ast.parse((ROOT / "augmenters" / "__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == augmenters._PUBLIC
    assert set(augmenters.__all__) <= set(dir(augmenters))


def test_a_composition_shows_its_parts() -> None:
    composed = AUGMENTERS.create("dropedge:p=0.5+maskattr")
    assert repr(composed) == "DropEdge(p=0.5, features='carry') + MaskAttr(p=0.2)"
    assert repr(composed.as_transform()) == f"AugmenterTransform({composed!r})"


class Network(torch.nn.Module):
    """Somebody's own model."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.head = GCNConv(1, 4), torch.nn.Linear(4, 2)

    def embed(self, batch: Batch) -> torch.Tensor:
        return global_mean_pool(self.convolution(batch.x, batch.edge_index).relu(), batch.batch)


class View:
    """All that FLAG asks of a training loop."""

    def __init__(self, model: Network) -> None:
        self.model = model

    def learn(self, graphs: list[Data], share: float = 1.0) -> list[torch.Tensor]:
        batch = Batch.from_data_list(graphs)
        batch.x.requires_grad_()
        loss = cross_entropy(self.model.head(self.model.embed(batch)), batch.y, reduction="sum")
        (share * loss).backward()
        return list(batch.x.grad.split([graph.num_nodes for graph in graphs]))


def test_the_methods_of_the_step_in_a_loop_of_ones_own() -> None:
    torch.manual_seed(0)
    rng, model, graphs = np.random.default_rng(0), Network(), [ring(5, 0), path(4, 1), ring(6, 0)]
    mixup, batch = MMixup(), Batch.from_data_list(graphs)
    targets = torch.nn.functional.one_hot(batch.y, 2).float()
    mixed, labels = mixup.mix(model.embed(batch), targets, mixup.draw_pairs(len(graphs), rng))
    assert mixed.shape == (3, 4) and torch.allclose(labels.sum(dim=1), torch.ones(3))
    flag = FLAG(size=0.1)
    flag.step(View(model), graphs, flag.draw(graphs, rng, Context.standalone(graphs, rng)))
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert graphs[0].x.view(-1).tolist() == [0, 1, 2, 3, 4]
