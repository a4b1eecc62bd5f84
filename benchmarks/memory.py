"""Peak memory of trials on graphs as large as those of REDDIT-MULTI-5K, each in its own process.

250 labeled graphs (5 classes, k = 50), 508 nodes and 595 edges on average, the largest with 3,648 nodes. Sizes follow a
log-normal distribution; edges are trees by preferential attachment with a few random additions; features are constant.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from augmenters import AUGMENTERS
from bench.execution.trial import engines
from bench.learning.problem import Problem
from bench.protocol.training import Training
from benchmarks.timing import high_water
from models import BACKBONES, READOUTS

CLASSES, LARGEST, SMALLEST, MEAN_NODES, MEAN_EDGES = 5, 3648, 22, 508.5, 594.9


def sizes(count: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of nodes with REDDIT's mean and maximum."""
    drawn = np.clip(rng.lognormal(np.log(350), 0.85, count), SMALLEST, LARGEST)
    drawn[0] = LARGEST
    drawn[1:] = np.clip(drawn[1:] * (MEAN_NODES * count - LARGEST) / drawn[1:].sum(), SMALLEST, LARGEST)
    return drawn.astype(np.int64)


def thread(nodes: int, label: int, rng: np.random.Generator) -> Data:
    """A reply graph: a tree with hubs and some additional edges."""
    answered = (rng.random(nodes - 1) ** 2 * np.arange(1, nodes)).astype(np.int64)
    tree = np.stack([np.arange(1, nodes), answered])
    more = rng.integers(0, nodes, (2, int(nodes * (MEAN_EDGES / MEAN_NODES - 1)) + 1))
    pairs = np.concatenate([tree, more[:, more[0] != more[1]]], axis=1)
    codes = np.unique(np.concatenate([pairs[0] * nodes + pairs[1], pairs[1] * nodes + pairs[0]]))
    edges = torch.from_numpy(np.stack(np.divmod(codes, nodes)))
    return Data(x=torch.ones(nodes, 1), edge_index=edges, y=torch.tensor([label]), num_nodes=nodes)


def problem(method: str, backbone: str, k: int, epochs: int) -> Problem:
    rng = np.random.default_rng(0)
    return Problem(
        graphs=[thread(int(n), i % CLASSES, rng) for i, n in enumerate(sizes(CLASSES * k, rng))],
        num_classes=CLASSES,
        backbone=BACKBONES.resolve(backbone),
        readout=READOUTS.resolve("mean"),
        augmenter=AUGMENTERS.create(method),
        training=Training(epochs=epochs),
        init_seed=1,
        augment_seed=2,
        pretrain_seed=3,
        shared_seed=lambda key: 4 + sum(key.encode()),
        featurize=lambda graph: graph,
    )


def measure(options: argparse.Namespace) -> None:
    """One trial in this process."""
    torch.set_num_threads(1)
    task = problem(options.methods[0], options.backbone, options.k, options.epochs)
    before, start = high_water(), time.perf_counter()
    fitted = engines()[options.engine]().fit([task])[0]
    if isinstance(fitted, Exception):
        raise fitted
    nodes = sum(int(graph.num_nodes or 0) for graph in task.graphs)
    print(
        f"{options.methods[0]}: peak {high_water() / 1024:.0f} MiB, {before / 1024:.0f} of it before the trial; "
        f"{len(task.graphs)} graphs, {nodes} nodes, {options.epochs} epochs, loss {fitted.loss:.3g}, "
        f"{time.perf_counter() - start:.0f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["none", "dropedge", "gdm-unc"])
    parser.add_argument("--backbone", default="gcn")
    parser.add_argument("--engine", default="fast")
    parser.add_argument("-k", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    if len(options.methods) == 1:
        return measure(options)
    shared = ["--backbone", options.backbone, "--engine", options.engine]
    shared += ["-k", str(options.k), "--epochs", str(options.epochs)]
    for method in options.methods:
        subprocess.run([sys.executable, __file__, "--methods", method, *shared], check=True)


if __name__ == "__main__":
    main()
