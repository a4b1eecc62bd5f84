"""The graph classifier: a backbone, a readout and two fully connected layers."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from bench.registry import Choice
from models import BACKBONES, READOUTS
from models.backbones import Backbone
from models.generated import remove_generated_files
from models.readouts import Pooled, Readout

Ending = Literal["linear", "relu"]


class GraphClassifier(nn.Module):
    """p_G = g(READOUT(f(X, A))), Eq. 1-3; `embed` and `head` are separate so that mixup can act between them.

    `ending`: whether a ReLU also follows the last fully connected layer, so that no logit is negative.
    """

    def __init__(self, backbone: Backbone, readout: Readout, num_classes: int, ending: Ending = "linear") -> None:
        super().__init__()
        width = readout.out_channels
        self.backbone, self.readout = backbone, readout
        self.ending: Ending = ending
        last = [nn.ReLU()] if ending == "relu" else []
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, num_classes), *last)
        remove_generated_files(self)

    def nodes(self, batch: Batch) -> Tensor:
        """Node embeddings after the last layer of the backbone."""
        embeddings: Tensor = self.backbone(batch.x, batch.edge_index, batch.get("edge_weight"))
        return embeddings

    def pool(self, nodes: Tensor, batch: Batch) -> Pooled:
        """Apply the readout to node embeddings: one row per graph, and an auxiliary loss if the readout has one."""
        made = self.readout(nodes, batch.edge_index, batch.get("edge_weight"), batch.batch, batch.num_graphs)
        return made if isinstance(made, Pooled) else Pooled(made)

    def embed(self, batch: Batch) -> Tensor:
        """One embedding per graph, after the readout."""
        return self.pool(self.nodes(batch), batch).rows

    def forward(self, batch: Batch) -> Tensor:
        """Logits, one row per graph."""
        logits: Tensor = self.head(self.embed(batch))
        return logits


def build_classifier(
    backbone: str | Choice,
    readout: str | Choice,
    in_channels: int,
    num_classes: int,
    seed: int,
    ending: Ending = "linear",
) -> GraphClassifier:
    """A freshly initialized classifier whose weights depend only on the seed, not on the global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        body = BACKBONES.create(backbone, in_channels=in_channels)
        return GraphClassifier(body, READOUTS.create(readout, in_channels=body.out_channels), num_classes, ending)
