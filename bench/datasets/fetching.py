"""Downloading on the user's machine: TU archives with PyG's own downloader, splits from their authors' repository."""

from __future__ import annotations

import ipaddress
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from bench.datasets.archives import unpack
from bench.datasets.importing import CHECKSUMS, Brought, bring_dataset, bring_splits
from bench.datasets.loading import cheap_info
from bench.registry import UserError
from bench.splits import split_file

# A whole hash, which a server resolves where it may not know a shortened one; the files are guarded by their checksums.
_COMMIT = "097d0a2c172149075e40ece474c30c222526dbcb"
SPLITS_URL = f"https://raw.githubusercontent.com/diningphil/gnn-comparison/{_COMMIT}/data_splits"
CONNECT_SECONDS, SILENCE_SECONDS, TOTAL_SECONDS = 15.0, 60.0, 3600.0


def fetch(
    name: str, root: Path, tu_url: str | None = None, splits_url: str | None = None, silence: float = SILENCE_SECONDS
) -> Iterator[Brought]:
    """Download a TU set and its published splits; what is there already is left alone."""
    if cheap_info(name, root).present:
        yield Brought(name, "unchanged", "already there")
    else:
        with tempfile.TemporaryDirectory(prefix="augbench-") as temporary:
            archive = Path(temporary) / f"{name}.zip"
            _download(f"{(tu_url or _collection_url()).rstrip('/')}/{quote(name)}.zip", archive, silence)
            yield bring_dataset(root, lambda staging: unpack(archive, staging), expected=name)
    for family, dataset in CHECKSUMS:
        if dataset == name:
            yield _fetch_splits(family, dataset, root, splits_url or SPLITS_URL, silence)


def _fetch_splits(family: str, dataset: str, root: Path, base: str, silence: float) -> Brought:
    place = split_file(root, family, dataset)
    if place.is_file():
        return bring_splits(place, root, family)
    with tempfile.TemporaryDirectory(prefix="augbench-") as temporary:
        target = Path(temporary) / place.name
        _download(f"{base.rstrip('/')}/{family}/{quote(place.name)}", target, silence)
        return bring_splits(target, root, family)


def _collection_url() -> str:
    from torch_geometric.datasets import TUDataset

    return str(TUDataset.url)


def _download(url: str, target: Path, silence: float) -> None:
    """Copy a URL to a file with PyG's downloader, which has no limits of its own; one clear line if that fails."""
    _check_url(url)
    import aiohttp
    from torch_geometric.io import fs

    try:
        with _limits(silence):
            fs.cp(url, str(target), log=False)
    except FileNotFoundError as error:
        raise UserError(
            f"{url} does not exist; check the name, or get the file and `bench data import PATH`"
        ) from error
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise UserError(
            f"could not download {url} ({reason}); check the connection, "
            "or get the file on another machine and run `bench data import PATH`"
        ) from error


@contextmanager
def _limits(silence: float) -> Iterator[None]:
    """Time limits for downloads, and the proxy of the environment."""
    import aiohttp
    import fsspec.config

    timeout = aiohttp.ClientTimeout(total=TOTAL_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=silence)
    before = fsspec.config.conf.get("http")
    fsspec.config.conf["http"] = {"client_kwargs": {"timeout": timeout, "trust_env": True}}
    try:
        yield
    finally:
        if before is None:
            del fsspec.config.conf["http"]
        else:
            fsspec.config.conf["http"] = before


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname and _is_this_machine(parts.hostname):
        return
    raise UserError(f"{url} is not an https address; give one that starts with https://")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
