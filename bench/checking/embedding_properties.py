"""Properties of augmenters that mix between the readout and the head."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from bench.checking.cases import Case
from bench.checking.comparing import brief
from bench.checking.contract import BrokenError, DoesNotApplyError, holds
from bench.checking.graph_properties import TOLERANCE
from bench.checking.subject import Subject


def mixed_in(subject: Subject) -> Iterator[tuple[Case, Tensor, Tensor, Tensor]]:
    """Every case with the input embeddings and the output."""
    some = False
    for case, outcome in subject.outcomes():
        if outcome.mixed is not None:
            some = True
            yield case, *outcome.mixed
    if not some:
        raise DoesNotApplyError("it ran on no case")


@holds("mix keeps shapes", "embeddings")
def keeps_shape(subject: Subject) -> str | None:
    for case, given, embeddings, targets in mixed_in(subject):
        if embeddings.shape != given.shape:
            raise BrokenError(f"{case.name}: embeddings {list(given.shape)} became {list(embeddings.shape)}")
        if targets.shape != (len(given), case.num_classes):
            raise BrokenError(f"{case.name}: targets have shape {list(targets.shape)}")
    return None


@holds("mix keeps label mass", "embeddings")
def keeps_label_mass(subject: Subject) -> str | None:
    for case, _, _, targets in mixed_in(subject):
        wrong = (~torch.isfinite(targets)).any(1) | (targets < 0).any(1) | ((targets.sum(1) - 1).abs() > TOLERANCE)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            raise BrokenError(f"{case.name}, row {row}: targets are {brief(targets[row])}")
    return None


@holds("mix lets the gradient through", "embeddings")
def stays_differentiable(subject: Subject) -> str | None:
    for case, given, embeddings, _ in mixed_in(subject):
        if not torch.isfinite(embeddings).all():
            raise BrokenError(f"{case.name}: an embedding holds {float(embeddings[~torch.isfinite(embeddings)][0])}")
        if not embeddings.requires_grad:
            raise BrokenError(f"{case.name}: the mixed embeddings have no gradient, so the backbone would not learn")
        (gradient,) = torch.autograd.grad(embeddings.sum(), given, retain_graph=True)
        if not torch.isfinite(gradient).all():
            raise BrokenError(f"{case.name}: the gradient of the embeddings is not finite")
    return None
