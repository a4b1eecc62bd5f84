"""From a problem to a predictor: learners by name, of which the graph neural network trains through an engine."""

from __future__ import annotations

from bench.registry import Registry

LEARNERS = Registry("learner", "augbench.learners", "bench.learning.learner:Learner")
LEARNERS.add("gnn", "bench.learning.gnn:GNN", "graph neural network: a backbone, a readout and a head")

__all__ = ["LEARNERS"]
