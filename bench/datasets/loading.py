"""From a dataset's name to a dataset in memory, once per process."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

from bench.datasets.base import Dataset, DatasetInfo, GraphSet
from bench.datasets.catalogue import DATASETS, OTHER_TU_SETS
from bench.datasets.paths import plain_name
from bench.datasets.stored import StoredGraphs, stored_names
from bench.registry import Choice, UserError, split_spec, unknown

_loaded: dict[tuple[str, Path], tuple[Hashable, GraphSet]] = {}


def resolve_dataset(spec: str, root: Path) -> Choice:
    """The dataset for a name; its label does not depend on the spelling (`MUTAG` or `tu:name=MUTAG`)."""
    name, settings = split_spec(spec)
    registered = DATASETS.entries()
    if name not in registered and ":" not in name:
        others = OTHER_TU_SETS | present_tu_sets(root) | stored_names(root)
        if name not in others:
            raise unknown("dataset", name, {*registered, *others})
        if settings:
            raise UserError(f"{name} has no setting '{next(iter(settings))}'. It takes: no settings")
        return Choice(name, {}, name)
    choice = DATASETS.resolve(spec)
    if choice.name != "tu":
        return choice
    bare = str(choice.settings["name"])
    if not bare:
        raise UserError("tu needs the name of a dataset; write tu:name=MUTAG")
    return Choice(plain_name(bare, "dataset"), {}, bare)


def present_tu_sets(root: Path) -> set[str]:
    """The names of the TU datasets in the data root."""
    return {path.parent.parent.name for path in (root / "tu").glob("[!.]*/raw/*_A.txt")}


def cheap_info(spec: str, root: Path) -> DatasetInfo:
    """What planning needs to know about a dataset, without loading it."""
    return _make(resolve_dataset(spec, root), root).info(root)


def load_dataset(spec: str, root: Path) -> GraphSet:
    """A dataset in memory, read from the data root or generated, never downloaded.

    It is loaded once per process, and again when its files change.
    """
    choice = resolve_dataset(spec, root)
    key, dataset = (choice.label, root), _make(choice, root)
    state = dataset.state(root)
    if key not in _loaded or _loaded[key][0] != state:
        _loaded[key] = state, _load(dataset, choice.label, root)
    return _loaded[key][1]


def _load(dataset: Dataset, name: str, root: Path) -> GraphSet:
    """Load the stored version (mapped into memory); otherwise read, clean and store the dataset."""
    return dataset.kept(root) or dataset.keep(root, GraphSet.from_graphs(name, dataset.load(root)))


def own_folds(spec: str, root: Path) -> Sequence[Sequence[Sequence[int]]] | None:
    """The folds that the dataset defines, if any."""
    return _make(resolve_dataset(spec, root), root).folds(root)


def is_weighted(spec: str, root: Path) -> bool:
    """Whether a dataset's edges have weights; only third-party datasets have to be loaded to find out."""
    known = cheap_info(spec, root).weighted
    return load_dataset(spec, root).weighted if known is None else known


def forget_loaded() -> None:
    """Discard what this process has loaded, after the files have changed."""
    _loaded.clear()


def _make(choice: Choice, root: Path) -> Dataset:
    if choice.name in DATASETS.entries() or ":" in choice.name:
        dataset: Dataset = DATASETS.create(choice)
        return dataset
    if choice.name in stored_names(root):
        return StoredGraphs(choice.name)
    from bench.datasets.tu import TUCollection

    return TUCollection(choice.name)
