"""Sets of the TU collection (Morris et al., 2020), read by PyG from the data root and never downloaded here."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.datasets.base import Dataset, DatasetInfo
from bench.datasets.catalogue import PAPER_SETS
from bench.datasets.tu_files import is_complete, summary, validate
from bench.paths import plain_name, tu_file, tu_folder
from bench.registry import UserError

if TYPE_CHECKING:
    from torch_geometric.data import Data


_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)  # a data root that is shared and cannot be written to


class TUCollection(Dataset):
    """One set by its name in the collection; features are one-hot node labels where there are some."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def info(self, root: Path) -> DatasetInfo:
        raw = tu_folder(root, self.name) / "raw"
        if not is_complete(raw, self.name):
            return DatasetInfo(self.name, False, PAPER_SETS.get(self.name))
        return DatasetInfo(self.name, True, tu_file(raw, self.name, "node_labels").is_file(), *summary(raw, self.name))

    def load(self, root: Path) -> Sequence[Data]:
        folder = tu_folder(root, plain_name(self.name, "dataset"))
        if not is_complete(folder / "raw", self.name):
            raise UserError(
                f"{self.name} is not in the data root {root}; run `bench data fetch {self.name}`, "
                f"or `bench data import PATH` with a copy of {self.name}.zip"
            )
        return read_graphs(folder)


def read_graphs(folder: Path) -> list[Data]:
    """The graphs of a set's folder. PyG's reading of the text is kept in `processed`, made anew when it is older."""
    from filelock import FileLock

    if is_processed(folder):
        return _read(folder, folder / "processed")
    validate(folder / "raw", folder.name)
    try:
        with FileLock(folder.parent / f".{folder.name}.lock"):
            if not is_processed(folder):  # another process may have done it meanwhile
                shutil.rmtree(folder / "processed", ignore_errors=True)
            return _read(folder, folder / "processed")
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        with tempfile.TemporaryDirectory(prefix="augbench-") as temporary:
            return _read(folder, Path(temporary))


def is_processed(folder: Path) -> bool:
    last_written = folder / "processed" / "pre_filter.pt"  # PyG writes it after the data: a sign that it got there
    if not last_written.is_file():
        return False
    made = last_written.stat().st_mtime_ns
    return all(path.stat().st_mtime_ns <= made for path in (folder / "raw").glob(f"{folder.name}_*.txt"))


def _read(folder: Path, processed: Path) -> list[Data]:
    import torch
    from torch_geometric.datasets import TUDataset

    class LocalSet(TUDataset):
        log = property(lambda self: False, lambda self, value: None)  # PyG would speak of processing on stderr

        @property
        def processed_dir(self) -> str:
            return str(processed)

        def download(self) -> None:
            raise UserError(f"{folder.name} is incomplete in {folder.parent}; import or fetch it again")

    found = LocalSet(str(folder.parent), folder.name, use_node_attr=False, use_edge_attr=False)
    ends = found.slices["edge_index"]
    # PyG's reader counts edges up to the last graph that has one; the others have none.
    missing = len(found.slices["y"]) - len(ends)
    found.slices["edge_index"] = torch.cat([ends, ends[-1:].expand(missing)])
    graphs = [found[number] for number in range(len(found))]
    if graphs[0].y.is_floating_point():
        raise UserError(f"{folder.name} has graph_attributes, a regression set; give a classification set")
    return graphs
