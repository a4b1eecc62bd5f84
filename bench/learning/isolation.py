"""Keeps trials independent: copies that share no memory, and hashes of graphs."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable

from torch import Tensor
from torch_geometric.data import Data

from models.sparse_features import is_sparse

CONTENT = ("x", "edge_index", "edge_weight", "y")  # what training reads of a graph


def own_copy(graph: Data) -> Data:
    """A graph that shares no memory with the original."""
    return _copied(graph, graph.keys())


def unlabeled(graph: Data) -> Data:
    """A copy without the label, for a predictor."""
    return _copied(graph, set(graph.keys()) - {"y"})


def _copied(graph: Data, names: Iterable[str]) -> Data:
    new = Data()
    for name in names:
        value = graph[name]
        # `deepcopy` of a tensor would copy all the memory that it is a view of.
        new[name] = value.clone() if isinstance(value, Tensor) else copy.deepcopy(value)
    return new


def contents_of(graphs: Iterable[Data]) -> bytes:
    """A hash of everything that a classifier could learn from some graphs."""
    digest = hashlib.blake2b(digest_size=16)
    for graph in graphs:
        digest.update(f"graph {graph.num_nodes}".encode())
        for name in CONTENT:
            value = graph.get(name)
            if isinstance(value, Tensor):
                digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
                for part in (value.columns, value.amounts) if is_sparse(value) else (value,):
                    digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.digest()
