"""Backbones, readouts, the graph classifier and the structural auto-encoders; no datasets or augmenters."""

from __future__ import annotations

from bench.registry import Registry

BACKBONES = Registry("backbone", "augbench.backbones", "models.backbones:Backbone")
BACKBONES.add("gcn", "models.backbones:GCN", "graph convolution, symmetric normalization (Kipf and Welling, 2017)")
BACKBONES.add("gat", "models.backbones:GAT", "graph attention (Velickovic et al., 2018); refuses edge weights")
BACKBONES.add("gin", "models.backbones:GIN", "graph isomorphism network, weighted sum (Xu et al., 2019)")
BACKBONES.add("sage", "models.backbones:GraphSAGE", "GraphSAGE, weighted mean (Hamilton et al., 2017)")

READOUTS = Registry("readout", "augbench.readouts", "models.readouts:Readout")
READOUTS.add("mean", "models.readouts:MeanReadout", "average of the node embeddings")
READOUTS.add("add", "models.readouts:AddReadout", "sum of the node embeddings")
READOUTS.add("max", "models.readouts:MaxReadout", "largest value of each channel over the nodes")
READOUTS.add("mean+max", "models.readouts:MeanMaxReadout", "average and largest value of each channel, side by side")
READOUTS.add("set2set", "models.readouts:Set2SetReadout", "recurrent attention over the nodes (Vinyals et al., 2016)")
READOUTS.add(
    "diffpool", "models.cluster_readouts:DiffPool", "learned clusters, link and entropy losses (Ying et al., 2018)"
)
READOUTS.add("mincut", "models.cluster_readouts:MinCut", "learned clusters, relaxed minimum cut (Bianchi et al., 2020)")

__all__ = ["BACKBONES", "READOUTS"]
