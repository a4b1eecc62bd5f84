"""What identifies a number: the versions of code and data under which it may stand in one cell with others."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from augmenters import AUGMENTERS
from bench.registry import UserError
from models import BACKBONES, READOUTS

PROTOCOL = 1  # raised when the meaning of a trial changes, so that older numbers are never mixed in
DEFAULT_ENGINE = "fast"

# Part of every cell's key. Raise an engine's number when it gives other last digits for any trial than before:
# training is chaotic, so other digits are other accuracies, and the two must not stand in one cell.
ENGINE_VERSIONS = {"fast": 1, "reference": 1}


def package_version(name: str) -> str:
    """The installed version, without importing the package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def minor_version(name: str) -> str:
    """Major and minor version: what decides whether numbers may be compared."""
    return ".".join(package_version(name).split("+")[0].split(".")[:2])


@lru_cache(maxsize=1024)
def _versions(augmenter: str, backbone: str, readout: str, engine: str) -> tuple[tuple[str, Any], ...]:
    versions = {
        "protocol": PROTOCOL,
        "engine": engine,
        "engine-version": ENGINE_VERSIONS.get(engine),
        "augmenter": AUGMENTERS.entry(augmenter).version,
        "backbone": BACKBONES.entry(backbone).version,
        "readout": READOUTS.entry(readout).version,
        "torch": minor_version("torch"),
        "torch-geometric": minor_version("torch-geometric"),
    }
    return tuple(versions.items())


def current_versions(augmenter: str, backbone: str, readout: str, engine: str) -> dict[str, Any]:
    """The versions that decide whether two numbers may stand in one table."""
    return dict(_versions(augmenter, backbone, readout, engine))


def stale_parts(cell: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The versions under which a ledger's cell was measured and that are others here: then and now."""
    then = cell["versions"]
    augmenter, backbone, readout = (cell[kind]["name"] for kind in ("augmenter", "backbone", "readout"))
    try:
        now = current_versions(augmenter, backbone, readout, then.get("engine", ""))
    except UserError:  # a plug-in of the time is not installed here
        return {"plug-ins": (f"{augmenter}, {backbone}, {readout}", "not all installed")}
    return {part: (then.get(part), value) for part, value in now.items() if then.get(part) != value}
