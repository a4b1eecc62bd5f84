"""Shell completion: the names that `bench list` shows. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable


def augmenters(incomplete: str) -> list[str]:
    from augmenters import AUGMENTERS

    return _starting(incomplete, AUGMENTERS.names())


def backbones(incomplete: str) -> list[str]:
    from models import BACKBONES

    return _starting(incomplete, BACKBONES.names())


def readouts(incomplete: str) -> list[str]:
    from models import READOUTS

    return _starting(incomplete, READOUTS.names())


def learners(incomplete: str) -> list[str]:
    from bench.learning import LEARNERS

    return _starting(incomplete, LEARNERS.names())


def datasets(incomplete: str) -> list[str]:
    from bench.cli.catalogue import own_datasets
    from bench.datasets import DATASETS

    return _starting(incomplete, [*DATASETS.names(), *own_datasets()])


def grids(incomplete: str) -> list[str]:
    from bench.cli.catalogue import grid_names

    return _starting(incomplete, grid_names())


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
