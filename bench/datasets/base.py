"""What a dataset is, and what it gives: labelled graphs, clean and in a fixed order."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bench.registry import UserError

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class DatasetInfo:
    """What planning needs to know, found without loading a graph. None: not known before the data is there."""

    name: str
    present: bool
    has_features: bool | None
    graphs: int | None = None
    classes: int | None = None


@dataclass(frozen=True)
class GraphSet:
    """A dataset in memory.

    Graphs are undirected (both directions listed), coalesced, without self loops; `y` is a class from 0, shape [1].
    `fingerprint` is a short hash of labels and of node and edge counts: another version of the data is another cell.
    """

    name: str
    graphs: list[Data]
    labels: npt.NDArray[np.int64]
    num_classes: int
    has_features: bool
    fingerprint: str

    @classmethod
    def from_graphs(cls, name: str, graphs: Sequence[Data]) -> GraphSet:
        """Clean copies of the graphs with classes renumbered from 0 in the order of their values."""
        for number, graph in enumerate(graphs):
            problem = _problem(graph)
            if problem:
                raise UserError(f"{name}: graph {number} {problem}; mend the dataset, or leave that graph out")
        values = np.array([int(graph.y) for graph in graphs], dtype=np.int64)
        if len(np.unique(values)) < 2:
            raise UserError(f"{name} has {len(values)} graphs of {len(np.unique(values))} classes; two are needed")
        _, labels = np.unique(values, return_inverse=True)
        labels = labels.astype(np.int64)
        clean = [_cleaned(graph, int(label)) for graph, label in zip(graphs, labels, strict=True)]
        widths = {0 if graph.x is None else int(graph.x.shape[1]) for graph in clean}
        if len(widths) != 1:
            raise UserError(f"{name}: graphs have features of different widths {sorted(widths)}; make them equal")
        width = widths.pop()
        labels.flags.writeable = False
        fingerprint = _fingerprint(labels, clean, width)
        return cls(name, clean, labels, len(np.unique(labels)), width > 0, fingerprint)


class Dataset(ABC):
    """Base of all datasets. Arguments of the constructor with a default are settings: `synthetic:nodes=40`."""

    @abstractmethod
    def info(self, root: Path) -> DatasetInfo:
        """Whether it is there and what is known of it, cheaply."""

    @abstractmethod
    def load(self, root: Path) -> Sequence[Data]:
        """The graphs, in a fixed order, `y` an integer class; the harness cleans and renumbers them."""


def _problem(graph: Data) -> str | None:
    """What makes a graph useless for training, in words; a dataset may come from anybody."""
    import torch

    nodes, edges = graph.num_nodes, graph.edge_index
    if not nodes:
        return "has no node"
    if edges is None or edges.dtype != torch.long or edges.dim() != 2 or edges.shape[0] != 2:
        return "has no edge_index of whole numbers with two rows"
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < nodes:
        return f"has an edge to a node outside 0..{nodes - 1}"
    y = torch.as_tensor([] if graph.y is None else graph.y)
    if y.numel() != 1 or not bool(y.long() == y):
        return "has no class, a single whole number in y"
    if graph.x is not None:
        if graph.x.dim() != 2 or graph.x.shape[0] != nodes:
            return f"has features of shape {tuple(graph.x.shape)} for {nodes} nodes"
        if not bool(graph.x.isfinite().all()):
            return "has a feature that is not a finite number"
    return None


def _cleaned(graph: Data, label: int) -> Data:
    import torch
    from torch_geometric.data import Data

    nodes = int(graph.num_nodes or 0)
    row, column = graph.edge_index.numpy()
    row, column = row[row != column], column[row != column]
    pairs = np.unique(np.concatenate([row * nodes + column, column * nodes + row]))
    edges = torch.from_numpy(np.stack(np.divmod(pairs, max(nodes, 1))))
    clean = Data(edge_index=edges, y=torch.tensor([label]), num_nodes=nodes)
    if graph.x is not None and graph.x.shape[1] > 0:
        clean.x = graph.x.to(torch.float32).clone()
    return clean


def _fingerprint(labels: npt.NDArray[np.int64], graphs: Sequence[Data], width: int) -> str:
    counts = [(graph.num_nodes, graph.edge_index.shape[1]) for graph in graphs]
    digest = hashlib.blake2b(digest_size=6)
    for part in (labels, np.array(counts), np.array([width])):
        digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()
