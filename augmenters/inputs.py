"""What is wrong with what somebody's own loop hands to an augmenter, in one line; the harness cleans its graphs."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.random import Generator
from torch_geometric.data import Batch, Data

from bench.registry import UserError


def check_call(name: str, graphs: Sequence[Data], rng: Generator) -> None:
    """Refuse what no augmenter can work on: a batch in place of a list, no graph, a graph without nodes or edges."""
    if isinstance(graphs, Data):
        remedy = "batch.to_data_list()" if isinstance(graphs, Batch) else "[graph]"
        raise UserError(f"{name} takes a list of graphs, not a single {type(graphs).__name__}; give {remedy}")
    if not isinstance(rng, Generator):
        raise UserError(f"{name} draws from a generator of numpy, not from {rng!r}; give numpy.random.default_rng(0)")
    if not len(graphs):
        raise UserError(f"{name} was given no graphs; give one at least")
    for place, graph in enumerate(graphs):
        if not graph.num_nodes:
            raise UserError(f"{name}: graph {place} has no node; leave it out")
        if graph.edge_index is None:
            raise UserError(f"{name}: graph {place} has no edge_index; one without edges has an empty one, [2, 0]")
