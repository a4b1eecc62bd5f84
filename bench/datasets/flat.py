"""Many graphs as a few flat arrays; each graph is created as a `Data` on access.

A list of `Data` costs a few kilobytes and several tensors per graph, plus the width of one-hot features. The arrays
contain only what the files say, and they can be in a file that all processes of a machine map into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

_SMALL = 2**15  # up to this number of nodes, node indices fit into two bytes


@dataclass(frozen=True)
class FlatGraphs(Sequence["Data"]):
    """Clean graphs, one after another. Access returns copies: writing to one does not affect the others."""

    nodes: Tensor  # the first node of each graph, and the end of the last graph
    ends: Tensor  # the same for directed edges
    edges: Tensor  # 2 x directed edges; node indices start at 0 in each graph
    labels: Tensor
    weights: Tensor | None = None  # one per directed edge
    features: Tensor | None = None  # nodes x width or, if one-hot, the column of each node
    width: int = 0

    @classmethod
    def of(cls, graphs: Sequence[Data]) -> FlatGraphs:
        """From cleaned graphs: sorted edges, all or none with weights, features of equal width."""
        import torch

        if isinstance(graphs, FlatGraphs):
            return graphs
        sizes = torch.tensor([int(graph.num_nodes or 0) for graph in graphs])
        kind = torch.int16 if int(sizes.max()) < _SMALL else torch.int32
        weighted, described = (graphs[0].get(name) is not None for name in ("edge_weight", "x"))
        features, width = _narrowed(torch.cat([graph.x for graph in graphs])) if described else (None, 0)
        return cls(
            nodes=_places(sizes),
            ends=_places(torch.tensor([graph.num_edges for graph in graphs])),
            edges=torch.cat([graph.edge_index.to(kind) for graph in graphs], dim=1),
            labels=torch.cat([graph.y.view(1) for graph in graphs]),
            weights=torch.cat([graph.edge_weight for graph in graphs]) if weighted else None,
            features=features,
            width=width,
        )

    def tensors(self) -> dict[str, Tensor]:
        """All arrays by name; the inverse of `read`."""
        named = {name: getattr(self, name) for name in ("nodes", "ends", "edges", "labels", "weights", "features")}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    @classmethod
    def read(cls, tensors: Mapping[str, Tensor], width: int) -> FlatGraphs:
        """Arrays from any source, validated: an invalid index would read foreign memory."""
        flat = cls(**tensors, width=width)
        flat._check()
        return flat

    def _check(self) -> None:
        import torch

        places = (self.nodes, self.ends)
        if not all(part.dtype == torch.long and part.dim() == 1 and len(part) > 1 for part in places):
            raise ValueError("the places of the graphs are no lists of whole numbers")
        sizes, counts = self.nodes.diff(), self.ends.diff()
        rows, edges = int(self.nodes[-1]), int(self.ends[-1])
        whole = (
            len(sizes) == len(counts) == len(self.labels)
            and int(self.nodes[0]) == int(self.ends[0]) == 0
            and int(sizes.min()) > 0
            and int(counts.min()) >= 0
            and self.labels.dtype == torch.long
            and self.edges.shape == (2, edges)
            and self.edges.dtype in (torch.int16, torch.int32)
            and (self.weights is None or (self.weights.shape == (edges,) and self.weights.dtype == torch.float32))
        )
        if not whole:
            raise ValueError("the parts have other lengths than the graphs")
        limits = sizes.to(self.edges.dtype).repeat_interleave(counts)
        if edges and (int(self.edges.min()) < 0 or bool((self.edges >= limits).any())):
            raise ValueError("an edge leads to a node that is not there")
        features = self.features
        if features is None:
            return
        if features.dim() == 2:
            right = features.shape == (rows, self.width) and features.dtype == torch.float32
        else:
            right = features.shape == (rows,) and features.dtype in (torch.uint8, torch.int16)
            right = right and 0 <= int(features.min()) <= int(features.max()) < self.width
        if not right:
            raise ValueError("the features are not one row per node")

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, place: int) -> Data: ...

    @overload
    def __getitem__(self, place: slice) -> list[Data]: ...

    def __getitem__(self, place: int | slice) -> Data | list[Data]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        number = range(len(self))[place]  # negative indices count from the end; invalid ones raise IndexError
        return self._graph(number)

    def __iter__(self) -> Iterator[Data]:
        return map(self._graph, range(len(self)))

    def _graph(self, number: int) -> Data:
        import torch
        from torch_geometric.data import Data

        from models.sparse_features import one_hot

        (start, end), (first, last) = self.nodes[number : number + 2].tolist(), self.ends[number : number + 2].tolist()
        graph = Data(
            edge_index=self.edges[:, first:last].to(torch.long),
            y=self.labels[number : number + 1].clone(),
            num_nodes=end - start,
        )
        if self.weights is not None:
            graph.edge_weight = self.weights[first:last].clone()
        if self.features is not None:
            rows = self.features[start:end]
            if rows.dim() == 1:
                graph.x = one_hot(rows.to(torch.long), self.width)
            else:
                graph.x = rows.clone()
        return graph


def _places(lengths: Tensor) -> Tensor:
    import torch

    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def _narrowed(x: Tensor) -> tuple[Tensor, int]:
    """The features and their width; if every row is one-hot, the column of each row's one instead."""
    import torch

    width = x.shape[1]
    one_hot = width > 1 and bool((x.count_nonzero(dim=1) == 1).all()) and bool((x.amax(dim=1) == 1).all())
    if not one_hot or width > _SMALL:
        return x, width
    return x.argmax(dim=1).to(torch.uint8 if width <= 2**8 else torch.int16), width
