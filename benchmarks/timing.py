"""Seconds of one core, taken so that other work on the machine disturbs them little."""

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
    """One way to train a trial, timed at two numbers of epochs; of each the quickest round counts."""

    train: Callable[[int], object]
    few: int
    many: int
    patience: float = math.inf  # a side whose few epochs take longer is given up
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
        """Of a trial of so many epochs, and what of it is paid once."""
        each = (self.long - self.short) / (self.many - self.few)
        once = max(self.short - self.few * each, 0.0)
        return once + epochs * each, once


def matmul_rate(size: int = 768) -> float:
    """Floating-point operations a second of one large product."""
    a, out = torch.randn(size, size), torch.empty(size, size)
    start = time.perf_counter()
    for _ in range(4):
        torch.mm(a, a, out=out)
    return 8 * size**3 / (time.perf_counter() - start)


def high_water() -> int:
    """KiB that this process has held at most."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would also count what the parent held when it started this process
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        return int(found[1]) if found else 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
