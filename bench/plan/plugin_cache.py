"""Resolves plug-ins for planning. Results are cached on disk, so that planning need not import torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from augmenters import AUGMENTERS
from augmenters.composition import part_names
from bench.learning import LEARNERS
from bench.registry import Choice, Registry
from bench.sources import ROOMS, module_stamp, source_stamp
from bench.temporary import replacing
from models import BACKBONES, READOUTS

FLAGS = ("network", "reads_edge_weight")  # class attributes that a plan needs
Part = tuple[Registry, str | None]  # a plug-in by name; None if a learner has no such part


@dataclass(frozen=True)
class Resolved:
    """A plug-in with its settings, and the class attributes that planning needs."""

    choice: Choice
    flags: Mapping[str, bool]


class Resolver:
    """Resolves `name:key=value,...`; a cached result is valid as long as no source file behind it has changed."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or _cache_file()
        self._known: dict[str, Resolved] = {}
        self._answers: dict[str, str | None] = {}
        self._on_disk: dict[str, Any] | None = None
        self._new: dict[str, Any] = {}

    def resolve(self, registry: Registry, spec: str) -> Resolved:
        key = f"{registry.kind} {spec}"
        if key not in self._known:
            self._known[key] = self._recall(key, registry, spec) or self._learn(key, registry, spec)
        return self._known[key]

    def _recall(self, key: str, registry: Registry, spec: str) -> Resolved | None:
        found = self._disk().get(key)
        try:
            if not found or found["stamp"] != _stamp(registry, found["choice"]["name"]):
                return None
            return Resolved(Choice(**found["choice"]), found["flags"])
        except (KeyError, TypeError):  # the file is from another version, or not ours
            return None

    def _learn(self, key: str, registry: Registry, spec: str) -> Resolved:
        choice = registry.resolve(spec)
        cls = registry.load(choice.name)
        resolved = Resolved(choice, {flag: bool(getattr(cls, flag)) for flag in FLAGS if hasattr(cls, flag)})
        stamp = _stamp(registry, choice.name)
        if stamp is not None:
            self._new[key] = {"stamp": stamp, "choice": asdict(choice), "flags": dict(resolved.flags)}
        return resolved

    def refusal(self, learner: str, augmenter: str, backbone: str | None, readout: str | None) -> str | None:
        """Why a learner does not accept an augmenter (with this backbone and readout); None if it does."""
        parts = ((LEARNERS, learner), (AUGMENTERS, augmenter), (BACKBONES, backbone), (READOUTS, readout))
        return self._answer("refuses", parts, lambda chosen, *others: chosen.refuses(*others))

    def engine_obstacle(self, augmenter: Choice, backbone: Choice, readout: Choice) -> str | None:
        """Why the fast engine would hand a combination over to the reference engine; None if it would not."""

        def ask(layers: type, pooling: type, method: type) -> str | None:
            from bench.learning.fast.engine import fast_obstacle

            return fast_obstacle(layers, pooling, method, backbone.settings)

        parts = ((BACKBONES, backbone.name), (READOUTS, readout.name), (AUGMENTERS, augmenter.name))
        return self._answer(f"fast {backbone.label}", parts, ask)

    def _answer(self, question: str, parts: Sequence[Part], ask: Callable[..., str | None]) -> str | None:
        """A combined property of several plug-in classes, cached like the results of `resolve`."""
        key = " ".join([question, *(name or "-" for _, name in parts)])
        if key not in self._answers:
            stamps = [_stamp(registry, name) for registry, name in parts if name]
            stamp = None if None in stamps else " ".join(map(str, stamps))
            found = self._disk().get(key)
            if isinstance(found, dict) and stamp is not None and found.get("stamp") == stamp and "answer" in found:
                self._answers[key] = found["answer"]
            else:
                self._answers[key] = ask(*(registry.load(name) if name else None for registry, name in parts))
                if stamp is not None:
                    self._new[key] = {"stamp": stamp, "answer": self._answers[key]}
        return self._answers[key]

    def _disk(self) -> dict[str, Any]:
        if self._on_disk is None:
            self._on_disk = _read(self.file)
        return self._on_disk

    def save(self) -> None:
        """Store new results; if the cache folder is read-only, planning is only slower."""
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
    """One file per installation: otherwise, two checkouts on a machine would keep overwriting each other's results."""
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
    """The state of the code behind a name; None for a class that was registered in this process."""
    if registry is AUGMENTERS and len(parts := part_names(name)) > 1:
        stamps = [_stamp(registry, part) for part in parts]
        return None if None in stamps else " ".join(map(str, stamps))
    target = registry.entry(name).target
    if not isinstance(target, str):
        return None
    ours, own = source_stamp("augmenters", "models", "bench.learning", "bench.registry"), target.partition(":")[0]
    if own.partition(".")[0] in ROOMS:
        return ours
    beyond = module_stamp(own)
    return None if ours is None or beyond is None else f"{ours}{beyond}"
