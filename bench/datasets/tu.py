"""Datasets of the TU collection (Morris et al., 2020), read by PyG from the data root; never downloaded here."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.datasets.base import Dataset, DatasetInfo, GraphSet
from bench.datasets.catalogue import PAPER_SETS
from bench.datasets.notes import kept_note, new_note, raw_files, raw_states, stamp_of, write_note
from bench.datasets.paths import plain_name, tu_file, tu_folder
from bench.datasets.tu_files import is_complete, summary, validate
from bench.registry import UserError
from bench.temporary import scratch_folder

if TYPE_CHECKING:
    from torch_geometric.data import Data


_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)  # a shared, read-only data root


class TUCollection(Dataset):
    """A dataset by its name in the collection; features are one-hot node labels if there are any."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def info(self, root: Path) -> DatasetInfo:
        raw = tu_folder(root, self.name) / "raw"
        if not is_complete(raw, self.name):
            return DatasetInfo(self.name, False, PAPER_SETS.get(self.name), weighted=False)
        labels = tu_file(raw, self.name, "node_labels").is_file()
        return DatasetInfo(self.name, True, labels, *summary(raw, self.name), weighted=False)

    def load(self, root: Path) -> Sequence[Data]:
        folder = tu_folder(root, plain_name(self.name, "dataset"))
        if not is_complete(folder / "raw", self.name):
            raise UserError(
                f"{self.name} is not in the data root {root}; run `bench data fetch {self.name}`, "
                f"or `bench data import PATH` with a copy of {self.name}.zip"
            )
        return read_graphs(folder)

    def kept(self, root: Path) -> GraphSet | None:
        from bench.datasets.kept import kept_set

        return kept_set(tu_folder(root, plain_name(self.name, "dataset")), self.name)

    def keep(self, root: Path, data: GraphSet) -> GraphSet:
        from bench.datasets.kept import keep_set

        return keep_set(tu_folder(root, plain_name(self.name, "dataset")), data)

    def state(self, root: Path) -> Hashable:
        files = raw_files(tu_folder(root, plain_name(self.name, "dataset")))
        try:
            return tuple((name, stamp_of(path)) for name, path in files.items())
        except OSError:  # it is being replaced: loaded again next time
            return None


def read_graphs(folder: Path) -> list[Data]:
    """The graphs of a dataset's folder. PyG's parsed copy is kept in `processed` as long as it matches the text."""
    from filelock import FileLock

    kept = _kept(folder)
    if kept is not None:
        return kept
    validate(folder / "raw", folder.name)
    try:
        with FileLock(folder.parent / f".{folder.name}.lock"):
            return _kept(folder) or _keep(folder)  # another process may have created it meanwhile
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        with scratch_folder("augbench") as temporary:
            return _make(folder, temporary)


def _kept(folder: Path) -> list[Data] | None:
    """The stored parsed copy; None if there is none or it does not match, in which case the text is parsed."""
    if kept_note(folder) is None:
        return None
    try:
        return _load(folder / "processed")
    except (ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError):
        return None
    except pickle.UnpicklingError:  # also raised for files that would run code: a data root may come from anywhere
        return None


def _keep(folder: Path) -> list[Data]:
    """Parse the text and move the result into place atomically."""
    place = folder / "processed"
    with scratch_folder(f".{folder.name}", folder.parent) as temporary:
        made = temporary / "processed"
        at, raw = time.time_ns(), raw_states(folder)
        graphs = _make(folder, made)
        write_note(new_note(raw, made, at), made)
        if place.is_symlink():
            place.unlink()
        shutil.rmtree(place, ignore_errors=True)
        os.rename(made, place)
    return graphs


def _make(folder: Path, processed: Path) -> list[Data]:
    """Let PyG parse the text files and write the result to an empty folder of our own."""
    from torch_geometric.datasets import TUDataset

    class LocalSet(TUDataset):
        log = property(lambda self: False, lambda self, value: None)  # keeps PyG from reporting progress on stderr

        @property
        def processed_dir(self) -> str:
            return str(processed)

        def download(self) -> None:
            raise UserError(f"{folder.name} is incomplete in {folder.parent}; import or fetch it again")

    try:
        LocalSet(str(folder.parent), folder.name)
        graphs = _load(processed)
    except UserError:
        raise
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{folder.name} cannot be read by PyG ({type(error).__name__}: {reason}); "
            f"check the files in {folder / 'raw'}, or get another copy"
        ) from error
    if graphs[0].y.is_floating_point():
        raise UserError(f"{folder.name} has graph_attributes and is a regression dataset; use a classification dataset")
    return graphs


def _load(processed: Path) -> list[Data]:
    """Load what PyG wrote, without PyG's fallback to a loader that can run code from the file."""
    import torch
    import torch_geometric.data  # noqa: F401  registers its classes with torch as safe to load

    data, slices, sizes, *_ = torch.load(processed / "data.pt", weights_only=True)
    return _separated(data, slices, sizes)


def _separated(data: Mapping[str, Any], slices: Mapping[str, Any], sizes: Mapping[str, int]) -> list[Data]:
    """Split into graphs, with checks: an invalid index would read foreign memory."""
    import torch
    from torch_geometric.data import Data

    y, edges, x = data["y"], data["edge_index"], data.get("x")
    nodes = torch.tensor(data["_num_nodes"]) if x is None else slices["x"].diff()
    ends = slices["edge_index"]
    # PyG's reader counts edges only up to the last graph that has any.
    ends = torch.cat([ends, ends[-1:].expand(len(y) + 1 - len(ends))])
    whole = len(nodes) == len(y) == len(ends) - 1 > 0 and int(nodes.min()) >= 0 and edges.dtype == torch.long
    counts = ends.diff()
    if not whole or int(ends[0]) or int(counts.min()) < 0 or edges.shape != (2, int(ends[-1])):
        raise ValueError("the parts have other lengths than the graphs")
    if torch.any(edges < 0) or torch.any(edges >= nodes.repeat_interleave(counts)):
        raise ValueError("an edge leads to a node that is not there")
    each_x: Sequence[Any] = [None] * len(y)
    if x is not None:
        each_x = x[:, sizes["num_node_attributes"] :].split(nodes.tolist())  # only node labels are part of the protocol
    each_edges = edges.split(counts.tolist(), dim=1)
    return [
        Data(x=part, edge_index=own, y=label, num_nodes=count)
        for part, own, label, count in zip(each_x, each_edges, y.split(1), nodes.tolist(), strict=True)
    ]
