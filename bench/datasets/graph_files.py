"""Import a list of PyG graphs from a file written by `torch.save`.

The file may come from anywhere: it is read as tensors and graphs only, and no code in it can run.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.datasets.importing import Brought
from bench.datasets.stored import judge_by, store_graphs, stored_names
from bench.registry import UserError

if TYPE_CHECKING:
    from torch_geometric.data import Data

SUFFIXES = (".pt", ".pth")
_UNREADABLE = (ArithmeticError, AttributeError, EOFError, LookupError, RuntimeError, TypeError, ValueError)


def import_graphs(path: Path, root: Path, name: str | None = None, metric: str | None = None) -> Brought:
    """Check every graph of a file and store them under a name, by default that of the file."""
    chosen = name or path.stem
    graphs = read_graphs(path)
    known = chosen in stored_names(root)
    store_graphs(graphs, root, chosen)
    changed = metric is not None and judge_by(root, chosen, metric)
    detail = "the same graphs are already there" if known else f"{len(graphs)} graphs"
    if metric is not None:
        detail += f", judged by {metric}"
    return Brought(chosen, "new" if not known else "replaced" if changed else "unchanged", detail)


def read_graphs(path: Path) -> Sequence[Data]:
    """The graphs of a file, reduced to what a dataset needs: edges, a class, and optional features and weights."""
    import torch
    from torch_geometric.data import Data  # registers PyG's classes with torch as safe to load
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    try:
        with torch.serialization.safe_globals([DataEdgeAttr, DataTensorAttr, GlobalStorage]):
            found = torch.load(path, weights_only=True, map_location="cpu")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}); check the path") from error
    except pickle.UnpicklingError as error:
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        reason = f"it asks for {named[1]}" if named else "its pickle cannot be read"
        raise UserError(
            f"{path} contains something other than tensors and graphs, so it is not opened ({reason}); "
            "save a list of torch_geometric.data.Data with tensors only"
        ) from error
    except _UNREADABLE as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path} was not written by torch.save ({reason}); save the list of graphs again") from error
    if not isinstance(found, list | tuple) or not found:
        kind = "an empty list" if isinstance(found, list | tuple) else f"a {type(found).__name__}"
        raise UserError(f"{path} holds {kind}, not a list of graphs; save a list of Data")
    return [_plain(graph, number, path, Data) for number, graph in enumerate(found)]


def _plain(graph: object, number: int, path: Path, kind: type[Data]) -> Data:
    """The attributes that a dataset uses, if they are valid; all others are dropped."""
    import torch

    if not isinstance(graph, kind):
        raise UserError(f"{path}: item {number} is a {type(graph).__name__}, not a Data; save a list of Data")
    try:
        held = {name: graph.get(name) for name in ("x", "edge_index", "edge_weight", "y")}
        nodes = graph.num_nodes
    except _UNREADABLE as error:
        raise UserError(f"{path}: graph {number} is invalid ({error}); fix it or leave it out") from error
    for name, value in held.items():
        if value is not None and not isinstance(value, torch.Tensor) and name != "y":
            raise UserError(f"{path}: {name} of graph {number} is a {type(value).__name__}; it must be a tensor")
    plain = kind(**{name: value for name, value in held.items() if value is not None})
    if not isinstance(held["edge_index"], torch.Tensor) or not isinstance(nodes, int):
        raise UserError(f"{path}: graph {number} has no edge_index or no number of nodes; give both")
    plain.num_nodes = nodes
    return plain
