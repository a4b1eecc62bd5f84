"""Removes temporary files that PyG leaves behind: it writes the code of each convolution to a file and imports it."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import suppress
from pathlib import Path

from torch import nn
from torch_geometric.nn import MessagePassing

_PARTS = ("propagate", "edge_updater")


def remove_generated_files(model: nn.Module) -> None:
    """Remove the generated files of a model's convolutions; the imported code stays loaded."""
    for kind in {type(part) for part in model.modules() if isinstance(part, MessagePassing)}:
        for part in _PARTS:
            made = sys.modules.get(f"{kind.__module__}_{kind.__name__}_{part}")
            if made is not None and made.__file__ is not None:
                for path in (made.__file__, importlib.util.cache_from_source(made.__file__)):
                    with suppress(OSError):  # already removed for another model
                        Path(path).unlink()
