"""How much memory trials may take together: an estimate of each, and workers that wait until it fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING

import numpy as np
import psutil

from bench.registry import UserError

if TYPE_CHECKING:
    from bench.learning.problem import Problem

GIB = 2**30
UNITS = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": GIB, "TIB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9}
DEFAULT_SHARE = 0.8  # of what is free when the run starts
WORKER = GIB // 2  # what a worker holds before its first trial: Python, torch, a small dataset

# Bytes, calibrated against measured peaks (docs/performance.md).
PER_ENTRY, PER_CHANGING_ENTRY = 160, 600  # an edge in the sparse matrices, fixed or drawn anew each epoch
PER_DECODED_PAIR = 40  # two nodes of the graph that GDM decodes at the time
ROWS_BESIDE_LAYERS = 6  # tables of nodes x width that training has beside one a layer
USUAL = {"layers": 4, "width": 64, "dropout": 0}  # of a backbone that has no such settings


def parse_memory(text: str) -> int:
    """Bytes from `4GiB`, `500 MB` or a plain number of bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if not found or found[2].upper() not in UNITS or not float(found[1]):
        raise UserError(f"--memory {text} is not an amount of memory; write it as 4GiB or 500MB")
    return int(float(found[1]) * UNITS[found[2].upper()])


def memory_budget(text: str | None) -> int:
    """What the user allows, else a share of what is free now."""
    return parse_memory(text) if text else int(DEFAULT_SHARE * psutil.virtual_memory().available)


def workers_within(budget: int, jobs: int) -> int:
    """So many worker processes as the budget can hold at rest."""
    return max(1, min(jobs, budget // WORKER))


def shown(amount: float) -> str:
    return f"{amount / GIB:.1f} GiB"


def estimated_peak(problem: Problem, engine: str) -> int:
    """Bytes that training a trial needs at most beside what its process holds; rather too much than too little."""
    from augmenters.gdm import GDM

    augmenter, backbone = problem.augmenter, problem.backbone
    settings = backbone.settings if backbone else {}
    sizes = np.sort([int(graph.num_nodes or 0) for graph in problem.graphs]).astype(np.float64)
    edges = sum(graph.num_edges for graph in problem.graphs)
    layers, width, dropout = (float(settings.get(name) or usual) for name, usual in USUAL.items())
    nodes = float(sizes.sum())
    entries, decoding = edges + nodes, 0.0
    if augmenter.mode == "append":
        generated = getattr(augmenter, "count", 1.0) * len(sizes)
        # A mixed graph is as large as the larger of two: the i-th of m sizes with probability (2i - 1) / m^2.
        larger = (2 * np.arange(1, len(sizes) + 1) - 1) / len(sizes) ** 2
        nodes += float(generated * (larger @ sizes))
        if isinstance(augmenter, GDM):
            decoding = PER_DECODED_PAIR * sizes[-1] ** 2
            # Without attention the fast engine holds nearly complete graphs by the pairs that they lack.
            every_pair = engine != "fast" or backbone is None or backbone.name == "gat"
            entries += generated * (larger @ (sizes**2 if every_pair else 2 * sizes))
        else:
            entries *= 2
    row = 4 * width
    each = 1 + (backbone is not None and backbone.name == "gin") + (dropout > 0)  # GIN has a second map, dropout a mask
    tables = (layers * each + ROWS_BESIDE_LAYERS) * nodes * row
    per_entry = PER_CHANGING_ENTRY if augmenter.when == "epoch" else PER_ENTRY
    if engine != "fast":  # autograd keeps messages of every layer
        per_entry += int(2.5 * layers * row)
    features = 3 * nodes * 4 * problem.graphs[0].num_node_features
    return int(max(tables + per_entry * entries, decoding + row * sizes.sum()) + features)


class Claims:
    """What the workers of one pool hold or are about to hold, known to all of them."""

    def __init__(self, budget: int, context: SpawnContext) -> None:
        self.budget = budget
        self.held, self.training = context.Value("q", 0, lock=False), context.Value("i", 0, lock=False)
        self.changed = context.Condition()

    def move(self, amount: int, training: int = 0) -> None:
        self.held.value += amount
        self.training.value += training

    def fits(self, more: int) -> bool:
        """A trial may always train where no other does: its own estimate was within the budget."""
        return not self.training.value or self.held.value + more <= self.budget


_CLAIMS: Claims | None = None


def join_claims(claims: Claims) -> None:
    """Called in each worker as it starts."""
    global _CLAIMS
    _CLAIMS = claims
    with claims.changed:
        claims.move(WORKER)


@contextmanager
def room_for(problem: Problem, budget: int | None, engine: str) -> Iterator[None]:
    """Wait until the trial fits beside those of the other workers; one that never will is refused."""
    if budget is None:
        yield
        return
    resident = int(psutil.Process().memory_info().rss)
    needed = estimated_peak(problem, engine)
    if resident + needed > budget:
        raise UserError(
            f"this trial ({len(problem.graphs)} graphs, the largest with "
            f"{max(int(graph.num_nodes or 0) for graph in problem.graphs)} nodes, {type(problem.augmenter).__name__}, "
            f"{problem.backbone or 'no network'}) needs about {shown(resident + needed)}, more than the "
            f"{shown(budget)} of --memory; allow more, or take a smaller k or width"
        )
    more = needed + max(0, resident - WORKER)
    with _claimed(_CLAIMS, more):
        yield


@contextmanager
def _claimed(claims: Claims | None, more: int) -> Iterator[None]:
    if claims is None:
        yield
        return
    with claims.changed:
        claims.changed.wait_for(lambda: claims.fits(more))
        claims.move(more, training=1)
    try:
        yield
    finally:
        with claims.changed:
            claims.move(-more, training=-1)
            claims.changed.notify_all()
