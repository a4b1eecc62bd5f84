"""What reads files and words from outside, each as a function of bytes: it ends well, or with the documented error.

Shared by the tests with generated cases and by the coverage-guided fuzzer (`fuzz_guided.py`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.plan.cells import Cell
from bench.protocol.training import Training
from bench.registry import UserError

LABELS = [number % 2 for number in range(40)]
TU_KINDS = ("A", "graph_indicator", "graph_labels", "node_labels")


@contextmanager
def documented() -> Iterator[None]:
    """Nothing but one clear line may come out."""
    try:
        yield
    except UserError as error:
        assert str(error).isprintable() and str(error).strip(), repr(str(error))


def setting_string(text: str) -> None:
    """`name:key=value,...`; what is understood means the same when its label is read again."""
    from augmenters import AUGMENTERS
    from bench.datasets import DATASETS
    from models import BACKBONES, READOUTS

    for registry in (AUGMENTERS, BACKBONES, READOUTS, DATASETS):
        with documented():
            choice = registry.resolve(text)
            assert registry.resolve(choice.label) == choice


def dataset_string(text: str, root: Path) -> None:
    from bench.datasets import resolve_dataset

    with documented():
        choice = resolve_dataset(text, root)
        assert resolve_dataset(choice.label, root) == choice


def grid_file(content: bytes, folder: Path) -> None:
    from bench.plan.grid_files import read_grid

    path = folder / "fuzz.toml"
    path.write_bytes(content)
    with documented():
        assert len(read_grid(path, folder / "no data").cells) > 0


def ledger_file(content: bytes, folder: Path) -> None:
    """Read as the harness reads it and as the tables do; cells come back from their lines."""
    from bench.results.frame import from_records
    from bench.results.ledger import LedgerState, read_records

    path = folder / "ledger.jsonl"
    path.write_bytes(content)
    with documented():
        state = LedgerState.of(read_records(path))
        state.planned()
        for key in state.cells:
            assert state.cells[key].label and not state.done(key) & set(state.failed(key))
    with documented():
        from_records(read_records(path)).tidy()


def split_file(content: bytes, folder: Path) -> None:
    from bench.protocol.splits import read_splits

    path = folder / "TINY_splits.json"
    path.write_bytes(content)
    for size in (None, len(LABELS)):
        with documented():
            splits = read_splits(path, "TINY", "MINE", size)
            tested = sorted(int(i) for fold in range(10) for i in splits.test(fold))
            assert tested == list(range(len(tested)))


def tu_files(texts: Mapping[str, bytes], folder: Path) -> None:
    """The text files of a set, put into the data root by hand."""
    from bench.datasets.loading import forget_loaded, load_dataset

    raw = folder / "tu" / "SET" / "raw"
    shutil.rmtree(raw.parent, ignore_errors=True)
    raw.mkdir(parents=True)
    for kind, content in texts.items():
        (raw / f"SET_{kind}.txt").write_bytes(content)
    forget_loaded()
    with documented():
        data = load_dataset("tu:name=SET", folder)
        assert len(data.graphs) == len(data.labels) and data.num_classes > 1
        for graph in data.graphs:
            assert not graph.num_edges or 0 <= int(graph.edge_index.min()) <= int(graph.edge_index.max())
            assert not graph.num_edges or int(graph.edge_index.max()) < graph.num_nodes


def archive(content: bytes, folder: Path) -> None:
    """A zip archive; whatever it holds, files appear below the folder alone."""
    from bench.datasets.archives import unpack

    path, target = folder / "any.zip", folder / "staging" / "deep"
    path.write_bytes(content)
    shutil.rmtree(target.parent, ignore_errors=True)
    target.mkdir(parents=True)
    with documented():
        name = unpack(path, target)
        assert (target / name / "raw" / f"{name}_A.txt").is_file()
    assert [p.name for p in target.parent.iterdir()] == ["deep"]


def results_file(content: bytes, folder: Path) -> None:
    """What `bench tables --from FILE.parquet` reads."""
    from bench.results.archive import read_archive
    from bench.results.frame import from_records
    from tables.selection import Index

    path = folder / "results.parquet"
    path.write_bytes(content)
    with documented():
        Index(from_records(read_archive(path))).results.tidy()


def split_content() -> list[dict[str, Any]]:
    """Valid folds of 40 graphs in Errica et al.'s layout."""
    from bench.protocol.splits import stratified_splits

    own = stratified_splits("TINY", LABELS)
    parts = [(own.development(fold), own.test(fold).tolist()) for fold in range(10)]
    return [
        {"test": test, "model_selection": [{"train": part.train.tolist(), "validation": part.validation.tolist()}]}
        for part, test in parts
    ]


def tu_texts(graphs: int = 20) -> dict[str, bytes]:
    """A valid set: paths of three nodes, every other one closed to a triangle."""
    edges = [f"{a}, {a + 1}\n{a + 1}, {a + 2}\n" for a in range(1, 3 * graphs, 3)]
    edges += [f"{a}, {a + 2}\n" for a in range(1, 3 * graphs, 6)]
    return {
        "A": "".join(edges).encode(),
        "graph_indicator": b"".join(b"%d\n" % (1 + n // 3) for n in range(3 * graphs)),
        "graph_labels": b"".join(b"%d\n" % (n % 2) for n in range(graphs)),
        "node_labels": b"".join(b"%d\n" % (n % 3) for n in range(3 * graphs)),
    }


def ledger_records() -> list[dict[str, Any]]:
    """A small valid ledger."""
    choice = {"name": "none", "settings": {}, "label": "none"}
    training = asdict(Training())
    cell: dict[str, Any] = {
        "type": "cell",
        "dataset": "digits",
        "features": "native",
        "splits": "stratified",
        "k": 2,
        "learner": {**choice, "name": "gnn", "label": "gnn"},
        "augmenter": choice,
        "backbone": {**choice, "name": "gcn", "label": "gcn"},
        "readout": {**choice, "name": "mean", "label": "mean"},
        "training": training,
        "tuned": False,
        "versions": {"protocol": 1},
    }
    key = cell["key"] = Cell.from_json(cell).key
    trial = {
        "type": "trial",
        "cell": key,
        "fold": 0,
        "repeat": 0,
        "status": "done",
        "reason": None,
        "accuracy": 0.5,
        "balanced_accuracy": 0.5,
        "macro_f1": 0.5,
        "loss": 1.0,
        "labels": 4,
        "seconds": {"augment": 0.0, "train": 1.0, "evaluate": 0.1},
        "generated": {},
        "finished": "2026-01-01T00:00:00+00:00",
        "provenance": "p0",
    }
    plan = {"type": "plan", "grid": "custom", "cells": [key], "folds": [0, 1], "repeats": [0], "skipped": []}
    return [
        {"type": "provenance", "id": "p0", "augbench": "0"},
        cell,
        plan | {"at": "2026-01-01T00:00:00+00:00"},
        trial,
    ]


def keyed(records: list[Any]) -> list[Any]:
    """The same with the keys that their cells have now: what was changed in a cell goes past the check of its key."""
    keys = {}
    for record in records:
        with suppress(Exception):  # no cell, or one that has no key
            keys[record["key"]] = Cell.from_json(record).key
    text = json.dumps(records)
    for before, after in keys.items():
        text = text.replace(json.dumps(before), json.dumps(after))
    found: list[Any] = json.loads(text)
    return found


def ledger_lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


# By name, for the guided fuzzer: each takes any bytes and a folder of its own.
OF_BYTES: dict[str, Callable[[bytes, Path], None]] = {
    "settings": lambda content, folder: setting_string(content.decode("utf-8", "surrogateescape")),
    "grid": grid_file,
    "ledger": ledger_file,
    "splits": split_file,
    "tu": lambda content, folder: tu_files(dict(zip(TU_KINDS, content.split(b"\0"), strict=False)), folder),
    "archive": archive,
    "parquet": results_file,
}
