"""Plug-ins as a plan sees them. What was resolved once is kept on disk, so that planning need not wait for torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.registry import Choice, Registry
from bench.sources import source_stamp
from bench.temporary import replacing

FLAGS = ("weighted", "reads_edge_weight")  # what decides whether an augmenter and a backbone go together


@dataclass(frozen=True)
class Resolved:
    """A plug-in with its settings, and the class attributes that planning asks for."""

    choice: Choice
    flags: Mapping[str, bool]


class Resolver:
    """Resolves `name:key=value,...`; an answer on disk counts while no source file behind it has changed."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or _cache_file()
        self._known: dict[str, Resolved] = {}
        self._on_disk: dict[str, Any] | None = None
        self._new: dict[str, Any] = {}

    def resolve(self, registry: Registry, spec: str) -> Resolved:
        key = f"{registry.kind} {spec}"
        if key not in self._known:
            self._known[key] = self._recall(key, registry, spec) or self._learn(key, registry, spec)
        return self._known[key]

    def _recall(self, key: str, registry: Registry, spec: str) -> Resolved | None:
        if self._on_disk is None:
            self._on_disk = _read(self.file)
        found = self._on_disk.get(key)
        try:
            if not found or found["stamp"] != _stamp(registry, found["choice"]["name"]):
                return None
            return Resolved(Choice(**found["choice"]), found["flags"])
        except (KeyError, TypeError):  # the file is of another version, or not ours
            return None

    def _learn(self, key: str, registry: Registry, spec: str) -> Resolved:
        choice = registry.resolve(spec)
        cls = registry.load(choice.name)
        resolved = Resolved(choice, {flag: bool(getattr(cls, flag)) for flag in FLAGS if hasattr(cls, flag)})
        stamp = _stamp(registry, choice.name)
        if stamp is not None:
            self._new[key] = {"stamp": stamp, "choice": asdict(choice), "flags": dict(resolved.flags)}
        return resolved

    def save(self) -> None:
        """Keep what was new; where the cache folder cannot be written, the next plan is only slower."""
        if not self._new:
            return
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.file) as part:
                part.write_text(json.dumps({**_read(self.file), **self._new}), encoding="utf-8")
            self._new = {}
        except OSError:
            return


def _cache_file() -> Path:
    """One file for each installation: two checkouts on a machine would keep overwriting each other's answers."""
    import platformdirs

    place = hashlib.blake2b(str(Path(__file__).resolve()).encode(), digest_size=6).hexdigest()
    return platformdirs.user_cache_path("augbench", appauthor=False) / f"plugins-{place}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _stamp(registry: Registry, name: str) -> str | None:
    """The state of the code behind a name; nothing for a class that was registered in this very process."""
    target = registry.entry(name).target
    if not isinstance(target, str):
        return None
    package = target.partition(":")[0].partition(".")[0]
    return source_stamp("augmenters", "models", "bench.registry", package)
