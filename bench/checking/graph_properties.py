"""Properties of all graphs that an augmenter generates."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from augmenters.base import GraphAugmenter, label_distribution
from augmenters.functional import any_weighted
from bench.checking.cases import Case
from bench.checking.comparing import brief, sorted_edges
from bench.checking.contract import BrokenError, DoesNotApplyError, holds, holds_for_each_graph, looked_at
from bench.checking.subject import Subject
from bench.learning.steps import bare_graphs

TOLERANCE = 1e-4  # for the sum of a label


def malformed(graph: Any, case: Case, subject: Subject) -> str | None:
    """Why a graph cannot be trained on, if it cannot; the other properties rely on well-formed graphs."""
    if not isinstance(graph, Data):
        return f"it is a {type(graph).__name__}, not a PyG Data"
    edges, y, x, weight = (graph.get(name) for name in ("edge_index", "y", "x", "edge_weight"))
    if not isinstance(edges, Tensor) or edges.dtype != torch.long or edges.dim() != 2 or len(edges) != 2:
        return f"edge_index is {_kind(edges)}, not whole numbers of shape [2, edges]"
    if not isinstance(y, Tensor):
        return f"y is {_kind(y)}, not a tensor"
    if not isinstance(graph.num_nodes, int) or graph.num_nodes < 1:
        return f"it has {graph.num_nodes} nodes; a graph keeps one at least"
    if weight is not None and (not isinstance(weight, Tensor) or weight.shape != (edges.shape[1],)):
        return f"edge_weight is {_kind(weight)}, not one number for each of {edges.shape[1]} edges"
    carried = subject.instance.features == "carry"  # otherwise the harness recomputes the features
    if (carried or x is not None) and (not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point()):
        return f"x is {_kind(x)}, not numbers of shape [nodes, features]"
    width = case.graphs[0].num_node_features
    if carried and graph.num_node_features != width:
        return f"x has {graph.num_node_features} columns, the originals {width}"
    if any(isinstance(value, Tensor) and value.requires_grad for value in graph.to_dict().values()):
        return "a tensor of it requires a gradient; detach it"
    return None


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {list(value.shape)}"
    return "missing" if value is None else type(value).__name__


@holds("says when and how it works")
def declares_itself(subject: Subject) -> str | None:
    """`when` decides how an augmenter is called: a GraphAugmenter with `batch` would never be called."""
    augmenter = subject.instance
    allowed = {
        "when": ("offline", "epoch") if isinstance(augmenter, GraphAugmenter) else ("batch",),
        "mode": ("replace", "append"),
        "labels": ("kept", "mixed"),
        "features": ("carry", "recompute"),
    }
    for name, values in allowed.items():
        said = getattr(augmenter, name, None)
        if said not in values:
            raise BrokenError(f"{name} is {said!r}, not {' or '.join(values)}")
    return f"{augmenter.when}, {augmenter.mode}, labels {augmenter.labels}"


@holds("graphs can be trained on", "graphs")
def makes_graphs(subject: Subject) -> str | None:
    most = 0
    for case, outcome in subject.outcomes():
        if not outcome.made:
            raise BrokenError(f"{case.name}: no graph was generated from {len(case.graphs)}")
        for place, graph in enumerate(outcome.made):
            wrong = malformed(graph, case, subject)
            if wrong:
                raise BrokenError(f"{case.name}, graph {place}: {wrong}")
        most += len(outcome.made)
    if not most:
        raise DoesNotApplyError("it ran on no case")
    return f"{most} graphs looked at"


@holds_for_each_graph("edges join nodes that exist")
def valid_indices(graph: Data, case: Case, subject: Subject) -> str | None:
    n = int(graph.num_nodes or 0)
    outside = (graph.edge_index < 0) | (graph.edge_index >= n)
    if outside.any():
        edge = graph.edge_index[:, outside.any(dim=0)][:, 0].tolist()
        return f"edge {edge[0]}-{edge[1]} in a graph of {n} nodes"
    return None


@holds_for_each_graph("undirected stays undirected")
def stays_undirected(graph: Data, case: Case, subject: Subject) -> str | None:
    there, weights = sorted_edges(graph)
    back, back_weights = sorted_edges(Data(edge_index=there.flip(0), edge_weight=weights, num_nodes=graph.num_nodes))
    if not torch.equal(there, back):
        ways = {(int(a), int(b)) for a, b in there.T}
        lonely = next(((a, b) for a, b in sorted(ways) if (b, a) not in ways), None)
        return f"edge {lonely[0]}-{lonely[1]} has no way back" if lonely else "an edge is there more often one way"
    if not torch.equal(weights, back_weights):
        place = int((weights != back_weights).nonzero()[0])
        a, b = there[:, place].tolist()
        return f"edge {a}-{b} weighs {weights[place]:g} one way and {back_weights[place]:g} the other"
    return None


@holds_for_each_graph("no edge is listed twice")
def no_double_edges(graph: Data, case: Case, subject: Subject) -> str | None:
    edges, counts = torch.unique(graph.edge_index, dim=1, return_counts=True)
    if (counts > 1).any():
        a, b = edges[:, counts > 1][:, 0].tolist()
        return f"edge {a}-{b} is there {int(counts.max())} times"
    return None


@holds_for_each_graph("no self loops")
def no_self_loops(graph: Data, case: Case, subject: Subject) -> str | None:
    loops = graph.edge_index[0] == graph.edge_index[1]
    return f"edge {int(graph.edge_index[0, loops][0])} to itself" if loops.any() else None


@holds("no edge between graphs of a batch", "graphs")
def graphs_stay_apart(subject: Subject) -> str | None:
    made: dict[str, list[Data]] = {}
    for case, _, graph in looked_at(subject):
        made.setdefault(case.name, []).append(graph)
    for name, graphs in made.items():
        batch = Batch.from_data_list(bare_graphs(graphs))
        ends = batch.edge_index
        inside = ((ends >= 0) & (ends < batch.num_nodes)).all(dim=0)
        owners = batch.batch[ends[:, inside]]
        joined = owners[:, owners[0] != owners[1]]
        if joined.numel():
            raise BrokenError(f"{name}: an edge joins graph {int(joined[0, 0])} to graph {int(joined[1, 0])}")
        if not inside.all():
            edge = ends[:, ~inside][:, 0].tolist()
            raise BrokenError(f"{name}: edge {edge[0]}-{edge[1]} leaves a batch of {batch.num_nodes} nodes")
    return None


@holds_for_each_graph("dropped nodes leave x")
def dropped_nodes_leave(graph: Data, case: Case, subject: Subject) -> str | None:
    """There are as many rows as nodes, and dropped nodes are removed.

    If all nodes were connected to each other, and one has lost all its edges while the rest are still fully connected,
    then it was dropped but still has a row, which the readout would count.
    """
    n = int(graph.num_nodes or 0)
    if graph.x is not None and len(graph.x) != n:
        return f"x has {len(graph.x)} rows for {n} nodes"
    if case.name != "complete graphs" or subject.instance.labels != "kept":
        return None
    joined = graph.edge_index[:, graph.edge_index[0] != graph.edge_index[1]]
    alive = int(torch.unique(joined[0]).numel())
    if 3 <= alive < n and joined.shape[1] == alive * (alive - 1):
        return f"{n - alive} of the {n} nodes of a complete graph lost all their edges and are still rows of x"
    return None


@holds_for_each_graph("labels are distributions")
def labels_are_distributions(graph: Data, case: Case, subject: Subject) -> str | None:
    y = graph.y
    if not y.is_floating_point():
        right = y.shape == (1,) and 0 <= int(y) < case.num_classes
        return None if right else f"y is {brief(y)}; a class is one number from 0 to {case.num_classes - 1}"
    if y.shape != (1, case.num_classes):
        return f"y has shape {list(y.shape)}, not [1, {case.num_classes}]"
    if not torch.isfinite(y).all() or (y < 0).any() or abs(float(y.sum()) - 1) > TOLERANCE:
        return f"y is {brief(y)}, which sums to {float(y.sum()):g}"
    return None


@holds("labels are kept", "graphs")
def labels_are_kept(subject: Subject) -> str | None:
    """If the augmenter claims it: graph by graph if each replaces an original, else as any of the originals."""
    if subject.instance.labels != "kept":
        raise DoesNotApplyError("it mixes labels")
    for case, place, graph in looked_at(subject):
        made = subject.outcome(case).made
        originals = [label_distribution(g, case.num_classes) for g in case.graphs]
        one_to_one = subject.instance.mode == "replace" and len(made) == len(originals)
        allowed = [originals[place]] if one_to_one else originals
        if labels_are_distributions(graph, case, subject) is None:
            label = label_distribution(graph, case.num_classes)
            if not any(torch.equal(label, other) for other in allowed):
                raise BrokenError(
                    f"{case.name}, graph {place}: y is {brief(graph.y)}, the original's {brief(allowed[0])}"
                )
    return None


@holds_for_each_graph("numbers are finite")
def numbers_are_finite(graph: Data, case: Case, subject: Subject) -> str | None:
    for name, value in graph.to_dict().items():
        if isinstance(value, Tensor) and value.is_floating_point() and not torch.isfinite(value).all():
            return f"{name} holds {float(value[~torch.isfinite(value)][0])}"
    return None


@holds_for_each_graph("edge weights positive and declared")
def weights_are_right(graph: Data, case: Case, subject: Subject) -> str | None:
    weight, weighted = graph.get("edge_weight"), any_weighted(case.graphs)
    if weight is None:
        return "the originals have edge weights, it has none" if weighted else None
    if not weighted and not subject.instance.weighted:
        return "it has edge weights, which neither the originals have nor the attribute `weighted` declares"
    if not bool((weight > 0).all()):
        return f"a weight is {float(weight[~(weight > 0)][0]):g}"
    return None
