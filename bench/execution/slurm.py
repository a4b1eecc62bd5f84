"""Workers as jobs of a Slurm cluster, started for the run through dask-jobqueue and ended with it.

The guarantees of a Dask cluster hold here too. In addition, a job that ends (time limit, cancellation, node failure) is
replaced as long as trials finish. Driver and workers communicate over TLS with a key created for the run, so others on
the network cannot send tasks to the workers.
"""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.execution.dask_cluster import DaskPool
from bench.execution.dask_connection import own_scheduler
from bench.execution.pool import PoolSetup
from bench.registry import UserError
from bench.warn_once import warn_once

KNOWN = {  # options of --cluster that are not passed to sbatch unchanged
    "partition": "queue",
    "account": "account",
    "walltime": "walltime",
    "memory": "memory",
    "processes": "processes",
    "interface": "interface",
}
MEMORY = "2GB"  # per worker, unless --cluster memory=... is given
ANSWER_SECONDS = 60.0  # time limit for Slurm commands
QUEUE_EVERY = 10.0  # seconds between checks of the queue


class SlurmPool(DaskPool):
    """As many workers as `--jobs` specifies, one or more per Slurm job."""

    takes_scheduler = False
    takes_cluster = True
    quiet = False  # the output of workers goes to the logs of their jobs

    def __init__(self, setup: PoolSetup) -> None:
        self._queue_seen = -QUEUE_EVERY
        self.logs = (setup.folder / "slurm").resolve()
        super().__init__(setup)
        self.address = "made for this run on Slurm"

    @classmethod
    def check_cluster(cls, options: Mapping[str, str]) -> None:
        """Check that the options can be parsed; their meaning is left to Slurm."""
        for name in options:
            if not re.fullmatch(r"[a-z][a-z-]*", name):
                raise UserError(f"--cluster {name}=... is not an option of sbatch; write it as sbatch does, without --")
        processes = options.get("processes", "1")
        if not processes.isdecimal() or not 1 <= int(processes) <= 1024:
            raise UserError(f"--cluster processes={processes} is not a valid number of workers per job; give 1 or more")

    def _start_cluster(self) -> Any:
        if shutil.which("sbatch") is None:
            raise UserError(
                "--executor slurm needs sbatch, which is not on the path; run on a login node of the cluster"
            )
        try:
            from dask_jobqueue import SLURMCluster
        except ImportError as error:
            raise UserError(
                "--executor slurm needs the package dask-jobqueue; install it with pip install 'augbench[cluster]'"
            ) from error
        self.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        with own_scheduler():
            try:
                cluster = SLURMCluster(**cluster_arguments(self.setup.cluster, self.logs))
            except (ValueError, OSError, RuntimeError) as error:
                raise UserError(f"no Slurm cluster can be used with these --cluster options: {error}") from error
        try:
            self._try_script(cluster.job_script())
            cluster.scale(self.setup.jobs)
        except BaseException:
            cluster.close(timeout=5)
            raise
        return cluster

    def _try_script(self, script: str) -> None:
        """Ask Slurm whether it would accept such a job, before anything depends on it."""
        path = self.logs / "job.sh"
        path.write_text(script, encoding="utf-8")
        done = _slurm("sbatch", "--test-only", str(path))
        if done.returncode:
            reason = _last_line(done.stderr) or f"exit code {done.returncode}"
            raise UserError(f"Slurm rejected the jobs: {reason}; change --cluster (the job script is {path})")

    def _wait_for_first(self) -> None:
        """Queues may be long: wait as long as there is a job that could still start."""
        while not self.client.nthreads():
            warn_once(f"waiting for Slurm to start the first job (squeue shows it); logs are in {self.logs}")
            waiting = self._queued()
            jobs = self._job_ids()
            if waiting is not None and jobs and not waiting & set(jobs.values()) and not self.client.nthreads():
                raise UserError(f"no Slurm job could start a worker; {self._last_words()}")
            time.sleep(1.0)

    def _no_worker(self) -> None:
        warn_once("no job of this run is running at the moment; the run continues when Slurm starts one")

    def _replace_lost(self) -> None:
        """Ask Slurm which jobs have ended, and replace those that we did not end."""
        now = time.monotonic()
        if now - self._queue_seen < QUEUE_EVERY or (queued := self._queued()) is None:
            return
        self._queue_seen = now
        here = {str(worker["name"]) for worker in self.cluster.scheduler_info["workers"].values()}
        over = [name for name, job in self._job_ids().items() if job not in queued and not _has_worker(name, here)]
        for name in over:
            self.cluster.worker_spec.pop(name, None)
        self._count_replaced(len(over), f"Slurm jobs ended before a trial was finished; {self._last_words()}")
        if over:
            self.cluster.scale(self.setup.jobs)

    def _job_ids(self) -> dict[str, str]:
        """The Slurm job of each submitted entry of the cluster."""
        jobs = {str(name): getattr(job, "job_id", None) for name, job in dict(self.cluster.workers).items()}
        return {name: str(job) for name, job in jobs.items() if job}

    def _queued(self) -> set[str] | None:
        """The user's waiting or running jobs; None if Slurm does not respond."""
        try:
            done = _slurm("squeue", "--noheader", "--user", getpass.getuser(), "--format", "%A")
        except UserError:
            return None
        return None if done.returncode else set(done.stdout.split())

    def _last_words(self) -> str:
        """The end of the newest job log."""
        logs = sorted(self.logs.glob("*.err"), key=lambda path: path.stat().st_mtime)
        words = _last_line(logs[-1].read_text(encoding="utf-8", errors="replace")) if logs else ""
        return f"the last line of {logs[-1]} is: {words}" if words else f"see the logs in {self.logs}"


def cluster_arguments(options: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """The arguments for dask-jobqueue: `options` come from `--cluster`; unknown ones are passed to sbatch."""
    known = {KNOWN[name]: value for name, value in options.items() if name in KNOWN}
    processes = int(known.pop("processes", 1))
    memory = _bytes(known.pop("memory", MEMORY))
    skip = [] if "walltime" in known else ["-t "]  # by default, the partition's own time limit applies
    return {
        **known,
        "cores": processes,
        "processes": processes,
        "memory": memory * processes,
        "job_directives_skip": skip,
        "job_extra_directives": [f"--{name}={value}" for name, value in options.items() if name not in KNOWN],
        "job_name": "augbench",
        "job_script_prologue": ["export OMP_NUM_THREADS=1"],
        "log_directory": str(folder),
        "local_directory": None,
        "death_timeout": 120,
        "security": True,
        "shared_temp_directory": str(folder),
        "scheduler_options": {"dashboard": False},
        "silence_logs": "critical",
    }


def _bytes(text: str) -> int:
    from bench.execution.memory import parse_memory

    return parse_memory(text)


def _has_worker(name: str, workers: set[str]) -> bool:
    """If a job has several workers, they are named after it with a number appended."""
    return any(worker == name or worker.startswith(f"{name}-") for worker in workers)


def _slurm(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{command[0]} does not answer: {error}; is this a login node of the cluster?") from error


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
