"""Several graphs as one, for methods that rewire all of them at once in each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch_geometric.data import Data

from augmenters.functional import EdgeNumbers, any_weighted, edge_weights


class JoinedGraphs(EdgeNumbers):
    """Graphs with consecutive node numbers, and the weight of each undirected edge if any graph is weighted."""

    def __init__(self, graphs: Sequence[Data]) -> None:
        super().__init__(graphs)
        self._graphs = graphs

    @cached_property
    def weights(self) -> np.ndarray | None:
        """The weight of each undirected edge, which both directions share."""
        if not any_weighted(self._graphs):
            return None
        found = np.empty(self.total, dtype=np.float32)
        found[self.of_directed] = torch.cat([edge_weights(graph) for graph in self._graphs]).numpy()
        return found

    @cached_property
    def rows(self) -> np.ndarray | None:
        """The features of all nodes; None if any graph has none."""
        if any(graph.x is None for graph in self._graphs):
            return None
        found: np.ndarray = torch.cat([graph.x for graph in self._graphs]).numpy()
        return found

    def rebuilt(self, edges: np.ndarray, weights: np.ndarray | None, rows: np.ndarray | None = None) -> Rebuilt:
        """New undirected edges over the same nodes; `rows` are new features, one per node, if they change."""
        apart = edges[0] != edges[1]  # a self loop is its own way back
        both = np.concatenate([edges, edges[::-1, apart]], axis=1)
        order = np.argsort(both[0] * self.nodes + both[1], kind="stable")
        twice = None if weights is None else np.concatenate([weights, weights[apart]])[order]
        return Rebuilt(both[:, order], twice, rows, self.sizes)


@dataclass(frozen=True)
class Rebuilt:
    """New edges of consecutively numbered graphs, with their weights and node features if those change too.

    Edges are listed in both directions, sorted by their first node, then by their second.
    """

    edges: np.ndarray
    weights: np.ndarray | None
    rows: np.ndarray | None
    sizes: np.ndarray  # number of nodes of each graph

    @property
    def counts(self) -> np.ndarray:
        """Number of directed edges of each graph."""
        graph_of_node = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return np.bincount(graph_of_node[self.edges[0]], minlength=len(self.sizes))

    def graphs(self, originals: Sequence[Data]) -> list[Data]:
        """The originals with these edges. Other edge attributes are dropped, because they belong to no new edge."""
        counts = self.counts
        inside = self.edges - np.repeat(np.cumsum(self.sizes) - self.sizes, counts)
        edges = torch.from_numpy(inside).split(counts.tolist(), dim=1)
        weights = None if self.weights is None else torch.from_numpy(self.weights).split(counts.tolist())
        rows = None if self.rows is None else torch.from_numpy(self.rows).split(self.sizes.tolist())
        made = []
        for place, graph in enumerate(originals):
            new = graph.clone()
            new.edge_index = edges[place]
            new.num_nodes = graph.num_nodes
            if "edge_attr" in new:
                del new.edge_attr
            if weights is not None:
                new.edge_weight = weights[place]
            if rows is not None:
                new.x = rows[place]
            made.append(new)
        return made
