"""Several graphs as one, for methods that make other structure of all of them at once each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters.functional import EdgeNumbers, any_weighted, edge_weights


class JoinedGraphs(EdgeNumbers):
    """Graphs numbered through, with the weight of each undirected edge where some graph has weights."""

    def __init__(self, graphs: Sequence[Data]) -> None:
        super().__init__(graphs)
        self._graphs = graphs

    @cached_property
    def weights(self) -> np.ndarray | None:
        """One per undirected edge: that of either of its directions."""
        if not any_weighted(self._graphs):
            return None
        found = np.empty(self.total, dtype=np.float32)
        found[self.of_directed] = torch.cat([edge_weights(graph) for graph in self._graphs]).numpy()
        return found

    def rebuilt(self, edges: np.ndarray, weights: np.ndarray | None, rows: np.ndarray | None = None) -> Rebuilt:
        """New undirected edges over the same nodes; `rows` are new features, one per node, where they change."""
        both = np.concatenate([edges, edges[::-1]], axis=1)
        order = np.lexsort((both[1], both[0]))
        both = both[:, order]
        twice = None if weights is None else torch.from_numpy(np.tile(weights, 2)[order])
        counts = np.bincount(self.graph_of_node[both[0]], minlength=len(self.sizes))
        both -= np.repeat(self.starts, counts)
        return Rebuilt(
            torch.from_numpy(both).split(counts.tolist(), dim=1),
            None if twice is None else twice.split(counts.tolist()),
            None if rows is None else torch.from_numpy(rows).split(self.sizes.tolist()),
        )


@dataclass(frozen=True)
class Rebuilt:
    """Other edges, and their weights and node features where those change too, graph by graph."""

    edges: Sequence[Tensor]
    weights: Sequence[Tensor] | None
    rows: Sequence[Tensor] | None

    def graphs(self, originals: Sequence[Data]) -> list[Data]:
        """The originals with these edges; edge attributes other than weights belong to no new edge and go."""
        made = []
        for place, graph in enumerate(originals):
            new = graph.clone()
            new.edge_index = self.edges[place]
            new.num_nodes = graph.num_nodes
            if "edge_attr" in new:
                del new.edge_attr
            if self.weights is not None:
                new.edge_weight = self.weights[place]
            if self.rows is not None:
                new.x = self.rows[place]
            made.append(new)
        return made
