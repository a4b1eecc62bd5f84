"""The training loop: Adam, soft targets, and the weighted sum of the losses of the graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from bench.registry import Choice
from models.classifier import Ending, GraphClassifier, build_classifier

Mix = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class Diverged(ArithmeticError):
    """The training loss or the final weights became non-finite; the message gives the epoch."""


def diverged(value: float, epoch: int) -> Diverged:
    """The error for a non-finite loss at this epoch (counted from 0)."""
    return Diverged(f"the training loss is {value} at epoch {epoch + 1}; lower the learning rate or check the features")


class TrainingStep(Protocol):
    """One optimizer step: computes gradients and returns the loss."""

    def backward(self, model: GraphClassifier) -> float: ...


@dataclass(frozen=True)
class Step:
    """A step on graphs with their label distributions and loss weights."""

    batch: Batch
    targets: Tensor
    weights: Tensor
    mix: Mix | None = None

    def backward(self, model: GraphClassifier) -> float:
        pooled, targets = model.pool(model.nodes(self.batch), self.batch), self.targets
        embeddings = pooled.rows
        if self.mix is not None:
            embeddings, targets = self.mix(embeddings, targets)
        loss = soft_cross_entropy(model.head(embeddings), targets, self.weights)
        if pooled.loss is not None:
            loss = loss + pooled.loss
        loss.backward()
        return loss.item()


def soft_cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Sum over graphs of weight x -sum_c y_c log p_c (Eq. 16)."""
    return -(weights * (targets * logits.log_softmax(dim=1)).sum(dim=1)).sum()


@contextmanager
def own_stream(seed: int, device: str = "cpu") -> Iterator[None]:
    """Seed torch's global generator, which dropout uses, for one training, and restore its state afterwards."""
    with torch.random.fork_rng(devices=[torch.device(device)] if device.startswith("cuda") else []):
        torch.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread: small graphs gain nothing from more, and sums keep their order on every machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fit(
    model: GraphClassifier,
    epochs: Iterable[Iterable[TrainingStep]],
    lr: float,
    weight_decay: float = 0.0,
    after_epoch: Callable[[int, float], None] | None = None,
) -> None:
    """Perform the optimizer steps of each epoch; the loss of an epoch is the sum over its steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
    for epoch, steps in enumerate(epochs):
        total = 0.0
        for step in steps:
            model.train()
            optimizer.zero_grad()
            value = step.backward(model)
            if not math.isfinite(value):
                raise diverged(value, epoch)
            optimizer.step()
            total += value
        if after_epoch is not None:
            after_epoch(epoch, total)


@one_thread()
@torch.no_grad()
def predict(
    model: GraphClassifier, graphs: Sequence[Data], device: str | torch.device = "cpu", size: int = 256
) -> Tensor:
    """Class probabilities, one row per graph, with the model in evaluation mode."""
    model.eval()
    rows = [
        model(Batch.from_data_list(list(graphs[i : i + size])).to(device)).softmax(dim=1).cpu()
        for i in range(0, len(graphs), size)
    ]
    found = torch.cat(rows)
    refuse_lost(found)
    return found


def refuse_lost(rows: Tensor) -> None:
    """Raise `Diverged` if predictions are not finite; a last step can corrupt the weights after the last loss."""
    lost = int((~rows.isfinite()).any(dim=1).sum())
    if lost:
        raise Diverged(
            f"the trained classifier gives no number for {lost} of {len(rows)} graphs; "
            "lower the learning rate or check the features"
        )


@dataclass(frozen=True)
class TrainedNetwork:
    """A trained classifier and its device; implements the harness's predictor protocol."""

    model: GraphClassifier
    device: str = "cpu"

    def probabilities(self, graphs: Sequence[Data]) -> Tensor:
        """Class probabilities: one row per graph, one column per class."""
        return predict(self.model, graphs, self.device)


@dataclass(frozen=True)
class Pretrained:
    """A classifier after pre-training: its predictions on the training graphs, and its weights by name."""

    probabilities: Tensor
    state: Mapping[str, Tensor]


@one_thread()
def pretrain(
    graphs: Sequence[Data],
    num_classes: int,
    *,
    epochs: int,
    seed: int,
    backbone: str | Choice = "gcn",
    readout: str | Choice = "mean",
    ending: Ending = "linear",
    lr: float = 0.01,
) -> Pretrained:
    """Train a fresh classifier on graphs with hard labels, all of them in each step."""
    model = build_classifier(backbone, readout, graphs[0].num_node_features, num_classes, seed, ending)
    batch = Batch.from_data_list(list(graphs))
    targets = torch.nn.functional.one_hot(batch.y, num_classes).to(torch.float32)
    step = Step(batch, targets, torch.ones(len(graphs)))
    with own_stream(seed):
        fit(model, ((step,) for _ in range(epochs)), lr)
    return Pretrained(predict(model, graphs), model.state_dict())
