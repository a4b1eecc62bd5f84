"""Logistic regression on the embeddings of an untrained graph isomorphism network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import numpy as np
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import global_add_pool, global_mean_pool

from bench.learning.learners.classical import C, LogisticLearner, Rows
from bench.learning.problem import Problem
from bench.learning.steps import bare_graphs
from bench.registry import Tune, Within
from models.backbones import GIN
from models.fit import one_thread

BATCH = 64  # graphs at once


class RandomGIN(LogisticLearner):
    """All layers, including the input, pooled, concatenated and standardized.

    Four layers of 64 channels as in the trained networks, the sum as in GIN, C = 1: fixed by convention before any test
    score was seen. The weights are drawn with the trial's seed.
    """

    def __init__(
        self,
        width: Annotated[int, Within(1, 4096), Tune(16, 256, log=True)] = 64,
        layers: Annotated[int, Within(1, 64), Tune(1, 5)] = 4,
        pool: Annotated[Literal["add", "mean"], Tune()] = "add",
        c: C = 1.0,
    ) -> None:
        super().__init__(c)
        self.width, self.layers, self.pool = width, layers, pool

    def describe(self, graphs: Sequence[Data], problem: Problem) -> Callable[[Sequence[Data]], Rows]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(problem.init_seed)
            network = GIN(problem.graphs[0].num_node_features, self.width, self.layers)
        return lambda some: np.vstack([self._embed(network, some[i : i + BATCH]) for i in range(0, len(some), BATCH)])

    @one_thread()
    @torch.no_grad()
    def _embed(self, network: GIN, graphs: Sequence[Data]) -> Rows:
        batch = Batch.from_data_list(bare_graphs(graphs))
        pool = global_add_pool if self.pool == "add" else global_mean_pool
        x = batch.x.to(torch.float32)
        parts = [pool(x, batch.batch, batch.num_graphs)]
        for layer in network.convs:
            x = layer(x, batch.edge_index, batch.get("edge_weight")).relu()
            parts.append(pool(x, batch.batch, batch.num_graphs))
        rows: Rows = torch.cat(parts, dim=1).double().numpy()
        return rows
