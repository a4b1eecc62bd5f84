"""Extract a TU dataset from an untrusted archive or folder."""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from functools import partial
from pathlib import Path, PurePosixPath

from bench.datasets.paths import plain_name, tu_file
from bench.datasets.tu_files import USED, normalized
from bench.registry import UserError

LARGEST = 4 * 2**30  # bytes of text; the largest dataset of the collection has about a quarter of this
_SUSPICIOUS_RATIO = 200  # the archives of the collection shrink by a factor of 5 to 20
_PIECE = 2**20  # bytes unpacked at a time
_SMALL = 2**24  # below this size, the ratio is meaningless


def unpack(archive: Path, target: Path) -> str:
    """Write the text files that are used from `NAME.zip` to `target/NAME/raw` and return NAME."""
    try:
        with zipfile.ZipFile(archive) as opened:
            name, members = _used_members(archive, opened)
            raw = target / name / "raw"
            raw.mkdir(parents=True)
            for kind, member in members.items():
                content = _content(archive, opened, member)
                tu_file(raw, name, kind).write_bytes(normalized(content))
    except (zipfile.BadZipFile, NotImplementedError, OverflowError, UnicodeDecodeError, struct.error) as error:
        raise _not_whole(archive, error) from error
    return name


def _content(archive: Path, opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    try:
        with opened.open(member) as stream:  # unpacked in pieces: the headers may understate the size
            return b"".join(iter(partial(stream.read, _PIECE), b""))
    except (zlib.error, EOFError, OSError, RuntimeError) as error:  # the remaining errors concern the whole archive
        raise _not_whole(archive, error) from error


def _not_whole(archive: Path, error: Exception) -> UserError:
    return UserError(f"{archive} is not a complete zip archive ({error}); get another copy")


def copy_folder(folder: Path, target: Path) -> str:
    """The same for a folder that contains the text files, or a folder `raw` with them."""
    raw_source, name = find_tu_folder(folder) or (None, "")
    if raw_source is None:
        raise UserError(f"{folder} contains no NAME_A.txt; give a folder in TU layout")
    sources = {kind: tu_file(raw_source, name, kind) for kind in USED}
    present = {kind: path for kind, path in sources.items() if path.is_file()}
    _check_size(folder, sum(path.stat().st_size for path in present.values()))
    raw = target / name / "raw"
    raw.mkdir(parents=True)
    for kind, path in present.items():
        tu_file(raw, name, kind).write_bytes(normalized(path.read_bytes()))
    return name


def find_tu_folder(folder: Path) -> tuple[Path, str] | None:
    """The location of the text files at or below this folder, and the name of the dataset; None if there are none."""
    for candidate in (folder, folder / "raw"):
        heads = sorted(candidate.glob("*_A.txt"))
        if len(heads) > 1:
            raise UserError(
                f"{candidate} contains several datasets ({', '.join(h.name for h in heads)}); use a folder for each"
            )
        if heads:
            return candidate, plain_name(heads[0].name.removesuffix("_A.txt"), "dataset")
    return None


def _used_members(archive: Path, opened: zipfile.ZipFile) -> tuple[str, dict[str, zipfile.ZipInfo]]:
    members = opened.infolist()
    for member in members:
        _check_member(archive, member)
    heads = [m for m in members if m.filename.endswith("_A.txt") and not m.filename.startswith("__MACOSX/")]
    names = [PurePosixPath(m.filename).name.removesuffix("_A.txt") for m in heads]
    if len(names) != 1 or heads[0].filename != f"{names[0]}/{names[0]}_A.txt":
        raise UserError(f"{archive} is not an archive of one TU dataset; it should contain NAME/NAME_A.txt and so on")
    name = plain_name(names[0], "dataset")
    wanted = {f"{name}/{name}_{kind}.txt": kind for kind in USED}
    used: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        kind = wanted.get(member.filename)
        if kind in used:
            raise UserError(f"{archive} contains {member.filename} twice; get another copy")
        if kind is not None:
            used[kind] = member
    size = sum(m.file_size for m in used.values())
    _check_size(archive, size)
    if size > _SMALL and size > _SUSPICIOUS_RATIO * sum(m.compress_size for m in used.values()):
        raise UserError(f"{archive} would grow more than {_SUSPICIOUS_RATIO} times to {size} bytes; get another copy")
    return name, used


def _check_member(archive: Path, member: zipfile.ZipInfo) -> None:
    # `orig_filename` is the name before the zip module cleans it up.
    path = PurePosixPath(member.orig_filename.replace("\\", "/"))
    outside = path.is_absolute() or ".." in path.parts or ":" in member.orig_filename
    if outside or "\0" in member.orig_filename:
        raise UserError(f"{archive} contains the unsafe path {member.orig_filename!r}; nothing was extracted")
    # zipfile unpacks only these two methods piece by piece; a few bytes of the others could fill the memory.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UserError(
            f"{archive} contains {member.filename!r} with an unsupported compression; pack it again with plain zip"
        )
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UserError(f"{archive} contains {member.filename!r}, a link or device; nothing was extracted")


def _check_size(source: Path, size: int) -> None:
    if size > LARGEST:
        raise UserError(f"{source} would take {size} bytes, more than the limit of {LARGEST}; import a part of it")
