"""What every worker needs, imported once in the process that workers are forked from.

The fork server of `bench.execution.nursery` imports this module and nothing else does: it silences the process that
imports it. Nothing is computed here, so that no thread of torch's exists when the first worker is forked.
"""

from __future__ import annotations

import gc
import importlib
import os
import warnings
from contextlib import suppress

MODULES = (
    "bench.execution.worker_process",
    "torch",
    "torch_geometric",
    "bench.execution.trial",
    "bench.learning.gnn",
    "bench.learning.fast.engine",
    "bench.learning.reference",
    "models.backbones",
    "models.readouts",
    "augmenters.controls",
    "bench.datasets.kept",
    "bench.learning.fast.ops.self_check",
    "sklearn.metrics",
)


def preload() -> None:
    """Import them one after the other, and end as soon as whoever wanted workers is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # a reader of the driver's output must not wait for this process
        os.dup2(nowhere, stream)
    os.close(nowhere)
    driver = os.getppid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a worker has no part in what its parent has heard
        for name in MODULES:
            importlib.import_module(name)
            if os.getppid() != driver:
                os._exit(0)
    gc.freeze()  # so that workers do not copy what they only look at


with suppress(Exception):  # a worker that needs what cannot be imported says so itself
    preload()
