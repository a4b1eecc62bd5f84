"""Download data over HTTPS: TU archives from PyG's address, splits from their authors' repository.

Downloads are limited in time and size, verified by checksum, and moved into place atomically.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit

from bench.datasets.archives import unpack
from bench.datasets.importing import CHECKSUMS, Brought, bring_dataset, bring_splits
from bench.datasets.loading import cheap_info
from bench.datasets.split_files import split_file
from bench.datasets.tu_files import digest
from bench.registry import UserError
from bench.temporary import scratch_folder

if TYPE_CHECKING:
    import aiohttp

# A full commit hash, since a server may not resolve an abbreviated one; the files are protected by their checksums.
_COMMIT = "097d0a2c172149075e40ece474c30c222526dbcb"
SPLITS_URL = f"https://raw.githubusercontent.com/diningphil/gnn-comparison/{_COMMIT}/data_splits"
CONNECT_SECONDS, SILENCE_SECONDS, TOTAL_SECONDS = 15.0, 60.0, 3600.0
LARGEST_DOWNLOAD = 2**30  # bytes; two hundred times the size of the paper's largest dataset
_REDIRECTS = 5
_CHUNK = 2**18

# sha256 of the content of the files (`tu_files.digest`): the collection publishes no checksums of its archives.
TU_CHECKSUMS = {
    "PROTEINS": "3c3e6174bbfd1406a7eb57f0811fb9a64a091bcaea49c3f0696d82031b67aaa4",
    "NCI1": "29847ea310aa72398201f5949abcc518d7380018eabfc577686f04f12cafbf2c",
    "DD": "47ba54cd29cbcc085380078c3b693628e1e6ba2ccb4af41c53fca16f6447564d",
    "IMDB-BINARY": "3233b0bbe569664578bcf45c07b08facb6889f8927946116cbf6255cfb1eeb2b",
    "IMDB-MULTI": "3379dd99a993514ffc0c3e002091b75663a24843dc4b12c2f5f5e090285e3327",
}


def fetch(
    name: str, root: Path, tu_url: str | None = None, splits_url: str | None = None, silence: float = SILENCE_SECONDS
) -> Iterator[Brought]:
    """Download a TU dataset and its published splits; existing files are not touched."""
    if cheap_info(name, root).present:
        yield Brought(name, "unchanged", "already there")
    else:
        with scratch_folder("augbench") as temporary:
            archive = temporary / f"{name}.zip"
            _download(f"{(tu_url or _collection_url()).rstrip('/')}/{quote(name)}.zip", archive, silence)
            brought = bring_dataset(root, lambda staging: _unpack_checked(archive, staging), expected=name)
            known = "checksum right" if name in TU_CHECKSUMS else "no checksum known, only its form was checked"
            yield Brought(name, brought.outcome, f"{brought.detail}, {known}")
    for family, dataset in CHECKSUMS:
        if dataset == name:
            yield _fetch_splits(family, dataset, root, splits_url or SPLITS_URL, silence)


def _unpack_checked(archive: Path, staging: Path) -> str:
    name = unpack(archive, staging)
    if name in TU_CHECKSUMS:
        found = digest(staging / name / "raw", name)
        if found != TU_CHECKSUMS[name]:
            raise UserError(
                f"the download is not the {name} of the collection (its sha256 is {found[:12]}...); "
                "try again later, or get the file elsewhere and run `bench data import PATH`"
            )
    return name


def _fetch_splits(family: str, dataset: str, root: Path, base: str, silence: float) -> Brought:
    place = split_file(root, family, dataset)
    if place.is_file():
        return bring_splits(place, root, family)
    with scratch_folder("augbench") as temporary:
        target = temporary / place.name
        _download(f"{base.rstrip('/')}/{family}/{quote(place.name)}", target, silence)
        return bring_splits(target, root, family)


def _collection_url() -> str:
    from torch_geometric.datasets import TUDataset

    return str(TUDataset.url)


def _download(url: str, target: Path, silence: float) -> None:
    """Copy a URL to a file; a failure gives a one-line error."""
    _check_url(url)
    import aiohttp

    try:
        asyncio.run(_copy(url, target, silence))
    except UserError:
        raise
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise UserError(
            f"could not download {url} ({reason}); check the connection, "
            "or copy the file from another machine and run `bench data import PATH`"
        ) from error


async def _copy(url: str, target: Path, silence: float) -> None:
    """The body of the response, streamed; each address of a redirect is checked before it is requested."""
    import aiohttp

    limits = aiohttp.ClientTimeout(total=TOTAL_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=silence)
    plain = {"Accept-Encoding": "identity"}  # compressed transfers may unpack to any size
    async with aiohttp.ClientSession(timeout=limits, trust_env=True, headers=plain, auto_decompress=False) as session:
        for _ in range(_REDIRECTS + 1):
            async with session.get(url, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, answer.headers.get("Location", ""))
                    _check_url(url)
                    continue
                if answer.status in (404, 410):
                    raise UserError(
                        f"{url} does not exist; check the name, or get the file elsewhere and use `bench data import`"
                    )
                answer.raise_for_status()
                await _save(answer.content, target)
                return
        raise UserError(f"{url} redirects more than {_REDIRECTS} times; check the address")


async def _save(content: aiohttp.StreamReader, target: Path) -> None:
    size = 0
    with target.open("wb") as file:
        async for chunk in content.iter_chunked(_CHUNK):
            size += len(chunk)
            if size > LARGEST_DOWNLOAD:
                raise OSError(f"it is larger than {LARGEST_DOWNLOAD} bytes")
            file.write(chunk)


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
