"""Nothing is sent anywhere, what listens listens to this machine alone, and downloads are bounded."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from bench.datasets import fetching
from bench.datasets.fetching import fetch
from bench.registry import UserError
from bench.results.records import ProvenanceRecord

ROOT = Path(__file__).resolve().parents[2]
# Every Python process below reads this first. An attempt is written down, so that a swallowed error is seen too.
GUARD = """
import os, socket

def local(address):
    return not isinstance(address, tuple) or str(address[0]) in ("127.0.0.1", "::1", "localhost", "")

def guarded(name):
    real = getattr(socket.socket, name)
    def call(self, *words):
        address = words[-1]
        if self.family != socket.AF_UNIX and not local(address):
            with open(os.environ["AUGBENCH_TEST_CALLS"], "a") as log:
                log.write(f"{name} {address}\\n")
            raise OSError("no network in this test")
        return real(self, *words)
    setattr(socket.socket, name, call)

for name in ("connect", "connect_ex", "sendto"):
    guarded(name)
resolve = socket.getaddrinfo
def getaddrinfo(host, *words, **more):
    if host not in (None, "127.0.0.1", "::1", "localhost", "0.0.0.0", socket.gethostname()):
        with open(os.environ["AUGBENCH_TEST_CALLS"], "a") as log:
            log.write(f"getaddrinfo {host}\\n")
        raise socket.gaierror("no network in this test")
    return resolve(host, *words, **more)
socket.getaddrinfo = getaddrinfo
"""
# MLflow keeps silent where it sees one of these: this test must not owe its result to them.
SILENCING = ("PYTEST_CURRENT_TEST", "CI", "GITHUB_ACTIONS", "GITLAB_CI", "MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK")
TINY = ["-d", "synthetic:graphs=60", "-k", "2", "--folds", "2", "--repeats", "1", "--epochs", "2", "--jobs", "1"]
Bench = Callable[..., str]


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls.txt"


@pytest.fixture
def bench(tmp_path: Path, calls: Path, mlflow_store: Path, tools: ModuleType) -> Bench:
    """`bench` in a process whose sockets reach this machine alone; `before` are words in front of the command."""
    guard = tmp_path / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name not in SILENCING}
    environment |= {"PYTHONPATH": f"{guard}{os.pathsep}{ROOT}", "AUGBENCH_TEST_CALLS": str(calls)}
    environment |= {"OMP_NUM_THREADS": "1", "BENCH_DATA": str(tmp_path / "data")}
    tools.prepare(tmp_path / "runs", mlflow_store)

    def call(*words: str, before: Sequence[str] = ()) -> str:
        command = [*before, sys.executable, "-c", "from bench.cli.app import main; main()", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


def attempts(calls: Path) -> str:
    return calls.read_text() if calls.exists() else ""


def test_the_guard_sees_an_attempt(tmp_path: Path, calls: Path, bench: Bench) -> None:
    program = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "guard"), "AUGBENCH_TEST_CALLS": str(calls)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True).returncode == 1
    assert "192.0.2.1" in attempts(calls)


def test_a_run_and_its_tables_send_nothing(bench: Bench, calls: Path) -> None:
    assert "2 cells, 4 trials" in bench("run", *TINY, "-a", "none", "-a", "dropedge")
    assert "files in" in bench("tables")
    assert attempts(calls) == ""


@pytest.mark.soak
def test_tuning_reports_and_sync_send_nothing(bench: Bench, calls: Path) -> None:
    bench("run", *TINY, "-a", "none")
    bench(
        "tune", "-d", "synthetic:graphs=60", "-a", "dropedge", "-k", "2", "--trials", "2", "--folds", "2", "--jobs", "1"
    )
    for words in (["report"], ["figures"], ["sync"], ["status"], ["data", "status"], ["list"]):
        bench(*words)
    assert attempts(calls) == ""


@pytest.mark.soak
def test_a_run_needs_no_network_at_all(bench: Bench, calls: Path) -> None:
    alone = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("a process without a network cannot be made here; it takes unshare and user namespaces")
    assert "1 cells, 2 trials" in bench("run", *TINY, "-a", "none", before=alone)
    assert "files in" in bench("tables", before=alone)


def test_mlflow_is_told_to_keep_silent_before_it_is_imported() -> None:
    program = (
        "import bench.tracking.cells, mlflow, mlflow.telemetry.client as client\n"
        "from mlflow.telemetry.utils import is_telemetry_disabled\n"
        "print(is_telemetry_disabled(), client.get_telemetry_client())"
    )
    environment = {name: value for name, value in os.environ.items() if name not in SILENCING}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "None"]


@pytest.mark.parametrize(
    ("words", "host", "said"), [([], "127.0.0.1", "this machine alone"), (["0.0.0.0"], "0.0.0.0", "everyone who can")]
)
def test_the_ui_listens_to_this_machine_unless_asked(
    words: list[str],
    host: str,
    said: str,
    tmp_path: Path,
    tools: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import typer

    from bench.cli.commands.mirror import ui

    started: list[Sequence[str]] = []

    class Server:
        """One that ends at once."""

        stdin = None

        def __init__(self, command: Sequence[str], **more: object) -> None:
            started.append(command)

        def wait(self, timeout: float | None = None) -> int:
            return 0

    monkeypatch.setattr(subprocess, "Popen", Server)
    monkeypatch.setattr("bench.tracking.server.check_port", lambda host, port: None)
    tools.write_trials(tmp_path / "runs", [ProvenanceRecord("p", {})])
    with pytest.raises(typer.Exit):
        ui(tmp_path / "runs", 5000, *words) if words else ui(tmp_path / "runs")
    (command,) = started
    assert command[list(command).index("--host") + 1] == host
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.soak
def test_the_uis_sockets_are_bound_to_loopback(tmp_path: Path, tools: ModuleType, mlflow_store: Path) -> None:
    import psutil

    folder = tools.prepare(tmp_path / "runs", mlflow_store)
    tools.write_trials(folder, [ProvenanceRecord("p", {})])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = "from bench.cli.app import main; main()"
    server = subprocess.Popen(
        [sys.executable, "-c", program, "ui", "-w", str(folder), "--port", str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        listening: set[tuple[str, int]] = set()
        end = time.monotonic() + 120
        while ("127.0.0.1", port) not in listening and time.monotonic() < end:
            time.sleep(0.5)
            family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
            found = [c for one in family for c in one.net_connections("inet") if c.status == psutil.CONN_LISTEN]
            listening = {(c.laddr.ip, c.laddr.port) for c in found}
        assert listening == {("127.0.0.1", port)}
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


class Elsewhere(BaseHTTPRequestHandler):
    """Sends whoever asks to where they must not go."""

    target = "http://192.0.2.1/MUTAG.zip"

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.target)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Say nothing in test output."""


class Around(Elsewhere):
    target = "/again"


class Endless(Elsewhere):
    """Never stops sending, and says it is a page, which some readers take as a list of links."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        try:
            while True:
                self.wfile.write(bytes(2**16))
        except OSError:
            return


@pytest.fixture
def serve() -> Iterator[Callable[[type[BaseHTTPRequestHandler]], str]]:
    servers: list[ThreadingHTTPServer] = []

    def start(handler: type[BaseHTTPRequestHandler]) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads, server.block_on_close = True, False
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (Elsewhere, "http://192.0.2.1/MUTAG.zip is not an https address"),
        (Around, "redirects more than 5 times"),
        (Endless, "larger than 1000000 bytes"),
    ],
)
def test_a_download_goes_nowhere_else_and_ends(
    handler: type[Elsewhere],
    reason: str,
    serve: Callable[[type[BaseHTTPRequestHandler]], str],
    tmp_data_root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "LARGEST_DOWNLOAD", 1_000_000)
    with pytest.raises(UserError, match=reason):
        list(fetch("MUTAG", tmp_data_root, serve(handler)))
    assert not [path for path in tmp_data_root.rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.parametrize("address", ["http://example.org", "ftp://example.org", "file:///etc", "//example.org", "x"])
def test_other_addresses_are_not_asked(address: str, tmp_data_root: Path) -> None:
    with pytest.raises(UserError, match="is not an https address"):
        list(fetch("MUTAG", tmp_data_root, address))


def test_a_downloaded_set_of_the_paper_must_be_that_set(
    tmp_path: Path,
    tmp_data_root: Path,
    write_archive: Callable[..., Path],
    serve: Callable[[type[BaseHTTPRequestHandler]], str],
) -> None:
    content = write_archive("PROTEINS").read_bytes()

    class Forged(Elsewhere):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

    with pytest.raises(UserError, match="not the PROTEINS of the collection"):
        list(fetch("PROTEINS", tmp_data_root, serve(Forged)))
    assert not list(tmp_data_root.rglob("*_A.txt"))
