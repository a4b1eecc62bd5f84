"""Learners on the command line: named, listed, refused with a reason, run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli.options import specs

Bench = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["wl", "size"], ["wl", "size"]),
        (["wl,size"], ["wl", "size"]),
        (["wl:h=3,c=10,size"], ["wl:h=3,c=10", "size"]),
        (["size,my.module:Mine:a=1,b=2, wl"], ["size", "my.module:Mine:a=1,b=2", "wl"]),
    ],
)
def test_commas_separate_learners_and_settings(texts: list[str], found: list[str]) -> None:
    assert specs(texts) == found


def test_learners_run_beside_networks_and_with_offline_augmenters(
    bench: Bench, tmp_path: Path, tmp_data_root: Path
) -> None:
    runs = str(tmp_path / "runs")
    words = ["-w", runs, "-d", "synthetic:graphs=40", "-k", "2", "--folds", "2", "--repeats", "1", "--epochs", "5"]
    code, out, err = bench("run", *words, "-m", "wl,size:c=2,gnn", "-a", "none", "-a", "gdm-rand", "-j", "1")
    assert code == 0, err
    names = [("wl", "wl"), ("size:c=2", "size:c=2"), ("none (gcn, mean)", "gcn, mean")]
    rows = [name for plain, model in names for name in (plain, f"gdm-rand ({model})")]
    lines = [line.strip() for line in out.splitlines()]
    assert [row for line in lines for row in rows if line.startswith(f"{row}  ")] == rows
    code, out, _ = bench("status", "-w", runs)
    assert code == 0 and "learner" in out.splitlines()[0]
    assert any(" wl " in line and " gdm-rand " in line for line in out.splitlines())
    code, out, err = bench("verify", "--from", runs)
    assert code == 0, err + out


def test_what_makes_no_sense_is_refused_before_anything_runs(bench: Bench, tmp_data_root: Path) -> None:
    code, _, err = bench("run", "-d", "synthetic", "-m", "wl", "-a", "dropedge")
    assert code == 2 and "DropEdge works during training" in err and "offline" in err
    code, _, err = bench("run", "-d", "synthetic", "-m", "wl,size", "-b", "gin")
    assert code == 2 and "wl, size has no backbone, so gin would change nothing" in err
    code, _, err = bench("run", "-d", "synthetic", "-m", "wll")
    assert code == 2 and "unknown learner 'wll'. Did you mean: wl" in err


def test_learners_are_listed_with_their_settings(bench: Bench) -> None:
    code, out, _ = bench("list")
    assert code == 0 and "random-gin" in out and "learners" in out
    code, out, _ = bench("list", "wl")
    assert code == 0 and "learner, built in" in out and "a whole number from 0 to 20; default 5" in out
