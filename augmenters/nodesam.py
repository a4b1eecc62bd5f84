"""NodeSam (Yoo et al., WWW 2022): splits one node and contracts one edge, anew in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from augmenters.base import FeaturePolicy
from augmenters.functional import EdgeNumbers, one_per_graph
from augmenters.joined import JoinedGraphs, Rebuilt
from augmenters.kinds import NewEdgesAugmenter
from bench.registry import Tune


@dataclass(frozen=True)
class Split:
    """Undirected edges after one node of each graph was split; the new half in graph g has the number nodes + g."""

    edges: np.ndarray
    weights: np.ndarray | None
    nodes: np.ndarray  # the node of each graph that was split


@dataclass(frozen=True)
class NodeSam(NewEdgesAugmenter):
    """Splits a random node into two connected halves that share its neighbors, then merges the ends of a random edge.

    `adjust`: neighbors that form a triangle with the node are connected to both halves with the probability that
    preserves the expected number of triangles. The number of nodes does not change; a merged node gets the mean of both
    features.
    """

    adjust: Annotated[bool, Tune()] = True
    features: FeaturePolicy = "recompute"

    def draw_edges(self, graphs: JoinedGraphs, rng: Generator) -> Rebuilt:
        split = split_nodes(graphs, graphs.weights, one_per_graph(graphs.sizes, rng), self.adjust, rng)
        return merge_edges(graphs, split, graphs.rows, rng)


def split_nodes(
    graphs: EdgeNumbers, weights: np.ndarray | None, nodes: np.ndarray, adjust: bool, rng: Generator
) -> Split:
    """Split one node per graph; each neighbor is connected to a random half, or to both."""
    matrix = graphs.numbered_adjacency
    degree = np.diff(matrix.indptr)[nodes]
    owner = np.repeat(np.arange(len(nodes)), degree)  # the graph of each edge at a split node
    entry = (
        np.arange(len(owner)) - np.repeat(np.cumsum(degree) - degree, degree) + np.repeat(matrix.indptr[nodes], degree)
    )
    edge, neighbor = matrix.data[entry] - 1, matrix.indices[entry].astype(np.int64)
    moves = rng.random(len(owner)) < 0.5
    both = np.zeros(len(owner), dtype=bool)
    if adjust:
        around = graphs.triangles[entry]
        in_triangle = around > 0
        wanted = joint_neighbors(graphs, degree, np.bincount(owner, around, len(nodes)) / 2)
        chance = wanted / np.maximum(np.bincount(owner, in_triangle, len(nodes)), 1)
        both = in_triangle & (rng.random(len(owner)) < chance[owner])
    half = graphs.nodes + np.arange(len(nodes))
    edges = graphs.ends.copy()
    moved = moves & ~both
    edges[:, edge[moved]] = np.stack([neighbor[moved], half[owner[moved]]])
    doubled = np.stack([neighbor[both], half[owner[both]]])
    edges = np.concatenate([edges, doubled, np.stack([nodes, half])], axis=1)
    if weights is not None:
        usual = np.bincount(owner, weights[edge], len(nodes)) / np.maximum(degree, 1)
        weights = np.concatenate([weights, weights[edge[both]], np.where(degree > 0, usual, 1)]).astype(np.float32)
    return Split(edges, weights, nodes)


def joint_neighbors(graphs: EdgeNumbers, degree: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """How many neighbors of each split node should join both halves to preserve the number of triangles.

    `triangles` counts the triangles that contain the split node.
    """
    v, e = graphs.sizes, graphs.counts - graphs.loops
    c = e - 2 - 3 * triangles / np.maximum(degree, 1)
    wanted: np.ndarray = (np.sqrt(np.maximum(c**2 + 4 * triangles * v - 6 * triangles, 0)) - c) / 2
    return np.where(triangles > 0, np.maximum(wanted, 0), 0)


def merge_edges(graphs: JoinedGraphs, split: Split, rows: np.ndarray | None, rng: Generator) -> Rebuilt:
    """Contract one random edge of each graph; parallel edges become one, with the mean of their weights."""
    count = len(split.nodes)
    graph_of_node = np.concatenate([graphs.graph_of_node, np.arange(count)])
    loop = split.edges[0] == split.edges[1]
    joining = np.flatnonzero(~loop)  # each graph has one: the halves of the node that was split are joined
    graph_of_edge = graph_of_node[split.edges[0, joining]]
    by_graph = joining[np.argsort(graph_of_edge, kind="stable")]
    sizes = np.bincount(graph_of_edge, minlength=count)
    first, second = split.edges[:, by_graph[one_per_graph(sizes, rng)]]
    stays = np.ones(len(graph_of_node), dtype=bool)
    stays[second] = False
    order = np.flatnonzero(stays)
    order = order[np.argsort(graph_of_node[order], kind="stable")]
    number = np.empty(len(graph_of_node), dtype=np.int64)
    number[order] = np.arange(len(order))
    number[second] = number[first]
    low, high = np.sort(number[split.edges], axis=0)
    apart = (low != high) | loop  # the merged edge goes
    codes, place = np.unique((low * graphs.nodes + high)[apart], return_inverse=True)
    weights = split.weights
    if weights is not None:
        weights = (np.bincount(place, weights[apart], len(codes)) / np.bincount(place, minlength=len(codes))).astype(
            np.float32
        )
    if rows is not None:
        halves = np.concatenate([rows, rows[split.nodes]])
        halves[first] = (halves[first] + halves[second]) / 2
        rows = halves[order]
    return graphs.rebuilt(np.stack([codes // graphs.nodes, codes % graphs.nodes]), weights, rows)
