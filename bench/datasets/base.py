"""The interface of datasets, and their result: labeled graphs, cleaned and in a fixed order."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bench.datasets.cleaning import cleaned, has_weights, problem
from bench.datasets.flat import FlatGraphs
from bench.registry import UserError

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class DatasetInfo:
    """What planning needs to know, without loading a graph. None: unknown before the data is available."""

    name: str
    present: bool
    has_features: bool | None
    graphs: int | None = None
    classes: int | None = None
    weighted: bool | None = None  # whether edges have weights, which not every backbone reads
    metric: str = "accuracy"  # the primary metric, unless a run specifies another
    splits: str = ""  # the split family that `auto` means; empty: an available file of folds, else stratified folds


@dataclass(frozen=True)
class GraphSet:
    """A dataset in memory.

    Graphs are undirected (both directions listed), coalesced and without self-loops; `y` is a class index of shape [1].
    Either all graphs have edge weights or none; weights are equal in both directions. Each graph is created on access.
    `fingerprint` is a short hash of the content (edges, weights, features, labels): different data give different
    cells.
    """

    name: str
    graphs: Sequence[Data]
    labels: npt.NDArray[np.int64]
    num_classes: int
    has_features: bool
    fingerprint: str
    weighted: bool = False

    @classmethod
    def from_graphs(cls, name: str, graphs: Sequence[Data]) -> GraphSet:
        """Cleaned copies of the graphs, with classes renumbered from 0 in the order of their values."""
        for number, graph in enumerate(graphs):
            reason = problem(graph)
            if reason:
                raise UserError(f"{name}: graph {number} {reason}; fix the dataset, or leave that graph out")
        values = np.array([int(graph.y) for graph in graphs], dtype=np.int64)
        if len(np.unique(values)) < 2:
            raise UserError(f"{name} has {len(values)} graphs of {len(np.unique(values))} classes; two are needed")
        _, labels = np.unique(values, return_inverse=True)
        labels = labels.astype(np.int64)
        weighted = any(has_weights(graph) for graph in graphs)
        clean = [cleaned(graph, int(label), weighted) for graph, label in zip(graphs, labels, strict=True)]
        widths = {0 if graph.x is None else int(graph.x.shape[1]) for graph in clean}
        if len(widths) != 1:
            raise UserError(f"{name}: graphs have features of different widths {sorted(widths)}; make them equal")
        width = widths.pop()
        labels.flags.writeable = False
        content = _content(labels, clean)
        return cls(name, FlatGraphs.of(clean), labels, len(np.unique(labels)), width > 0, content, weighted)


class Dataset(ABC):
    """Base class of all datasets. Constructor arguments with a default are settings: `synthetic:nodes=40`."""

    @abstractmethod
    def info(self, root: Path) -> DatasetInfo:
        """Whether the dataset is available, and what is known about it without loading it."""

    @abstractmethod
    def load(self, root: Path) -> Sequence[Data]:
        """The graphs, in a fixed order, with an integer class `y`; the harness cleans and renumbers them.

        A graph may have an `edge_weight`: one non-negative number per edge, equal in both directions.
        """

    def kept(self, root: Path) -> GraphSet | None:
        """The dataset as stored by `keep`; None if it was not stored or if anything has changed since."""
        return None

    def keep(self, root: Path, data: GraphSet) -> GraphSet:
        """Store a loaded dataset so that other processes can load it quickly; returns the stored version."""
        return data

    def folds(self, root: Path) -> Sequence[Sequence[Sequence[int]]] | None:
        """Training, validation and test indices of each fold that belongs to the dataset; None if it has none."""
        return None

    def state(self, root: Path) -> Hashable:
        """A cheap value that changes when the files change, so that they are read again; None if there are no files."""
        return None


def _content(labels: npt.NDArray[np.int64], graphs: Sequence[Data]) -> str:
    """A hash of all values in a fixed format: 64-bit integers and 32-bit floats, little-endian, row by row."""
    digest = hashlib.blake2b(digest_size=8)

    def take(values: npt.NDArray[Any], kind: str) -> None:
        digest.update(f"{kind}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values, dtype=kind).data)

    take(labels, "<i8")
    for graph in graphs:
        take(np.array(graph.num_nodes), "<i8")
        take(graph.edge_index.numpy(), "<i8")
        for values in (graph.get("edge_weight"), graph.x):
            if values is None:
                digest.update(b"none")
            else:
                take(values.numpy() + np.float32(0), "<f4")  # -0 becomes 0, since they are the same number
    return digest.hexdigest()
