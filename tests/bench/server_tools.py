"""Real servers for tests, on loopback, each in a folder of its own: they can be stopped and started again."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def server_programs() -> Path | None:
    """The folder of PostgreSQL's own programs; Debian keeps them off the path."""
    places = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


class PostgreSQL:
    """A PostgreSQL server; tests skip where there is none."""

    def __init__(self) -> None:
        pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
        programs = server_programs()
        if programs is None:
            pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
        self.programs, self.words, user = programs, [], getpass.getuser()
        if os.geteuid() == 0:  # the server refuses to run as root
            user, self.words = "postgres", ["runuser", "-u", "postgres", "--"]
            if shutil.which("runuser") is None or user not in {entry.pw_name for entry in pwd.getpwall()}:
                pytest.skip("PostgreSQL does not run as root, and there is no user postgres to run it as")
        self.folder, self.port = Path(tempfile.mkdtemp(prefix="augbench-postgresql-")), free_port()
        shutil.chown(self.folder, user)
        self.url = f"postgresql+psycopg://tester@127.0.0.1:{self.port}/postgres"
        self._call("initdb", "-A", "trust", "-U", "tester", "--no-sync", "-E", "UTF8")

    def database(self, name: str) -> str:
        """The address of a new database: MLflow and Optuna both keep a table `alembic_version`, each its own."""
        import psycopg

        with psycopg.connect(f"host=127.0.0.1 port={self.port} user=tester dbname=postgres", autocommit=True) as server:
            server.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))
        return self.url.removesuffix("postgres") + name

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._call("pg_ctl", "-w", "-t", "60", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """At once, as a crash would: every connection breaks, and the next start recovers from the log."""
        self._call("pg_ctl", "-m", "immediate", "stop")

    def remove(self) -> None:
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self.words, str(self.programs / program), "-D", str(self.folder / "data"), *arguments]
        done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"


class MLflowServer:
    """`mlflow server` on a store of any kind."""

    def __init__(self, store: str, artifacts: Path) -> None:
        self.store, self.artifacts, self.port = store, artifacts, free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["--backend-store-uri", self.store, "--artifacts-destination", str(self.artifacts)]
        words += ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *words],
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},  # it leaves a folder in /dev/shm
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(f"{self.uri}/health", timeout=5)
                return
            except (urllib.error.URLError, OSError):
                assert time.monotonic() < end, "the MLflow server did not start"
                time.sleep(0.2)

    def stop(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
