"""The training loop, once: full batch, Adam, soft targets, the loss summed over graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from bench.registry import Choice
from models.classifier import GraphClassifier, build_classifier

Mix = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class Diverged(ArithmeticError):
    """Training met a loss, or ended in weights, that is not a number; it says at which epoch."""


def diverged(value: float, epoch: int) -> Diverged:
    """The error for a loss that is not finite at this epoch (counted from 0)."""
    return Diverged(f"the training loss is {value} at epoch {epoch + 1}; lower the learning rate or check the features")


@dataclass(frozen=True)
class Step:
    """What one optimiser step sees: graphs, their label distributions, how much each counts."""

    batch: Batch
    targets: Tensor
    weights: Tensor
    mix: Mix | None = None


def soft_cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Sum over graphs of weight x -sum_c y_c log p_c (Eq. 16)."""
    return -(weights * (targets * logits.log_softmax(dim=1)).sum(dim=1)).sum()


@contextmanager
def own_stream(seed: int, device: str = "cpu") -> Iterator[None]:
    """Torch's global stream, from which dropout draws, set for one training and given back as it was."""
    with torch.random.fork_rng(devices=[torch.device(device)] if device.startswith("cuda") else []):
        torch.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread within: small graphs gain nothing from more, and sums keep their order on every machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fit(
    model: GraphClassifier,
    steps: Iterable[Step],
    lr: float,
    weight_decay: float = 0.0,
    after_epoch: Callable[[int, float], None] | None = None,
) -> None:
    """Take one optimiser step for each element of `steps`."""
    optimiser = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
    for epoch, step in enumerate(steps):
        model.train()
        optimiser.zero_grad()
        embeddings, targets = model.embed(step.batch), step.targets
        if step.mix is not None:
            embeddings, targets = step.mix(embeddings, targets)
        loss = soft_cross_entropy(model.head(embeddings), targets, step.weights)
        value = loss.item()
        if not math.isfinite(value):
            raise diverged(value, epoch)
        loss.backward()
        optimiser.step()
        if after_epoch is not None:
            after_epoch(epoch, value)


@one_thread()
@torch.no_grad()
def predict(
    model: GraphClassifier, graphs: Sequence[Data], device: str | torch.device = "cpu", size: int = 256
) -> Tensor:
    """Class probabilities, one row a graph, with the model in evaluation mode."""
    model.eval()
    rows = [
        model(Batch.from_data_list(list(graphs[i : i + size])).to(device)).softmax(dim=1).cpu()
        for i in range(0, len(graphs), size)
    ]
    found = torch.cat(rows)
    lost = int((~found.isfinite()).any(dim=1).sum())
    if lost:  # a last step can spoil the weights after the last loss was looked at
        raise Diverged(
            f"the trained classifier gives no number for {lost} of {len(found)} graphs; "
            "lower the learning rate or check the features"
        )
    return found


@one_thread()
def class_probabilities(
    graphs: Sequence[Data],
    num_classes: int,
    *,
    epochs: int,
    seed: int,
    backbone: str | Choice = "gcn",
    readout: str | Choice = "mean",
    lr: float = 0.01,
) -> Tensor:
    """Train a fresh classifier on hard-labelled graphs and return what it then thinks of the same graphs."""
    model = build_classifier(backbone, readout, graphs[0].num_node_features, num_classes, seed)
    batch = Batch.from_data_list(list(graphs))
    targets = torch.nn.functional.one_hot(batch.y, num_classes).to(torch.float32)
    step = Step(batch, targets, torch.ones(len(graphs)))
    with own_stream(seed):
        fit(model, (step for _ in range(epochs)), lr)
    return predict(model, graphs)
