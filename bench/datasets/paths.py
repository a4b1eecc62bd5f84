"""Where data is stored: one root, with PyG's layout for TU datasets and that of Errica et al. for splits."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bench.registry import UserError

DATA_VARIABLE = "BENCH_DATA"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+.-]{0,99}")


def data_root(given: str | Path | None = None) -> Path:
    """The given folder (`--data`), else $BENCH_DATA, else the user's cache folder."""
    chosen = given or os.environ.get(DATA_VARIABLE)
    if chosen:
        root = Path(chosen).expanduser().absolute()
    else:
        import platformdirs

        root = platformdirs.user_cache_path("augbench", appauthor=False)
    if root.exists() and not root.is_dir():
        raise UserError(f"the data root {root} is a file; give a folder with --data or ${DATA_VARIABLE}")
    return root


def plain_name(name: str, kind: str) -> str:
    """The name itself if it is safe as the name of a folder."""
    if not _PLAIN_NAME.fullmatch(name):
        raise UserError(f"'{name}' cannot be the name of a {kind}; use only letters, digits and - _ + .")
    return name


def tu_folder(root: Path, name: str) -> Path:
    """The folder of a TU dataset, with the text files in `raw` and PyG's parsed copy in `processed`."""
    return root / "tu" / plain_name(name, "dataset")


def tu_file(raw: Path, name: str, kind: str) -> Path:
    """The path of one of a TU dataset's text files, such as `A` or `graph_labels`."""
    return raw / f"{name}_{kind}.txt"


def splits_folder(root: Path, family: str) -> Path:
    return root / "splits" / plain_name(family, "split family")
