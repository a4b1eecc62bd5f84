"""The identity of a number: the same cell requires the same code, data, engine and kind of device.

A cell's key is a hash of its resolved settings, of the labels that determine its seeds, and of the current versions.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from augmenters import AUGMENTERS
from augmenters.composition import part_names
from bench.learning import LEARNERS
from bench.plan.cells import Cell
from bench.protocol.registries import METRICS
from bench.registry import Registry, UserError
from bench.sources import imported_rooms, module_hash
from models import BACKBONES, READOUTS

PROTOCOL = 1  # raised when the meaning of a trial changes, so that older results are not mixed in
DEFAULT_ENGINE = "fast"
NO_ENGINE = "none"  # for learners without a network

# Part of every cell's key. Raise an engine's number when it changes the last digits of any trial:
# training is chaotic, so that changes accuracies, and the two versions must not share a cell.
ENGINE_VERSIONS = {"fast": 1, "reference": 1}

_SEEN: dict[str, str] = {}  # hashes of the sources of each plug-in when this process first looked
REGISTRIES = {"learner": LEARNERS, "augmenter": AUGMENTERS, "backbone": BACKBONES, "readout": READOUTS}


def package_version(name: str) -> str:
    """The installed version, without importing the package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def minor_version(name: str) -> str:
    """Major and minor version, which decide whether results are comparable."""
    return ".".join(package_version(name).split("+")[0].split(".")[:2])


def device_kind(device: str) -> str:
    """`cuda:1` is `cuda`: which of several equal devices ran a trial does not matter."""
    return device.partition(":")[0]


def plugin_version(registry: Registry, name: str) -> int | str:
    """The version number of a built-in; for a third-party plug-in, its version with a hash of its sources.

    A test guards the numbers of built-ins: their digits cannot change without a new number.
    """
    if registry is AUGMENTERS and len(parts := part_names(name)) > 1:
        return "+".join(f"{part}={plugin_version(registry, part)}" for part in parts)
    entry = registry.entry(name)
    if entry.origin == "built in" and isinstance(entry.target, str):
        return entry.version if entry.needs is None else f"{entry.version}+{minor_version(entry.needs.package)}"
    module = entry.target.partition(":")[0] if isinstance(entry.target, str) else entry.target.__module__
    code = module_hash(module)
    if code is None:
        raise UserError(
            f"the source of {registry.kind} '{name}' ({module}) cannot be found, so changes to it could not be "
            "changes; put the class in a file"
        )
    if _SEEN.setdefault(module, code) != code:
        if module in sys.modules:  # the running code is the old one, but the file has changed
            raise UserError(
                f"the source of {registry.kind} '{name}' ({module}) was changed after it was imported; "
                "start Python again, so that the numbers are those of the code as it is"
            )
        _SEEN[module] = code
    bases = ",".join(f"{one}={number}" for one, number in sorted(_built_ins(module).items()))
    own = "path" if entry.origin == "path" else str(entry.version)
    return f"{own}+{code}" + (f"({bases})" if bases else "")


def _built_ins(module: str) -> dict[str, int | str]:
    """Versions of the built-in plug-ins whose code a third-party plug-in uses."""
    rooms = set(imported_rooms(module))
    return {
        entry.name: entry.version
        for registry in (AUGMENTERS, BACKBONES, READOUTS)
        for entry in registry.entries().values()
        if entry.origin == "built in" and isinstance(entry.target, str) and entry.target.partition(":")[0] in rooms
    }


@lru_cache(maxsize=1)
def library_versions() -> dict[str, str]:
    """The libraries whose releases change digits."""
    return {name: minor_version(name) for name in ("torch", "torch-geometric", "scikit-learn")}


def current_versions(parts: dict[str, str | None], engine: str, device: str) -> dict[str, Any]:
    """The versions of the current code that affect a number; `parts` names the plug-ins of a cell."""
    network = parts.get("backbone") is not None
    libraries = library_versions()
    versions: dict[str, Any] = {
        "protocol": PROTOCOL,
        "engine": engine,
        "engine-version": ENGINE_VERSIONS.get(engine),
        "device": device_kind(device),
        **{part: plugin_version(REGISTRIES[part], name) for part, name in parts.items() if name is not None},
        "torch": libraries["torch"],
        "torch-geometric": libraries["torch-geometric"],
    }
    return versions if network else versions | {"scikit-learn": libraries["scikit-learn"]}


def stale_parts(cell: Cell) -> dict[str, tuple[Any, Any]]:
    """The versions of a cell that differ from the current ones: then and now."""
    then = cell.versions
    parts = {part: None if (choice := getattr(cell, part)) is None else choice.name for part in REGISTRIES}
    try:
        now = current_versions(parts, str(then.get("engine", "")), str(then.get("device", "cpu")))
        if cell.metric is not None:
            now["metric"] = plugin_version(METRICS, cell.metric.partition(":")[0])
    except UserError:  # a plug-in that is not installed here
        return {"plug-ins": (", ".join(filter(None, parts.values())), "not all installed")}
    return {part: (then.get(part), value) for part, value in now.items() if then.get(part) != value}
