"""Graph augmenters, each usable on its own: `DropEdge(p=0.25)(graphs, rng)`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from augmenters.composition import AugmenterRegistry
from bench.registry import Extra

if TYPE_CHECKING:  # for editors and type checkers; at run time `__getattr__` imports what is asked for
    from augmenters.base import Augmenter as Augmenter
    from augmenters.base import Context as Context
    from augmenters.base import EmbeddingAugmenter as EmbeddingAugmenter
    from augmenters.base import GraphAugmenter as GraphAugmenter
    from augmenters.base import StepAugmenter as StepAugmenter
    from augmenters.base import TrainingView as TrainingView
    from augmenters.controls import Duplicate as Duplicate
    from augmenters.controls import Unchanged as Unchanged
    from augmenters.dropedge import DropEdge as DropEdge
    from augmenters.dropnode import DropNode as DropNode
    from augmenters.droppath import DropPath as DropPath
    from augmenters.featurenoise import FeatureNoise as FeatureNoise
    from augmenters.fgw_mixup import FGWMixup as FGWMixup
    from augmenters.flag import FLAG as FLAG
    from augmenters.g_mixup import GMixup as GMixup
    from augmenters.gdm import GDM as GDM
    from augmenters.geomix import GeoMix as GeoMix
    from augmenters.graph_transplant import GraphTransplant as GraphTransplant
    from augmenters.graphcrop import GraphCrop as GraphCrop
    from augmenters.ifmixup import IfMixup as IfMixup
    from augmenters.kinds import EdgeFactorAugmenter as EdgeFactorAugmenter
    from augmenters.kinds import FeatureAugmenter as FeatureAugmenter
    from augmenters.kinds import KeptNodesAugmenter as KeptNodesAugmenter
    from augmenters.kinds import NewEdgesAugmenter as NewEdgesAugmenter
    from augmenters.kinds import OneByOneAugmenter as OneByOneAugmenter
    from augmenters.kinds import PairMixAugmenter as PairMixAugmenter
    from augmenters.m_mixup import MMixup as MMixup
    from augmenters.maskattr import MaskAttr as MaskAttr
    from augmenters.nodesam import NodeSam as NodeSam
    from augmenters.perturbedge import PerturbEdge as PerturbEdge
    from augmenters.s_mixup import SMixup as SMixup
    from augmenters.softedge import SoftEdge as SoftEdge
    from augmenters.subgraph import Subgraph as Subgraph
    from augmenters.submix import SubMix as SubMix

_POT = Extra("POT", "ot")
AUGMENTERS = AugmenterRegistry("augmenter", "augbench.augmenters", "augmenters.base:Augmenter")
AUGMENTERS.add("none", "augmenters.controls:Unchanged", "the labeled graphs as they are: the baseline")
AUGMENTERS.add("duplicate", "augmenters.controls:Duplicate", "control: the originals once more, as many as GDM makes")
AUGMENTERS.add("dropnode", "augmenters.dropnode:DropNode", "remove a share of the nodes each epoch")
AUGMENTERS.add("dropedge", "augmenters.dropedge:DropEdge", "drop undirected edges at random each epoch")
AUGMENTERS.add("softedge", "augmenters.softedge:SoftEdge", "give a share of the edges random weights each epoch")
AUGMENTERS.add("m-mixup", "augmenters.m_mixup:MMixup", "mix graph embeddings and labels in each step")
AUGMENTERS.add("g-mixup", "augmenters.g_mixup:GMixup", "sample graphs from mixed graphons of two classes")
AUGMENTERS.add("submix", "augmenters.submix:SubMix", "replace a part of one graph with a part of another")
AUGMENTERS.add("nodesam", "augmenters.nodesam:NodeSam", "split a node and contract an edge in each epoch")
AUGMENTERS.add("ifmixup", "augmenters.ifmixup:IfMixup", "mix the edges, features and labels of two graphs")
AUGMENTERS.add("graphcrop", "augmenters.graphcrop:GraphCrop", "keep the part around a random node in each epoch")
AUGMENTERS.add("maskattr", "augmenters.maskattr:MaskAttr", "give some nodes the graph's mean features in each epoch")
AUGMENTERS.add("perturbedge", "augmenters.perturbedge:PerturbEdge", "replace some edges with random ones in each epoch")
AUGMENTERS.add("subgraph", "augmenters.subgraph:Subgraph", "keep the nodes that a random walk visits in each epoch")
AUGMENTERS.add("droppath", "augmenters.droppath:DropPath", "drop the edges of random walks in each epoch")
AUGMENTERS.add("featurenoise", "augmenters.featurenoise:FeatureNoise", "add Gaussian noise to features in each epoch")
AUGMENTERS.add("flag", "augmenters.flag:FLAG", "perturb features adversarially in each step")
AUGMENTERS.add("graph-transplant", "augmenters.graph_transplant:GraphTransplant", "mix salient parts in each step")
AUGMENTERS.add("s-mixup", "augmenters.s_mixup:SMixup", "mix two graphs after a soft alignment of their nodes")
AUGMENTERS.add("fgw-mixup", "augmenters.fgw_mixup:FGWMixup", "barycenters of two graphs", needs=_POT)
AUGMENTERS.add("geomix", "augmenters.geomix:GeoMix", "mix two graphs on a small support", needs=_POT)

_GDM = "augmenters.gdm:GDM"
AUGMENTERS.add("gdm-rand", _GDM, "GDM with random pairs", sampler="rand", wiring="threshold", without="none")
AUGMENTERS.add("gdm-acc", _GDM, "GDM balanced by accuracy of a pre-trained model", sampler="acc", wiring="threshold")
AUGMENTERS.add("gdm-unc", _GDM, "GDM balanced by uncertainty of a pre-trained model", sampler="unc", wiring="threshold")
# The controls that train no auto-encoder fix its settings, so that they are not tuned without effect.
for _name, _wiring, _summary in (
    ("gdm-complete", "complete", "control: GDM with complete graphs"),
    ("gdm-identity", "identity", "control: GDM without edges"),
):
    _unread: dict[str, Any] = {"structure": "diag", "width": 64, "eps": 0.1, "padding": "embeddings"}
    AUGMENTERS.add(_name, _GDM, _summary, wiring=_wiring, encoder="gsae", output="linear", **_unread)
AUGMENTERS.add("gdm-cal", _GDM, "control: GDM as dense as the parents of each graph", wiring="calibrated", eps=0.1)

_PUBLIC = {
    "Augmenter": "augmenters.base",
    "Context": "augmenters.base",
    "EmbeddingAugmenter": "augmenters.base",
    "GraphAugmenter": "augmenters.base",
    "StepAugmenter": "augmenters.base",
    "TrainingView": "augmenters.base",
    "EdgeFactorAugmenter": "augmenters.kinds",
    "FeatureAugmenter": "augmenters.kinds",
    "KeptNodesAugmenter": "augmenters.kinds",
    "NewEdgesAugmenter": "augmenters.kinds",
    "OneByOneAugmenter": "augmenters.kinds",
    "PairMixAugmenter": "augmenters.kinds",
    "Unchanged": "augmenters.controls",
    "Duplicate": "augmenters.controls",
    "DropEdge": "augmenters.dropedge",
    "DropNode": "augmenters.dropnode",
    "DropPath": "augmenters.droppath",
    "FGWMixup": "augmenters.fgw_mixup",
    "FLAG": "augmenters.flag",
    "FeatureNoise": "augmenters.featurenoise",
    "GDM": "augmenters.gdm",
    "GMixup": "augmenters.g_mixup",
    "GeoMix": "augmenters.geomix",
    "GraphCrop": "augmenters.graphcrop",
    "GraphTransplant": "augmenters.graph_transplant",
    "IfMixup": "augmenters.ifmixup",
    "MMixup": "augmenters.m_mixup",
    "MaskAttr": "augmenters.maskattr",
    "NodeSam": "augmenters.nodesam",
    "PerturbEdge": "augmenters.perturbedge",
    "SMixup": "augmenters.s_mixup",
    "SoftEdge": "augmenters.softedge",
    "SubMix": "augmenters.submix",
    "Subgraph": "augmenters.subgraph",
}
__all__ = ["AUGMENTERS", *_PUBLIC]


def __getattr__(name: str) -> Any:
    """Import a class on first access, so that listing the names does not import torch."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'augmenters' has no attribute '{name}'")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
