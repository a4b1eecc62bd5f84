"""Graphs from memory, stored in the data root as a dataset: plain tensors and a record.

A dataset without a name is named after its content, so that the same graphs are the same dataset everywhere.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.datasets.base import Dataset, DatasetInfo, GraphSet
from bench.datasets.catalogue import DATASETS, OTHER_TU_SETS
from bench.datasets.notes import reader_code, stamp_of
from bench.datasets.paths import plain_name, tu_folder
from bench.registry import UserError
from bench.temporary import replacing, scratch_folder

if TYPE_CHECKING:
    from torch_geometric.data import Data

FOLDER = "graphs"  # in the data root
DATA, NOTE = "graphs.pt", "note.json"
ABOUT = "about.json"  # what cannot be derived from the graphs
_FORMAT = 1
_UNNAMED = "graphs"


@dataclass(frozen=True)
class StoredNote:
    """What planning needs to know about a stored dataset, without torch."""

    graphs: int
    classes: int
    has_features: bool
    weighted: bool
    fingerprint: str
    code: str  # of the code that computed the fingerprint
    stamp: tuple[int, ...]  # of the graph file: a copy of it is fingerprinted again


class StoredGraphs(Dataset):
    """A dataset that `store_graphs` has written to the data root."""

    def __init__(self, name: str) -> None:
        self.name = name

    def info(self, root: Path) -> DatasetInfo:
        note, metric = read_note(root, self.name), judged_by(root, self.name)
        if note is None:
            return DatasetInfo(self.name, (stored_folder(root, self.name) / DATA).is_file(), None, metric=metric)
        return DatasetInfo(self.name, True, note.has_features, note.graphs, note.classes, note.weighted, metric)

    def load(self, root: Path) -> Sequence[Data]:
        path = stored_folder(root, self.name) / DATA
        try:
            return _unpacked(path)
        except OSError as error:
            raise UserError(
                f"{self.name} is not in the data root {root} ({error.strerror}); store the graphs again"
            ) from error
        except (pickle.UnpicklingError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"{path} is not a file of stored graphs ({reason}); store the graphs again") from error

    def state(self, root: Path) -> Hashable:
        try:
            return stamp_of(stored_folder(root, self.name) / DATA)
        except OSError:
            return None


def stored_folder(root: Path, name: str) -> Path:
    return root / FOLDER / plain_name(name, "dataset")


def stored_names(root: Path) -> set[str]:
    """The names of the datasets stored in a data root."""
    return {path.parent.name for path in (root / FOLDER).glob(f"[!.]*/{DATA}")}


def store_graphs(graphs: Sequence[Data], root: Path, name: str | None = None) -> str:
    """Store graphs in the data root and return the name of the dataset; storing the same graphs again changes nothing.

    The default name is `graphs-` and the fingerprint. A name that belongs to other graphs is an error, because results
    under it would mix two datasets.
    """
    from filelock import FileLock

    given = GraphSet.from_graphs(name or _UNNAMED, [copy.copy(graph).cpu() for graph in graphs])
    chosen = plain_name(name, "dataset") if name else f"{_UNNAMED}-{given.fingerprint}"
    if chosen in DATASETS.entries() or chosen in OTHER_TU_SETS or tu_folder(root, chosen).exists():
        raise UserError(f"'{chosen}' is the name of another dataset; choose another name")
    place = stored_folder(root, chosen)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.parent / f".{chosen}.lock"):
            if place.exists():
                _refuse_other(root, chosen, given)
                return chosen
            with scratch_folder(f".{chosen}", place.parent) as temporary:
                made = temporary / chosen
                made.mkdir()
                _pack(given, made / DATA)
                note = StoredNote(
                    len(given.graphs),
                    given.num_classes,
                    given.has_features,
                    given.weighted,
                    given.fingerprint,
                    reader_code(),
                    stamp_of(made / DATA),
                )
                (made / NOTE).write_text(json.dumps(asdict(note), indent=1), encoding="utf-8")
                os.rename(made, place)
    except OSError as error:
        raise UserError(f"cannot write to the data root at {place.parent} ({error}); choose another one") from error
    return chosen


def judge_by(root: Path, name: str, metric: str) -> bool:
    """Set the primary metric of a stored dataset; returns whether that is a change."""
    if judged_by(root, name) == metric:
        return False
    with replacing(stored_folder(root, name) / ABOUT) as part:
        part.write_text(json.dumps({"metric": metric}), encoding="utf-8")
    return True


def judged_by(root: Path, name: str) -> str:
    """The metric given with the dataset; accuracy by default."""
    path = stored_folder(root, name) / ABOUT
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["metric"])
    except FileNotFoundError:
        return DatasetInfo.metric
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} cannot be read ({error}); import the graphs again with --metric") from error


def _refuse_other(root: Path, name: str, given: GraphSet) -> None:
    there = GraphSet.from_graphs(name, StoredGraphs(name).load(root)).fingerprint
    if there != given.fingerprint:
        raise UserError(
            f"the data root has different graphs under the name '{name}' ({there} instead of {given.fingerprint}); "
            "choose another name"
        )


def read_note(root: Path, name: str) -> StoredNote | None:
    """The record of a stored dataset, if it matches the graph file."""
    folder = stored_folder(root, name)
    try:
        facts = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        note = StoredNote(**{**facts, "stamp": tuple(facts["stamp"])})
        return note if note.stamp == stamp_of(folder / DATA) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _pack(given: GraphSet, path: Path) -> None:
    import torch

    graphs = given.graphs
    parts: dict[str, Any] = {
        "format": _FORMAT,
        "y": torch.tensor(given.labels.tolist()),
        "nodes": torch.tensor([int(graph.num_nodes or 0) for graph in graphs]),
        "edges": torch.tensor([graph.edge_index.shape[1] for graph in graphs]),
        "edge_index": torch.cat([graph.edge_index for graph in graphs], dim=1),
    }
    if given.has_features:
        parts["x"] = torch.cat([graph.x for graph in graphs])
    if given.weighted:
        parts["edge_weight"] = torch.cat([graph.edge_weight for graph in graphs])
    torch.save(parts, path)


def _unpacked(path: Path) -> list[Data]:
    """The graphs of an untrusted file: only tensors, with consistent lengths."""
    import torch
    from torch_geometric.data import Data

    parts = torch.load(path, weights_only=True)
    if not isinstance(parts, dict) or parts.get("format") != _FORMAT:
        raise ValueError("it has another form")
    nodes, edges = parts["nodes"].tolist(), parts["edges"].tolist()
    if min([0, *nodes, *edges]) < 0:
        raise ValueError("it speaks of fewer than no nodes")
    columns = parts["edge_index"].split(edges, dim=1)
    features = parts["x"].split(nodes) if "x" in parts else [None] * len(nodes)
    weights = parts["edge_weight"].split(edges) if "edge_weight" in parts else [None] * len(nodes)
    found = []
    for x, edge_index, weight, y, count in zip(features, columns, weights, parts["y"].tolist(), nodes, strict=True):
        graph = Data(x=x, edge_index=edge_index, y=torch.tensor([y]), num_nodes=count)
        if weight is not None:
            graph.edge_weight = weight
        found.append(graph)
    return found
