"""The input of one optimizer step: a batch, or what a step augmenter makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from augmenters.base import StepAugmenter
from bench.learning.problem import Augmented, label_rows
from models.classifier import GraphClassifier
from models.fit import Step, soft_cross_entropy


def bare_graphs(graphs: Sequence[Data]) -> list[Data]:
    """Only the attributes that a backbone reads; if one graph has edge weights, the others get weights of one."""
    weighted = any(graph.get("edge_weight") is not None for graph in graphs)
    bare = []
    for graph in graphs:
        new = Data(x=graph.x, edge_index=graph.edge_index, num_nodes=graph.num_nodes)
        if weighted:
            weight = graph.get("edge_weight")
            new.edge_weight = torch.ones(graph.num_edges) if weight is None else weight
        bare.append(new)
    return bare


def as_batch(graphs: Sequence[Data], device: str) -> Batch:
    """Graphs as one batch on the device."""
    return Batch.from_data_list(bare_graphs(graphs)).to(device)


def as_step(data: Augmented, device: str) -> Step:
    """A training set as one step."""
    return Step(as_batch(data.graphs, device), data.targets.to(device), data.weights.to(device))


@dataclass
class ModelView:
    """The `TrainingView` of one step: a model, and how graphs get its features."""

    model: GraphClassifier
    num_classes: int
    device: str
    featurize: Callable[[Data], Data]
    counts: float = 1.0  # weight of each graph in what the step learns
    parts: list[float] = field(default_factory=list)  # the losses that the step has learned from

    def embeddings(self, graphs: Sequence[Data]) -> list[Tensor]:
        batch, _ = self._batch(graphs)
        with self._looking(), torch.no_grad():
            return _per_graph(self.model.nodes(batch), graphs)

    def losses(self, graphs: Sequence[Data]) -> Tensor:
        batch, targets = self._batch(graphs)
        with self._looking(), torch.no_grad():
            return -(targets * self.model(batch).log_softmax(dim=1)).sum(dim=1).cpu()

    def saliency(self, graphs: Sequence[Data]) -> list[Tensor]:
        batch, targets = self._batch(graphs)
        with self._looking(), torch.enable_grad():
            nodes = self.model.nodes(batch).detach().requires_grad_()
            (gradient,) = torch.autograd.grad(self._label_loss(self.model.pool(nodes, batch).rows, targets), nodes)
        return _per_graph(gradient.norm(dim=1), graphs)

    def feature_gradients(self, graphs: Sequence[Data]) -> list[Tensor]:
        batch, targets = self._batch(graphs)
        batch.x.requires_grad_()
        with self._looking(), torch.enable_grad():
            (gradient,) = torch.autograd.grad(self._label_loss(self.model.embed(batch), targets), batch.x)
        return _per_graph(gradient, graphs)

    def learn(self, graphs: Sequence[Data], share: float = 1.0) -> list[Tensor]:
        batch, targets = self._batch(graphs)
        batch.x.requires_grad_()
        pooled = self.model.pool(self.model.nodes(batch), batch)
        loss = self._label_loss(pooled.rows, targets)
        if pooled.loss is not None:
            loss = loss + pooled.loss
        share = share * self.counts
        loss = share * loss
        loss.backward()
        self.parts.append(loss.item())
        return _per_graph(batch.x.grad / share, graphs)

    def _batch(self, graphs: Sequence[Data]) -> tuple[Batch, Tensor]:
        ready = [self.featurize(graph) for graph in graphs]
        batch = as_batch(ready, self.device)
        batch.x = batch.x.detach().clone()
        return batch, label_rows(ready, self.num_classes).to(self.device)

    def _label_loss(self, rows: Tensor, targets: Tensor) -> Tensor:
        return soft_cross_entropy(self.model.head(rows), targets, torch.ones(len(targets), device=targets.device))

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Switch the model to evaluation mode, and restore its mode afterwards."""
        before = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(before)


def _per_graph(rows: Tensor, graphs: Sequence[Data]) -> list[Tensor]:
    return list(rows.detach().cpu().split([int(graph.num_nodes or 0) for graph in graphs]))


@dataclass(frozen=True)
class AugmentedStep:
    """A step of a step augmenter, with its draws."""

    augmenter: StepAugmenter
    graphs: Sequence[Data]
    drawn: Any
    num_classes: int
    device: str
    featurize: Callable[[Data], Data]
    counts: float = 1.0

    def backward(self, model: GraphClassifier) -> float:
        view = ModelView(model, self.num_classes, self.device, self.featurize, self.counts)
        self.augmenter.step(view, self.graphs, self.drawn)
        if not view.parts:
            raise ValueError(f"{type(self.augmenter).__name__} never called view.learn in a step; call it in `step`")
        return sum(view.parts)
