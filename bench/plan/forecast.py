"""Predicts how long a plan takes: from trials in the ledger, and from short probes of methods without any."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Protocol

from bench.plan.cells import Cell, Trial

PROBE_EPOCHS = 10
LONG_PROBE_EPOCHS = 110
LONG_PROBE_SECONDS = 0.5  # above this, the first probe shows the time per epoch, and a second one would only take time
PROBE_K = 10  # label budget of probes: long enough to be measurable, short enough to wait for

Family = tuple[str, str, str, str]  # dataset, engine, augmenter, backbone or learner: what affects time most


class Timed(Protocol):
    """A trial's time and the conditions it depends on."""

    @property
    def done(self) -> bool: ...

    @property
    def reason(self) -> str | None: ...

    @property
    def seconds(self) -> dict[str, float]: ...


@dataclass(frozen=True)
class Seconds:
    """The time of one trial: a fixed part, and a part per epoch."""

    fixed: float
    epoch: float

    @classmethod
    def of(cls, trial: Timed, epochs: int) -> Seconds:
        training = trial.seconds.get("train", 0.0)
        return cls(sum(trial.seconds.values()) - training, training / epochs)

    @classmethod
    def between(cls, short: Timed, long: Timed, epochs: int, more: int) -> Seconds:
        """From two trials that differ in epochs, so that the fixed part is not counted as time per epoch.

        The time per epoch is at least a tenth of the plain average, in case noise hides the difference.
        """
        average = cls.of(long, more)
        difference = (long.seconds.get("train", 0.0) - short.seconds.get("train", 0.0)) / (more - epochs)
        epoch = min(max(difference, average.epoch / 10), average.epoch)
        return cls(average.total(more) - epoch * more, epoch)

    def total(self, epochs: int) -> float:
        return self.fixed + self.epoch * epochs


@dataclass
class Forecast:
    """Predicts seconds per trial from measured trials."""

    _same: dict[Any, list[Seconds]] = field(default_factory=dict)
    _family: dict[Family, dict[int, list[Seconds]]] = field(default_factory=dict)
    unknown: dict[Family, str] = field(default_factory=dict)

    @classmethod
    def of(cls, measured: Iterable[tuple[Cell, Timed]]) -> Forecast:
        """A forecast from finished trials."""
        forecast = cls()
        for cell, trial in measured:
            forecast.learn(cell, trial)
        return forecast

    def learn(self, cell: Cell, trial: Timed) -> None:
        self._note(cell, Seconds.of(trial, cell.training.epochs))

    def _note(self, cell: Cell, seconds: Seconds) -> None:
        self._same.setdefault(_identity(cell), []).append(seconds)
        self._family.setdefault(family_of(cell), {}).setdefault(cell.k, []).append(seconds)

    def knows(self, cell: Cell) -> bool:
        return family_of(cell) in self._family

    def seconds(self, cell: Cell) -> float | None:
        """The experiment's own time if it was measured, else that of its family at the nearest label budgets."""
        epochs = cell.training.epochs
        same = self._same.get(_identity(cell))
        if same:
            return _typical(same, epochs)
        measured = self._family.get(family_of(cell))
        if not measured:
            return None
        return _at({k: _typical(found, epochs) for k, found in measured.items()}, cell.k)

    def probe(
        self, cells: Iterable[Cell], run: Callable[[Cell, Trial], Timed], say: Callable[[str], None], jobs: int = 1
    ) -> int:
        """Measure a few epochs for each family without recorded trials; returns how many cells were probed.

        `run` is called from so many threads at a time. A dataset stays with one of them, so that it is loaded once.
        """
        families: dict[Family, dict[int, Cell]] = {}
        for cell in cells:
            if not self.knows(cell):
                families.setdefault(family_of(cell), {}).setdefault(cell.k, cell)
        by_dataset: dict[str, list[tuple[Family, Cell]]] = {}
        for family, by_k in families.items():
            rates = sorted({min(by_k), min(by_k, key=lambda k: abs(k - PROBE_K))})
            by_dataset.setdefault(family[0], []).extend((family, by_k[k]) for k in rates)
        total, numbers = sum(map(len, by_dataset.values())), itertools.count(1)
        if not total:
            return 0
        first = next(iter(by_dataset.values()))[0][1]

        def probe_dataset(work: list[tuple[Family, Cell]]) -> None:
            for family, cell in work:
                say(f"probing {next(numbers)} of {total}: {cell.label}")
                self._probe_one(family, cell, run)

        def warm_up() -> None:  # the first training of a process also loads and builds code
            run(_shortened(first, PROBE_EPOCHS), Trial(0, 0))

        with ThreadPoolExecutor(min(jobs, len(by_dataset)), initializer=warm_up) as threads:
            for done in [threads.submit(probe_dataset, work) for work in by_dataset.values()]:
                done.result()
        return total

    def _probe_one(self, family: Family, cell: Cell, run: Callable[[Cell, Trial], Timed]) -> None:
        """A few epochs and, if they are fast, some more: `fast` takes longer to prepare than for ten epochs."""
        epochs, more = (min(count, cell.training.epochs) for count in (PROBE_EPOCHS, LONG_PROBE_EPOCHS))
        short = run(_shortened(cell, epochs), Trial(0, 0))
        if not short.done:
            self.unknown[family] = str(short.reason)
            return
        seconds = Seconds.of(short, epochs)
        more = min(more, epochs + int(LONG_PROBE_SECONDS / max(seconds.epoch, 1e-9)))
        if more >= 2 * epochs:
            long = run(_shortened(cell, more), Trial(0, 0))
            if long.done:
                seconds = Seconds.between(short, long, epochs, more)
        self._note(cell, seconds)


def _typical(measured: Iterable[Seconds], epochs: int) -> float:
    """The median: with a mean, a machine that slept for an hour would make one trial an hour long."""
    return median(one.total(epochs) for one in measured)


def _shortened(cell: Cell, epochs: int) -> Cell:
    return replace(cell, training=replace(cell.training, epochs=min(epochs, cell.training.epochs)))


def family_of(cell: Cell) -> Family:
    """Cells whose trials take about the same time at the same label budget."""
    return cell.dataset, str(cell.versions.get("engine")), cell.augmenter.name, (cell.backbone or cell.learner).name


def _identity(cell: Cell) -> tuple[Any, ...]:
    """Everything that determines a trial's time, regardless of versions."""
    labels = (cell.augmenter.label, cell.model, cell.training.select)
    return (*family_of(cell), cell.k, cell.features, cell.splits, *labels)


def _at(points: dict[int, float], k: int) -> float:
    """Linear interpolation between measured label budgets; beyond them rather too high than too low."""
    known = sorted(points)
    below = [one for one in known if one <= k]
    above = [one for one in known if one >= k]
    if not below:
        return points[known[0]]
    if above:
        low, high = below[-1], above[0]
        share = 0.0 if low == high else (k - low) / (high - low)
        return points[low] + share * (points[high] - points[low])
    last = known[-1]
    if len(known) == 1:
        return points[last] * k / last
    before = known[-2]
    slope = (points[last] - points[before]) / (last - before)
    return points[last] + max(slope, 0.0) * (k - last)


@dataclass(frozen=True)
class Hours:
    """Predicted hours of one process, by method and dataset."""

    by_place: dict[tuple[str, str], float]
    unknown: int

    @property
    def total(self) -> float:
        return sum(self.by_place.values())


def predicted(jobs: Iterable[tuple[Cell, Trial]], forecast: Forecast, method: Callable[[Cell], str]) -> Hours:
    """The hours of the pending trials; trials that cannot be predicted are counted."""
    by_place: dict[tuple[str, str], float] = {}
    each: dict[str, float | None] = {}
    unknown = 0
    for cell, _ in jobs:
        key = cell.key
        if key not in each:
            each[key] = forecast.seconds(cell)
        seconds = each[key]
        if seconds is None:
            unknown += 1
        else:
            place = (method(cell), cell.dataset)
            by_place[place] = by_place.get(place, 0.0) + seconds / 3600
    return Hours(by_place, unknown)
