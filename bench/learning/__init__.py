"""Learning: from a problem to a predictor. Learners by name; the graph neural network is trained by an engine."""

from __future__ import annotations

from bench.registry import Registry

LEARNERS = Registry("learner", "augbench.learners", "bench.learning.learner:Learner")
LEARNERS.add("gnn", "bench.learning.gnn:GNN", "graph neural network: a backbone, a readout and a head")

_HERE = "bench.learning.learners"
for _name, _target, _summary in (
    ("majority", "majority:Majority", "the most common class among the labeled graphs, whatever the graph"),
    ("size", "size:Size", "logistic regression on the log of the node count"),
    ("histogram", "histogram:Histogram", "logistic regression on counts of node labels, or of degrees"),
    ("statistics", "statistics:Statistics", "random forest on size, degrees, triangles and node labels"),
    ("wl", "wl:WeisfeilerLehman", "Weisfeiler-Lehman subtree kernel with a support vector machine"),
    ("deepsets", "deepsets:DeepSets", "network on node features without edges"),
    ("random-gin", "random_gin:RandomGIN", "logistic regression on an untrained graph isomorphism network"),
):
    LEARNERS.add(_name, f"{_HERE}.{_target}", _summary)

__all__ = ["LEARNERS"]
