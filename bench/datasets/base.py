"""What a dataset is, and what it gives: labeled graphs, clean and in a fixed order."""

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
    """What planning needs to know, found without loading a graph. None: not known before the data is there."""

    name: str
    present: bool
    has_features: bool | None
    graphs: int | None = None
    classes: int | None = None
    weighted: bool | None = None  # whether edges have weights, which not every backbone reads
    metric: str = "accuracy"  # what results on it are judged by, unless a run says otherwise
    splits: str = ""  # the split family that `auto` means; empty: a file of folds that is there, else our own


@dataclass(frozen=True)
class GraphSet:
    """A dataset in memory.

    Graphs are undirected (both directions listed), coalesced, without self loops; `y` is a class from 0, shape [1].
    If one of them has edge weights, all have, the same in both directions. Each graph is made when it is asked for.
    `fingerprint` is a short hash of the content (edges, weights, features, labels): other data is another cell.
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
        """Clean copies of the graphs with classes renumbered from 0 in the order of their values."""
        for number, graph in enumerate(graphs):
            reason = problem(graph)
            if reason:
                raise UserError(f"{name}: graph {number} {reason}; mend the dataset, or leave that graph out")
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
    """Base of all datasets. Arguments of the constructor with a default are settings: `synthetic:nodes=40`."""

    @abstractmethod
    def info(self, root: Path) -> DatasetInfo:
        """Whether it is there and what is known of it, cheaply."""

    @abstractmethod
    def load(self, root: Path) -> Sequence[Data]:
        """The graphs, in a fixed order, `y` an integer class; the harness cleans and renumbers them.

        A graph may have an `edge_weight`: one number from 0 per edge, the same for both directions.
        """

    def kept(self, root: Path) -> GraphSet | None:
        """The dataset as `keep` has put it by, None if it has not, or if anything has changed since."""
        return None

    def keep(self, root: Path, data: GraphSet) -> GraphSet:
        """Put by what was loaded, so that the next process has it in a moment; the same dataset, as it is kept."""
        return data

    def folds(self, root: Path) -> Sequence[Sequence[Sequence[int]]] | None:
        """Train, validation and test indices of each fold that belongs to the dataset; None if it has none."""
        return None

    def state(self, root: Path) -> Hashable:
        """Something cheap that changes when the files change, so that they are read again; None if there are none."""
        return None


def _content(labels: npt.NDArray[np.int64], graphs: Sequence[Data]) -> str:
    """A hash of every value in a fixed form: 64-bit integers and 32-bit floats, little-endian, row by row."""
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
                take(values.numpy() + np.float32(0), "<f4")  # -0 becomes 0: they are the same number
    return digest.hexdigest()
