"""Networks for graphs with the same nodes but new edges in each epoch."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters.joined import JoinedGraphs, Rebuilt
from bench.learning.fast.graphs.parts import parts_of
from bench.learning.fast.graphs.rewired import RewiredMatrix, plain_edges
from bench.learning.fast.kernels import Architecture
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.ops.pooling import pooling
from bench.learning.fast.ops.product import Rows, cheapest_rows
from bench.learning.fast.training.build import fixed_network
from bench.learning.fast.training.convolution import ConvolutionStack
from bench.learning.fast.training.network import Network
from bench.learning.problem import Problem, training_set
from models.sparse_features import sparse_matrix


class RewiredNetworks:
    """The network of each epoch, from the edges of all graphs at once."""

    def __init__(self, problem: Problem, model: Architecture, parameters: Parameters, dropout: Dropout | None) -> None:
        self.problem, self.model, self.parameters, self.dropout = problem, model, parameters, dropout
        self.joined = JoinedGraphs(problem.graphs)
        self.data = training_set(problem, list(problem.graphs))
        self.x = torch.cat([graph.x for graph in problem.graphs])
        nodes = self.joined.nodes
        self.readout = pooling(model.readout, self.joined.sizes, np.arange(nodes), nodes, model.width)
        self.recompute = problem.augmenter.features == "recompute"
        self.kept: tuple[Tensor, sp.csr_array] | None = None

    def next(self, drawn: Rebuilt) -> Network:
        """The network of one epoch."""
        x = self.features(drawn)
        if x.dtype != torch.get_default_dtype() or not plain_edges(drawn):
            return self.graph_by_graph(drawn)
        assert self.model.layer != "gat"
        matrix = RewiredMatrix(self.model.layer, drawn)
        ways = [matrix.ways] * (self.model.layers - 1)
        first = self.first_input(matrix.direct, x)
        stack = ConvolutionStack(self.model.layer, self.parameters, first, len(x), ways, self.model.width, self.dropout)
        data = self.data
        return Network(self.parameters, stack, self.readout, data.targets, data.weights, self.model.ending)

    def features(self, drawn: Rebuilt) -> Tensor:
        """The features of all nodes; they depend only on a node's own edges, so the graphs may stay joined."""
        x = self.x if drawn.rows is None else torch.from_numpy(drawn.rows)
        if not self.recompute:
            return x
        made: Tensor = self.problem.featurize(
            Data(x=x, edge_index=torch.from_numpy(drawn.edges), num_nodes=self.joined.nodes)
        ).x
        return made

    def first_input(self, direct: sp.csr_array, x: Tensor) -> tuple[Rows, ...]:
        if self.kept is None or self.kept[0] is not x:
            self.kept = x, sp.csr_array(sparse_matrix(x).astype(np.float64))
        features = self.kept[1]
        # Adds nothing, but keeps the order of entries of `Factored.times`, so that sums are bit-identical.
        around = sp.csr_array(direct @ features + sp.csr_array(features.shape))
        if self.model.layer == "sage":
            return cheapest_rows(around), cheapest_rows(features)
        return (cheapest_rows(around),)

    def graph_by_graph(self, drawn: Rebuilt) -> Network:
        """For graphs that are better stored by their missing pairs, or that this engine cannot train."""
        graphs = drawn.graphs(self.problem.graphs)
        made = [self.problem.featurize(graph) for graph in graphs] if self.recompute else graphs
        parts, data = parts_of(made, whole=False), self.data
        return fixed_network(
            self.model, self.parameters, parts, data.targets, data.weights, self.dropout, many_steps=False
        )
