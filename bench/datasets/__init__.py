"""Datasets by name. Nothing here imports torch before a dataset is loaded, so that listing and planning are fast."""

from __future__ import annotations

from bench.datasets.catalogue import DATASETS
from bench.datasets.loading import cheap_info, is_weighted, load_dataset, resolve_dataset

__all__ = ["DATASETS", "cheap_info", "is_weighted", "load_dataset", "resolve_dataset"]
