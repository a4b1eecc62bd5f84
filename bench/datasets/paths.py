"""Where data lives: one root, with PyG's own layout for TU sets and Errica et al.'s for splits."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bench.registry import UserError

DATA_VARIABLE = "BENCH_DATA"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+.-]{0,99}")


def data_root(given: str | Path | None = None) -> Path:
    """The folder given (`--data`), else $BENCH_DATA, else the user's cache folder."""
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
    """The name itself if it can safely be the name of a folder."""
    if not _PLAIN_NAME.fullmatch(name):
        raise UserError(f"'{name}' cannot be the name of a {kind}; use letters, digits and - _ + . alone")
    return name


def tu_folder(root: Path, name: str) -> Path:
    """The folder of a TU set; its text files are in `raw` below it, what PyG makes of them in `processed`."""
    return root / "tu" / plain_name(name, "dataset")


def tu_file(raw: Path, name: str, kind: str) -> Path:
    """One of a TU set's text files, `A` or `graph_labels`, say."""
    return raw / f"{name}_{kind}.txt"


def splits_folder(root: Path, family: str) -> Path:
    return root / "splits" / plain_name(family, "split family")
