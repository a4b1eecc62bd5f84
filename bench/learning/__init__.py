"""From a problem to a predictor: learners, and the engines that train networks. The registry needs no torch."""

from __future__ import annotations

from bench.registry import Registry

LEARNERS = Registry("learner", "augbench.learners", "bench.learning.learner:Learner")
LEARNERS.add("gnn", "bench.learning.gnn:GNN", "a graph neural network: backbone, readout, two fully connected layers")

__all__ = ["LEARNERS"]
