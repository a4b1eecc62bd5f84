"""M-Mixup: the mix between readout and head (Eq. 5)."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from augmenters import MMixup
from augmenters.base import Context


def test_mix_by_hand() -> None:
    embeddings, targets = torch.tensor([[1.0, 0.0], [3.0, 4.0]]), torch.eye(2)
    mixed, labels = MMixup().mix(embeddings, targets, (0.75, np.array([1, 0])))
    assert mixed.tolist() == [[1.5, 1.0], [2.5, 3.0]]
    assert labels.tolist() == [[0.75, 0.25], [0.25, 0.75]]


def test_before_a_linear_head_it_is_a_mix_of_logits() -> None:
    head, embeddings = nn.Linear(6, 3), torch.randn(5, 6)
    share, partner = 0.3, np.array([4, 0, 1, 3, 2])
    mixed, _ = MMixup().mix(embeddings, torch.zeros(5, 3), (share, partner))
    logits = head(embeddings)
    torch.testing.assert_close(head(mixed), share * logits + (1 - share) * logits[torch.as_tensor(partner)])


def test_one_lambda_and_one_permutation_a_step() -> None:
    context = Context(2, lambda graphs, epochs: torch.empty(0), lambda key: np.random.default_rng(0))
    rng = np.random.default_rng(0)
    draws = [MMixup(alpha=1.0).draw([None] * 6, rng, context) for _ in range(200)]  # type: ignore[list-item]
    assert all(sorted(partner.tolist()) == list(range(6)) and 0 <= share <= 1 for share, partner in draws)
    assert 0.4 < np.mean([share for share, _ in draws]) < 0.6
    assert (MMixup.when, MMixup.labels, MMixup.mode) == ("batch", "mixed", "replace")
