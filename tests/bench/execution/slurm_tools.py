"""A Slurm cluster of one node on this machine, for the tests: munged, slurmctld and slurmd, on loopback alone."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "squeue", "sinfo")
CPUS = 8  # that the node claims to have, so that jobs of the tests need not wait for each other
START_SECONDS = 60

CONFIGURATION = """
ClusterName=augbench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=64000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def lacking() -> str | None:
    """Why Slurm cannot be started here, None if it can."""
    missing = [program for program in PROGRAMS if _found(program) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: slurm-wlm, munge)"
    return None if os.geteuid() == 0 else "Slurm's daemons need to be started by root"


def _found(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def ask(*command: str) -> str:
    """What a command of Slurm prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def host() -> str:
    return socket.gethostname().partition(".")[0]


@contextmanager
def slurm() -> Iterator[Path]:
    """The cluster; SLURM_CONF names its configuration while it is up. Ends what it started, by process id."""
    folder = Path(tempfile.mkdtemp(prefix="augbench-slurm-"))
    folder.chmod(0o755)  # munged looks at the modes of the folders above its socket
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    ports = _free_ports(2)
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(folder=folder, host=host(), controller=ports[0], daemon=ports[1], cpus=CPUS)
    )
    daemons: list[subprocess.Popen[bytes]] = []
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(configuration)
    try:
        files = [f"--{name}={folder}/munge.{end}" for name, end in (("socket", "sock"), ("seed-file", "seed"))]
        more = [f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log"]
        daemons.append(_start("munged", "--foreground", "--force", f"--key-file={key}", *files, *more))
        _wait(lambda: (folder / "munge.sock").exists(), folder)
        daemons.append(_start("slurmctld", "-D", "-c"))
        daemons.append(_start("slurmd", "-D", "-c"))
        _wait(lambda: "idle" in _state(), folder)
        yield folder
    finally:
        if (folder / "munge.sock").exists():
            subprocess.run(["scancel", "--user", "root"], capture_output=True, timeout=60, check=False)
            time.sleep(1)
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in daemons:
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if before is None:
            os.environ.pop("SLURM_CONF", None)
        else:
            os.environ["SLURM_CONF"] = before
        shutil.rmtree(folder, ignore_errors=True)


def _start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    command: Sequence[str] = [str(_found(program)), *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def _state() -> str:
    done = subprocess.run(["sinfo", "--noheader", "--format", "%T"], capture_output=True, text=True, check=False)
    return done.stdout


def _wait(condition: object, folder: Path) -> None:
    assert callable(condition)
    end = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > end:
            logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in folder.glob("*.log"))
            raise AssertionError(f"Slurm did not start within {START_SECONDS} s\n{logs}")
        time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
