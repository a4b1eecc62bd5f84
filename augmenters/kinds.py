"""Kinds of augmenters: base classes that require one method and promise what it can change.

An engine that knows the promise need not call the augmenter graph by graph. Classes derived from these bases therefore
get the fast path, whichever package they come from. `kind_of` tells whether a class keeps the promise of its base: a
class that overrides one of the methods behind the promise is treated like any other augmenter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, EmbeddingAugmenter, GraphAugmenter
from augmenters.functional import EdgeNumbers, with_edges, with_nodes, with_weights
from augmenters.joined import JoinedGraphs, Rebuilt
from bench.registry import UserError

Moment = Literal["offline", "epoch", "batch"]


class EdgeFactorAugmenter(GraphAugmenter):
    """Multiplies each undirected edge by a factor in each epoch and changes nothing else; a factor of 0 drops the edge.

    `weighted` tells whether factors other than 0 and 1 occur; they multiply existing edge weights.
    """

    when: ClassVar[Moment] = "epoch"

    @abstractmethod
    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        """Draw one factor of at least 0 per undirected edge (or a boolean: whether it is kept). This is all the
        randomness.
        """

    def factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The result of `draw_factors`, validated: single precision if weighted, else boolean."""
        drawn = np.asarray(self.draw_factors(edges, rng))
        if drawn.shape != (edges.total,):
            name = type(self).__name__
            raise ValueError(f"{name} drew {drawn.shape} factors for {edges.total} undirected edges; draw one for each")
        return drawn.astype(np.float32 if self.weighted else bool, copy=False)

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[Tensor]:
        """The factor of each directed edge, one vector per graph."""
        edges = EdgeNumbers(graphs)
        return edges.split(self.factors(edges, rng))

    def apply(self, graphs: Sequence[Data], drawn: list[Tensor]) -> list[Data]:
        return [self._changed(graph, factor) for graph, factor in zip(graphs, drawn, strict=True)]

    def _changed(self, graph: Data, factor: Tensor) -> Data:
        if not self.weighted:
            return with_edges(graph, factor)
        kept = factor != 0
        new = with_weights(graph, factor)
        return new if bool(kept.all()) else with_edges(new, kept)


class KeptNodesAugmenter(GraphAugmenter):
    """Keeps some of the nodes in each epoch and removes the others with their edges; nothing else changes."""

    when: ClassVar[Moment] = "epoch"

    @abstractmethod
    def draw_kept(self, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        """Draw the numbers of the nodes that are kept, or one boolean per node. This is all the randomness.

        `graphs` has the sizes of all graphs and, for methods that choose by structure, the ends of their edges. At
        least one node of each graph must be kept.
        """

    def kept(self, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The result of `draw_kept` as numbers; `KeptNodes` validates and sorts them."""
        drawn = np.asarray(self.draw_kept(graphs, rng))
        return np.flatnonzero(drawn) if drawn.dtype == bool and drawn.shape == (graphs.nodes,) else drawn

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[np.ndarray]:
        """The nodes that are kept, one array per graph."""
        numbers = EdgeNumbers(graphs)
        found = KeptNodes.of(numbers, [self.kept(numbers, rng)], type(self).__name__)
        parts = np.split(found.nodes[0], np.cumsum(found.counts[0])[:-1])
        return [part - start for part, start in zip(parts, numbers.starts, strict=True)]

    def apply(self, graphs: Sequence[Data], drawn: list[np.ndarray]) -> list[Data]:
        return [with_nodes(graph, nodes) for graph, nodes in zip(graphs, drawn, strict=True)]


@dataclass(frozen=True)
class KeptNodes:
    """The kept nodes of several draws over the same graphs, validated together."""

    nodes: list[np.ndarray]  # one array per draw, graph by graph
    counts: np.ndarray  # draws x graphs: how many are kept
    masks: np.ndarray  # draws x nodes: one for a kept node, else zero

    @classmethod
    def of(cls, graphs: EdgeNumbers, drawn: Sequence[np.ndarray], name: str) -> KeptNodes:
        """Validate draws; `name` is used in error messages."""
        every = np.concatenate(drawn)
        if len(every) and (every.dtype.kind not in "iu" or every.min() < 0 or every.max() >= graphs.nodes):
            raise ValueError(f"{name} keeps nodes with numbers outside 0 to {graphs.nodes - 1}")
        which = np.repeat(np.arange(len(drawn)), [len(part) for part in drawn])
        masks = np.zeros((len(drawn), graphs.nodes), dtype=np.float32)
        masks[which, every] = 1
        if np.count_nonzero(masks) != len(every):
            raise ValueError(f"{name} keeps a node twice; name each node once")
        places = which * len(graphs.sizes) + graphs.graph_of_node[every]
        counts = np.bincount(places, minlength=masks.shape[0] * len(graphs.sizes)).reshape(len(drawn), -1)
        if (lost := (counts == 0) & (graphs.sizes > 0)).any():
            raise ValueError(f"{name} keeps no node of graph {int(lost.nonzero()[1][0])}; keep at least one")
        if (places[1:] < places[:-1]).any():
            drawn = [part[np.argsort(graphs.graph_of_node[part], kind="stable")] for part in drawn]
        return cls(list(drawn), counts, masks)


class FeatureAugmenter(GraphAugmenter):
    """Gives the nodes new features of the same width in each epoch; edges and labels are unchanged."""

    when: ClassVar[Moment] = "epoch"

    @abstractmethod
    def draw_features(self, x: np.ndarray, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        """Draw new features for all nodes, one row per node, from the old ones (which are read-only)."""

    def changed_features(self, x: np.ndarray, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The result of `draw_features`, validated and in the precision of `x`."""
        given = x.view()
        given.flags.writeable = False
        drawn = np.asarray(self.draw_features(given, graphs, rng))
        if drawn.shape != x.shape:
            raise ValueError(f"{type(self).__name__} drew features of shape {drawn.shape} for nodes with {x.shape}")
        return drawn.astype(x.dtype, copy=False)

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[Tensor]:
        """The new features, one table per graph."""
        if any(graph.x is None for graph in graphs):
            name = type(self).__name__
            raise UserError(f"{name} changes node features, and a graph has none; give each graph its features in `x`")
        numbers, x = EdgeNumbers(graphs), torch.cat([graph.x for graph in graphs]).numpy()
        changed = self.changed_features(x, numbers, rng)
        return list(torch.from_numpy(np.array(changed)).split(numbers.sizes.tolist()))

    def apply(self, graphs: Sequence[Data], drawn: list[Tensor]) -> list[Data]:
        new = [graph.clone() for graph in graphs]
        for graph, x in zip(new, drawn, strict=True):
            graph.x = x
        return new


class NewEdgesAugmenter(GraphAugmenter):
    """Gives the graphs new undirected edges over the same number of nodes in each epoch, optionally new weights and
    features.
    """

    when: ClassVar[Moment] = "epoch"

    @abstractmethod
    def draw_edges(self, graphs: JoinedGraphs, rng: Generator) -> Rebuilt:
        """Draw the new edges of all graphs, as returned by `graphs.rebuilt`. This is all the randomness."""

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Rebuilt:
        return self.draw_edges(JoinedGraphs(graphs), rng)

    def apply(self, graphs: Sequence[Data], drawn: Rebuilt) -> list[Data]:
        return drawn.graphs(graphs)


class OneByOneAugmenter(GraphAugmenter):
    """An offline method that can generate its graphs one at a time, so that they are never all in memory.

    `near_complete` declares that nearly all pairs of nodes of its graphs may be connected, and that generating one
    takes memory for every pair. The memory estimate of a trial uses this.
    """

    when: ClassVar[Moment] = "offline"
    near_complete: ClassVar[bool] = False

    @abstractmethod
    def generate_each(self, graphs: Sequence[Data], drawn: Any) -> Iterator[Data]:
        """The new graphs, each generated on demand, deterministically and without modifying the input."""

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        return list(self.generate_each(graphs, drawn))


class PairMixAugmenter(EmbeddingAugmenter):
    """Mixes each embedding with that of a partner: share h_i + (1 - share) h_partner(i); labels likewise.

    The mix is linear in the embeddings, so its gradient needs no autograd.
    """

    labels: ClassVar[Literal["kept", "mixed"]] = "mixed"

    @abstractmethod
    def draw_pairs(self, count: int, rng: Generator) -> tuple[float | np.ndarray, np.ndarray]:
        """Draw the share that each of `count` rows keeps (one for all, or one each), and the index of its partner."""

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> tuple[float | np.ndarray, np.ndarray]:
        share, partner = self.draw_pairs(len(graphs), rng)
        if np.shape(partner) != (len(graphs),) or np.shape(share) not in ((), (len(graphs),)):
            raise ValueError(f"{type(self).__name__} must draw one partner per graph, and one share or one per graph")
        return share, np.asarray(partner)

    def mix(
        self, embeddings: Tensor, targets: Tensor, drawn: tuple[float | np.ndarray, np.ndarray]
    ) -> tuple[Tensor, Tensor]:
        share, partner = column(drawn[0], embeddings), torch.as_tensor(drawn[1], device=embeddings.device)
        return (
            share * embeddings + (1 - share) * embeddings[partner],
            share * targets + (1 - share) * targets[partner],
        )


def column(share: float | np.ndarray, rows: Tensor) -> Any:
    """A share in a form that multiplies rows: the number itself, or one per row."""
    if np.ndim(share) == 0:
        return float(share)
    return torch.as_tensor(share, dtype=rows.dtype, device=rows.device).view(-1, 1)


# For each kind, the methods behind its promise, and the required class attributes.
_PROMISES: dict[type, tuple[tuple[str, ...], dict[str, str]]] = {
    EdgeFactorAugmenter: (("factors", "draw", "apply", "_changed", "__call__"), {"when": "epoch", "mode": "replace"}),
    KeptNodesAugmenter: (("kept", "draw", "apply", "__call__"), {"when": "epoch", "mode": "replace"}),
    FeatureAugmenter: (("changed_features", "draw", "apply", "__call__"), {"when": "epoch", "mode": "replace"}),
    NewEdgesAugmenter: (("draw", "apply", "__call__"), {"when": "epoch", "mode": "replace"}),
    OneByOneAugmenter: (("apply", "__call__"), {"when": "offline"}),
    PairMixAugmenter: (("draw", "mix"), {"when": "batch"}),
}


@lru_cache
def kind_of(cls: type) -> type | None:
    """The kind whose promise this class keeps; None if there is none."""
    for kind, (methods, said) in _PROMISES.items():
        own = all(getattr(cls, name) is getattr(kind, name) for name in methods) if issubclass(cls, kind) else False
        if own and all(getattr(cls, name, None) == value for name, value in said.items()):
            return kind
    return None
