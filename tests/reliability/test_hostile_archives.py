"""Archives, caches and files that were made to do harm: refused in one line, within bounded memory, nothing run."""

from __future__ import annotations

import bz2
import os
import pickle
import stat
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.datasets import load_dataset
from bench.datasets.importing import import_path
from bench.datasets.loading import forget_loaded
from bench.datasets.tu import read_graphs
from bench.registry import UserError

ROOT = Path(__file__).resolve().parents[2]
GIB = 2**30


class Bad:
    """Leaves a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.mark}'",)


@pytest.mark.parametrize("file", ["data.pt", "pre_transform.pt", "pre_filter.pt"])
@pytest.mark.parametrize("plain", [False, True])
def test_a_planted_pickle_is_not_run(file: str, plain: bool, tiny_root: Path, tmp_path: Path) -> None:
    """PyG itself loads these three with pickle, or falls back to it: whoever gives away a data root could run code."""
    folder, mark = tiny_root / "tu" / "TINY", tmp_path / "mark"
    planted = folder / "processed" / file
    if plain:
        planted.write_bytes(pickle.dumps(Bad(mark)))
    else:
        torch.save(Bad(mark), planted)
    newest = max(path.stat().st_mtime for path in folder.rglob("*")) + 5
    for path in (folder / "processed").iterdir():
        os.utime(path, (newest, newest))
    forget_loaded()
    assert len(load_dataset("TINY", tiny_root).graphs) == 40
    assert len(read_graphs(folder)) == 40
    assert not mark.exists()
    with pytest.raises(UserError):  # the mark is real: a reader that unpickles leaves it
        pickle.loads(pickle.dumps(Bad(mark)))
        raise UserError("unpickled") if mark.exists() else AssertionError("the pickle does nothing")


def test_a_kept_reading_whose_edges_lead_elsewhere_is_read_anew(tiny_root: Path) -> None:
    path = tiny_root / "tu" / "TINY" / "processed" / "data.pt"
    data, *rest = torch.load(path, weights_only=True)
    data["edge_index"][0, 0] = 10**6
    torch.save((data, *rest), path)
    os.utime(path.with_name("pre_filter.pt"))
    graphs = read_graphs(tiny_root / "tu" / "TINY")
    assert max(int(graph.edge_index.max()) for graph in graphs) == 2


def test_a_link_in_place_of_the_kept_reading_is_not_followed(tiny_root: Path, tmp_path: Path) -> None:
    elsewhere, place = tmp_path / "elsewhere", tiny_root / "tu" / "TINY" / "processed"
    elsewhere.mkdir()
    (elsewhere / "keep.txt").write_text("mine")
    for path in place.iterdir():
        path.unlink()
    place.rmdir()
    place.symlink_to(elsewhere, target_is_directory=True)
    assert len(read_graphs(place.parent)) == 40
    assert [path.name for path in elsewhere.iterdir()] == ["keep.txt"]


@pytest.mark.parametrize("where", ["link", "device", "pipe"])
@pytest.mark.parametrize("member", ["TINY/TINY_A.txt", "TINY/extra"])
def test_links_and_devices_are_refused(
    where: str, member: str, tmp_data_root: Path, write_archive: Callable[..., Path], tiny_files: Callable[..., Any]
) -> None:
    files = {kind: text for kind, text in tiny_files().items() if f"TINY/TINY_{kind}.txt" != member}
    archive = write_archive(files=files)
    special = zipfile.ZipInfo(member)
    mode = {"link": stat.S_IFLNK, "device": stat.S_IFBLK, "pipe": stat.S_IFIFO}[where]
    special.external_attr = (mode | 0o777) << 16
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr(special, "/etc/passwd")
    with pytest.raises(UserError, match="a link or device"):
        import_path(archive, tmp_data_root)


@pytest.mark.parametrize(("header", "flags_at"), [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)], ids=["member", "directory"])
def test_a_name_that_is_not_the_utf_8_it_claims_to_be_is_told(
    header: bytes, flags_at: int, tmp_data_root: Path, write_archive: Callable[..., Path]
) -> None:
    archive = write_archive()
    raw = bytearray(archive.read_bytes())
    start = raw.index(header)
    raw[start + flags_at + 1] |= 0x08
    name = raw.index(b"TINY", start)
    raw[name] = 0xE4
    archive.write_bytes(raw)
    with pytest.raises(UserError, match=r"is not a complete zip archive .* get another copy"):
        import_path(archive, tmp_data_root)


def in_a_small_process(program: str, *words: str, memory: int = 3 * GIB) -> subprocess.CompletedProcess[str]:
    """Run a program that may not take more memory than that; importing torch alone takes a good part of it."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))\n"
    return subprocess.run(
        [sys.executable, "-c", limit + program, *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


IMPORT = """
import sys
from pathlib import Path
from bench.datasets.importing import import_path
from bench.registry import UserError
try:
    import_path(Path(sys.argv[1]), Path(sys.argv[2]))
except UserError as error:
    print("refused:", error)
"""


def raw_zip(path: Path, name: str, packed: bytes, method: int, claimed: int) -> None:
    """A zip archive of one member whose headers say what they like."""
    raw = name.encode()
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, method, 0, 0, 0, len(packed), claimed, len(raw), 0)
    central = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, method, 0, 0, 0, len(packed), claimed, len(raw), 0, 0, 0, 0, 0, 0
    )
    body = local + raw + packed
    directory = central + raw
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(directory), len(body), 0)
    path.write_bytes(body + directory + end)


def test_a_billionfold_expansion_takes_no_memory(tmp_path: Path) -> None:
    """A few bytes of bzip2 that unpack to 256 MiB, and could to any number, behind headers that speak of six bytes."""
    packer = bz2.BZ2Compressor(9)
    packed = b"".join(packer.compress(bytes(2**24)) for _ in range(16)) + packer.flush()
    archive = tmp_path / "BOMB.zip"
    raw_zip(archive, "BOMB/BOMB_A.txt", packed, zipfile.ZIP_BZIP2, 6)
    assert archive.stat().st_size < 1000
    done = in_a_small_process(IMPORT, str(archive), str(tmp_path / "data"), memory=GIB)
    assert "with an unsupported compression" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("claimed", [2**32 - 2, 10])
def test_a_deflated_bomb_takes_no_memory_whatever_its_headers_say(claimed: int, tmp_path: Path) -> None:
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(b"1, 2\n" * 2**22) for _ in range(30)) + packer.flush()
    archive = tmp_path / "BOMB.zip"
    raw_zip(archive, "BOMB/BOMB_A.txt", packed, zipfile.ZIP_DEFLATED, claimed)
    done = in_a_small_process(IMPORT, str(archive), str(tmp_path / "data"), memory=GIB)
    assert done.stdout.startswith("refused:") and done.stdout.count("\n") == 1, done.stdout + done.stderr
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_a_parquet_file_of_endless_rows_takes_no_memory(tmp_path: Path) -> None:
    """A value that is repeated takes no room in the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"cell": pa.array([7] * 1_000_000, pa.int8())})
    path = tmp_path / "bomb.parquet"
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(50):
            writer.write_table(table)
    assert path.stat().st_size < 500_000
    program = (
        "import sys\nfrom pathlib import Path\nfrom bench.results.archive import read_archive\n"
        "from bench.registry import UserError\n"
        "try:\n    read_archive(Path(sys.argv[1]))\nexcept UserError as error:\n    print('refused:', error)"
    )
    done = in_a_small_process(program, str(path))
    assert "refused:" in done.stdout and "50000000 rows" in done.stdout, done.stdout + done.stderr


def test_an_arrow_type_that_asks_to_be_unpickled_is_not(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bench.results.archive import read_archive

    mark = tmp_path / "mark"
    field = pa.field(
        "cell",
        pa.string(),
        metadata={
            b"ARROW:extension:name": b"arrow.py_extension_type",
            b"ARROW:extension:metadata": pickle.dumps(Bad(mark)),
        },
    )
    pq.write_table(pa.table([pa.array(["a"])], schema=pa.schema([field])), tmp_path / "bad.parquet")
    with pytest.raises(UserError, match="not a file of trials"):
        read_archive(tmp_path / "bad.parquet")
    assert not mark.exists()
