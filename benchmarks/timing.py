"""Processor seconds of one core, measured so that other work on the machine has little effect."""

from __future__ import annotations

import math
import re
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch


def core_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@dataclass
class Side:
    """One way to train a trial, timed at two numbers of epochs; for each, the fastest round counts."""

    train: Callable[[int], object]
    few: int
    many: int
    patience: float = math.inf  # an implementation whose few epochs take longer is skipped
    short: float = math.inf
    long: float = math.inf

    @property
    def given_up(self) -> bool:
        return self.patience < self.short < math.inf

    def take_turn(self) -> None:
        if self.given_up:
            return
        self.short = min(self.short, core_seconds(lambda: self.train(self.few)))
        if not self.given_up:
            self.long = min(self.long, core_seconds(lambda: self.train(self.many)))

    def seconds(self, epochs: int) -> tuple[float, float]:
        """The time of a trial with so many epochs, and its fixed part."""
        each = (self.long - self.short) / (self.many - self.few)
        once = max(self.short - self.few * each, 0.0)
        return once + epochs * each, once


def matmul_rate(size: int = 768) -> float:
    """Floating-point operations per second of one large product."""
    a, out = torch.randn(size, size), torch.empty(size, size)
    start = time.perf_counter()
    for _ in range(4):
        torch.mm(a, a, out=out)
    return 8 * size**3 / (time.perf_counter() - start)


def high_water() -> int:
    """The peak memory of this process in KiB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would also count the memory of the parent when it started this process
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        return int(found[1]) if found else 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
