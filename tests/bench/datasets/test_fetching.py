"""Downloads, against a server on this machine."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench.datasets import load_dataset
from bench.datasets.fetching import fetch
from bench.registry import UserError

SLEEP = 8.0


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing in test output."""


class Cut(BaseHTTPRequestHandler):
    """Promises more than it sends."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/zip")
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"PK\x03\x04 and no more")

    do_HEAD = do_GET
    log_message = Quiet.log_message  # type: ignore[assignment]


class Silent(BaseHTTPRequestHandler):
    """Accepts the request and never answers."""

    def do_GET(self) -> None:
        time.sleep(SLEEP)

    do_HEAD = do_GET
    log_message = Quiet.log_message  # type: ignore[assignment]


Serve = Callable[[Callable[..., BaseHTTPRequestHandler]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ThreadingHTTPServer] = []

    def start(handler: Callable[..., BaseHTTPRequestHandler]) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.block_on_close = False
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_set_is_fetched_once(serve: Serve, tmp_data_root: Path, write_archive: Callable[..., Path]) -> None:
    archive = write_archive("MUTAG")
    url = serve(partial(Quiet, directory=str(archive.parent)))
    assert [b.outcome for b in fetch("MUTAG", tmp_data_root, url)] == ["new"]
    assert len(load_dataset("MUTAG", tmp_data_root).graphs) == 40
    archive.unlink()
    assert [b.outcome for b in fetch("MUTAG", tmp_data_root, url)] == ["unchanged"]


def test_published_splits_are_fetched_and_checked(
    serve: Serve, data_root: Path, tmp_path: Path, tmp_data_root: Path
) -> None:
    served = tmp_path / "served"
    shutil.copytree(data_root / "splits", served)
    for name in ("PROTEINS", "IMDB-BINARY"):
        shutil.copytree(data_root / "tu" / name, tmp_data_root / "tu" / name)
    url = serve(partial(Quiet, directory=str(served)))
    assert [b.what for b in fetch("PROTEINS", tmp_data_root, url, url)] == ["PROTEINS", "PROTEINS splits CHEMICAL"]
    forged = served / "COLLABORATIVE_1" / "IMDB-BINARY_splits.json"
    shutil.copy(served / "COLLABORATIVE_DEGREE" / "IMDB-BINARY_splits.json", forged)
    with pytest.raises(UserError, match="not the published COLLABORATIVE_1 file of IMDB-BINARY"):
        list(fetch("IMDB-BINARY", tmp_data_root, url, url))
    assert not (tmp_data_root / "splits" / "COLLABORATIVE_1").exists()


def nothing_there(root: Path) -> bool:
    return not [p for p in root.rglob("*") if p.is_file() and p.suffix != ".lock"]


def test_a_file_that_is_not_there(serve: Serve, tmp_path: Path, tmp_data_root: Path) -> None:
    url = serve(partial(Quiet, directory=str(tmp_path)))
    with pytest.raises(UserError, match=r"/MUTAG\.zip does not exist"):
        list(fetch("MUTAG", tmp_data_root, url))
    assert nothing_there(tmp_data_root)


@pytest.mark.parametrize("handler", [Cut, Silent])
def test_broken_transfers_leave_nothing_behind(
    handler: type[BaseHTTPRequestHandler], serve: Serve, tmp_data_root: Path
) -> None:
    started = time.monotonic()
    with pytest.raises(UserError, match=r"could not download .*bench data import PATH") as caught:
        list(fetch("MUTAG", tmp_data_root, serve(handler), silence=1.0))
    assert time.monotonic() - started < SLEEP - 1
    assert "\n" not in str(caught.value)
    assert nothing_there(tmp_data_root)


def test_no_server_is_told_at_once(tmp_data_root: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(UserError, match=r"could not download .*check the connection"):
        list(fetch("MUTAG", tmp_data_root, f"http://127.0.0.1:{port}"))
    assert time.monotonic() - started < 10


def test_an_archive_of_another_set_is_refused(
    serve: Serve, tmp_data_root: Path, write_archive: Callable[..., Path]
) -> None:
    archive = write_archive("TINY")
    archive.rename(archive.with_name("MUTAG.zip"))
    with pytest.raises(UserError, match="contains TINY instead of MUTAG"):
        list(fetch("MUTAG", tmp_data_root, serve(partial(Quiet, directory=str(archive.parent)))))
    assert nothing_there(tmp_data_root)


@pytest.mark.parametrize("url", ["http://example.org", "ftp://127.0.0.1", "file:///etc", "example.org"])
def test_only_https_is_spoken_abroad(url: str, tmp_data_root: Path) -> None:
    with pytest.raises(UserError, match="not an https address"):
        list(fetch("MUTAG", tmp_data_root, url))


def test_built_in_data_needs_no_fetching(tmp_data_root: Path) -> None:
    assert [b.outcome for b in fetch("digits", tmp_data_root, "https://127.0.0.1:9")] == ["unchanged"]
