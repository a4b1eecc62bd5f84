"""Runs on a real Slurm cluster of one node: jobs that are canceled and a drained node lose nothing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bench.execution.pool import PoolSetup
from bench.execution.request import RunRequest
from bench.execution.slurm import SlurmPool, cluster_arguments
from bench.execution.worker import WorkerSettings
from bench.registry import UserError

Make = Callable[..., Path]
ROOT = Path(__file__).resolve().parents[3]
ARRAY = """#!/bin/bash
#SBATCH --array=1-3 --output={folder}/array-%a.log
part=$SLURM_ARRAY_TASK_ID
{python} -c 'from bench.cli.app import main; main()' \\
  run --shard $part/3 --workspace {folder}/part-$part --jobs 1 {arguments}
"""


def _tools() -> ModuleType:
    path = Path(__file__).with_name("slurm_tools.py")
    spec = importlib.util.spec_from_file_location("slurm_tools", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


node = _tools()


@pytest.fixture(scope="module")
def slurm() -> Iterator[Path]:
    if reason := node.lacking():
        pytest.skip(f"no Slurm on this machine: {reason}")
    with node.slurm() as folder:
        yield folder


def test_canceled_jobs_a_drained_node_and_shards_end_with_the_ledger_of_one_process(
    slurm: Path, workspace: Make, tools: ModuleType, tmp_path: Path
) -> None:
    words = ["-d", "synthetic:graphs=60", "-a", "none", "-a", "dropedge", "-k", "2", "--repeats", "1"]
    words += ["--epochs", "1500", "--data", str(tmp_path / "data")]
    alone = workspace("alone")
    process = tools.start(alone, [*words, "--jobs", "2"])
    out, _ = process.communicate(timeout=500)
    assert process.returncode == 0, out
    wanted = tools.results(alone)
    assert len(wanted) == 20

    folder = workspace("slurm")
    driver = tools.start(folder, [*words, "--executor", "slurm", "--jobs", "3", "--cluster", "interface=lo"])
    try:
        tools.wait_until(lambda: tools.trial_lines(folder) >= 2 or driver.poll() is not None)
        first = running()
        assert first, "no job is running"
        node.ask("scancel", first[0])
        node.ask("scontrol", "update", f"nodename={node.host()}", "state=drain", "reason=test")
        seen = tools.trial_lines(folder)
        tools.wait_until(lambda: tools.trial_lines(folder) >= seen + 2 or driver.poll() is not None)
        node.ask("scontrol", "update", f"nodename={node.host()}", "state=resume")
        more = running()
        if more:
            node.ask("scancel", more[-1])
        out, _ = driver.communicate(timeout=500)
    finally:
        if driver.poll() is None:
            tools.kill(driver)
    assert driver.returncode == 0, out
    assert tools.results(folder) == wanted
    tools.wait_until(lambda: not running())  # its jobs end with the run

    script = tmp_path / "array.sh"
    script.write_text(ARRAY.format(folder=tmp_path, python=sys.executable, arguments=" ".join(words)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    submitted = subprocess.run(
        ["sbatch", "--wait", str(script)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500
    )
    logs = "\n".join(path.read_text() for path in tmp_path.glob("array-*.log"))
    assert submitted.returncode == 0, submitted.stderr + logs
    parts = [tmp_path / f"part-{number}" for number in (1, 2, 3)]
    counts = [len(tools.results(part)) for part in parts]
    assert sum(counts) == 20 and max(counts) - min(counts) <= 2
    joined = workspace("joined")
    merge = "from bench.cli.app import main; main()"
    command = [sys.executable, "-c", merge, "merge", *map(str, parts), "--into", str(joined)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True)
    assert tools.results(joined) == wanted


def running() -> list[str]:
    return str(node.ask("squeue", "--noheader", "--states", "running", "--format", "%A")).split()


def test_what_slurm_would_not_take_is_one_line_before_anything_starts(slurm: Path, tmp_path: Path) -> None:
    setup = PoolSetup(WorkerSettings(None, "fast"), 2, folder=tmp_path, cluster={"partition": "nowhere"})
    with pytest.raises(UserError, match=r"Slurm rejected the jobs: .*Invalid partition.*change --cluster"):
        SlurmPool(setup)
    setup = PoolSetup(WorkerSettings(None, "fast"), 2, folder=tmp_path, cluster={"patrition": "main"})
    with pytest.raises(UserError, match=r"Slurm rejected the jobs"):
        SlurmPool(setup)
    assert not running()


def test_without_slurm_or_with_odd_options_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="needs sbatch, which is not on the path"):
        SlurmPool(PoolSetup(WorkerSettings(None, "fast"), 2, folder=tmp_path))
    with pytest.raises(UserError, match="processes=many is not a valid number of workers per job"):
        SlurmPool.check_cluster({"processes": "many"})
    with pytest.raises(UserError, match="is not an option of sbatch"):
        SlurmPool.check_cluster({"--qos": "high"})


def test_options_of_the_cluster_reach_the_job(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    from dask_jobqueue.slurm import SLURMJob

    options = {"partition": "gpu", "walltime": "02:00:00", "processes": "4", "qos": "high", "memory": "3GB"}
    known = {name for name in cluster_arguments(options, tmp_path) if name not in CLUSTER_ONLY}
    arguments = {name: value for name, value in cluster_arguments(options, tmp_path).items() if name in known}
    script = SLURMJob("tcp://127.0.0.1:1", "one", **arguments).job_script()
    for line in ("-p gpu", "-t 02:00:00", "--cpus-per-task=4", "--mem=12G", "--qos=high", "-J augbench"):
        assert f"#SBATCH {line}" in script, script
    plain = {**cluster_arguments({}, tmp_path)}
    script = SLURMJob("tcp://127.0.0.1:1", "one", **{k: v for k, v in plain.items() if k in known}).job_script()
    assert "#SBATCH -t" not in script  # the partition's own time


CLUSTER_ONLY = {"security", "shared_temp_directory", "scheduler_options", "silence_logs"}


def test_cluster_options_are_refused_elsewhere(tools: ModuleType, tmp_path: Path) -> None:
    request = RunRequest(tools.grid(), tmp_path, cluster=("partition=main",))
    with pytest.raises(UserError, match="--cluster partition=main applies only to Slurm jobs; add --executor slurm"):
        request.check()
    with pytest.raises(UserError, match="--cluster partition is not key=value"):
        RunRequest(tools.grid(), tmp_path, executor="slurm", cluster=("partition",)).check()
