"""The graph classifier: backbone, readout, two fully connected layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from bench.registry import Choice
from models import BACKBONES, READOUTS
from models.backbones import Backbone
from models.generated import remove_generated_files
from models.readouts import Readout


class GraphClassifier(nn.Module):
    """p_G = g(READOUT(f(X, A))), Eq. 1-3; `embed` and `head` are apart so that a mixup can stand between."""

    def __init__(self, backbone: Backbone, readout: Readout, num_classes: int) -> None:
        super().__init__()
        width = backbone.out_channels
        self.backbone, self.readout = backbone, readout
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, num_classes))
        remove_generated_files(self)

    def embed(self, batch: Batch) -> Tensor:
        """One row a graph, after the readout."""
        nodes = self.backbone(batch.x, batch.edge_index, batch.get("edge_weight"))
        pooled: Tensor = self.readout(nodes, batch.batch, batch.num_graphs)
        return pooled

    def forward(self, batch: Batch) -> Tensor:
        """Logits, one row a graph."""
        logits: Tensor = self.head(self.embed(batch))
        return logits


def build_classifier(
    backbone: str | Choice, readout: str | Choice, in_channels: int, num_classes: int, seed: int
) -> GraphClassifier:
    """A freshly initialised classifier whose weights depend on the seed alone, not on the global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GraphClassifier(
            BACKBONES.create(backbone, in_channels=in_channels), READOUTS.create(readout), num_classes
        )
