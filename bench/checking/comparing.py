"""Whether two graphs are equal and, if not, a description of the difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import label_distribution


def difference(first: Data, second: Data) -> str | None:
    """The exact differences between two graphs, attribute by attribute; None if they are equal."""
    names, others = set(first.keys()), set(second.keys())
    if names != others:
        return f"has {_listed(others - names) or 'nothing'} more and {_listed(names - others) or 'nothing'} less"
    for name in sorted(names):
        if not same_value(first[name], second[name]):
            return f"{name} was {brief(first[name])}, is {brief(second[name])}"
    return None


def first_difference(first: Sequence[Data], second: Sequence[Data]) -> str | None:
    """The first position at which two lists of graphs differ."""
    if len(first) != len(second):
        return f"{len(first)} graphs, then {len(second)}"
    for place, pair in enumerate(zip(first, second, strict=True)):
        found = difference(*pair)
        if found:
            return f"graph {place}: {found}"
    return None


def same_value(first: Any, second: Any) -> bool:
    """Equal in type and value; NaN equals NaN."""
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        if first.dtype != second.dtype or first.shape != second.shape:
            return False
        return bool(torch.equal(first, second) or torch.equal(first.nan_to_num(), second.nan_to_num()))
    return type(first) is type(second) and bool(first == second)


def changed_by(original: Data, new: Data, num_classes: int) -> str | None:
    """How an augmenter changed a graph, as far as a classifier could notice.

    The order of edges, edge weights of one, and labels written as distributions do not count as changes.
    """
    if original.num_nodes != new.num_nodes:
        return f"{original.num_nodes} nodes became {new.num_nodes}"
    if not same_value(original.x, new.x):
        return f"x was {brief(original.x)}, is {brief(new.x)}"
    if not torch.equal(label_distribution(original, num_classes), label_distribution(new, num_classes)):
        return f"y was {brief(original.y)}, is {brief(new.y)}"
    (edges, weights), (new_edges, new_weights) = sorted_edges(original), sorted_edges(new)
    if not torch.equal(edges, new_edges):
        return f"{original.num_edges} directed edges became {new.num_edges}, or others"
    if not torch.equal(weights, new_weights):
        return f"edge weights were {brief(weights)}, are {brief(new_weights)}"
    return None


def sorted_edges(graph: Data) -> tuple[Tensor, Tensor]:
    """Directed edges sorted by their ends, and their weights (1 if there are none)."""
    weight = graph.get("edge_weight")
    weight = torch.ones(graph.num_edges) if weight is None else weight
    order = torch.argsort(graph.edge_index[0] * max(int(graph.num_nodes or 0), 1) + graph.edge_index[1], stable=True)
    return graph.edge_index[:, order], weight[order]


def brief(value: Any) -> str:
    """A short representation of a value, for a report."""
    if not isinstance(value, Tensor):
        return repr(value)
    if value.numel() <= 6:
        return str(value.detach().tolist())
    return f"{list(value.shape)} starting {', '.join(f'{v:g}' for v in value.detach().flatten()[:3].tolist())}"


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))
