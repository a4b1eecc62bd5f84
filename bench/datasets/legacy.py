"""The fingerprint of results published before the content was hashed: only labels and counts.

Used only to carry those results over to current keys: it does not notice rewired edges.
"""

from __future__ import annotations

import hashlib

import numpy as np

from bench.datasets.base import GraphSet


def legacy_fingerprint(data: GraphSet) -> str:
    """A hash of the labels, of each graph's number of nodes and directed edges, and of the feature width."""
    counts = np.array([(graph.num_nodes, graph.edge_index.shape[1]) for graph in data.graphs])
    width = data.graphs[0].x.shape[1] if data.has_features else 0
    digest = hashlib.blake2b(digest_size=6)
    for part in (data.labels, counts, np.array([width])):
        digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()
