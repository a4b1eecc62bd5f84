"""Everything that workers need, imported once in the process that they are forked from.

Only the fork server of `bench.execution.nursery` imports this module, because importing it silences the process.
Nothing is computed here, so that torch has no threads when the first worker is forked.
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
)


def preload() -> None:
    """Import the modules one by one, and stop as soon as the requesting process has ended."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # a reader of the driver's output must not wait for this process
        os.dup2(nowhere, stream)
    os.close(nowhere)
    driver = os.getppid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # workers do not need the warnings that their parent has seen
        for name in MODULES:
            importlib.import_module(name)
            if os.getppid() != driver:
                os._exit(0)
    gc.freeze()  # so that workers do not copy what they only read


with suppress(Exception):  # a worker that needs a module that cannot be imported reports it itself
    preload()
