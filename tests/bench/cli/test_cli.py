"""The command line as a user meets it: what goes wrong is one line and exit code 2, and nothing is half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import app as cli

Bench = Callable[..., tuple[int, str, str]]
TINY = ["--folds", "2", "--repeats", "1", "--epochs", "2", "--jobs", "1"]


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-d", "synthetic", "-a", "dropegde"], ["unknown augmenter 'dropegde'", "Did you mean: dropedge"]),
        (["-d", "synthetc"], ["unknown dataset 'synthetc'", "Did you mean: synthetic"]),
        (["-d", "synthetic", "-a", "dropedge:p=1.5"], ["p=1.5", "a number from 0 to 1"]),
        (["-d", "synthetic", "-a", "dropedge:q=1"], ["no setting 'q'", "p (a number"]),
        (["-d", "synthetic", "-k", "0"], ["k=0", "at least one labeled graph per class"]),
        (["-d", "synthetic", "-k", "ten"], ["-k ten", "whole numbers"]),
        (["-d", "synthetic", "-b", "gcm"], ["unknown backbone 'gcm'", "Did you mean: gcn"]),
        (["-d", "synthetic", "-r", "median"], ["unknown readout 'median'"]),
        (["-d", "synthetic", "--preset", "standrad"], ["unknown preset 'standrad'", "Did you mean: standard"]),
        (["-d", "synthetic", "--features", "native"], ["synthetic has no node features", "constant"]),
        (["-d", "synthetic", "--splits", "CHEMICAL"], ["CHEMICAL", "stratified"]),
        (["-d", "synthetic", "--folds", "11"], ["folds=11", "1 to 10"]),
        (["-d", "synthetic", "--epochs", "0"], ["epochs=0"]),
        (["-d", "synthetic", "--jobs", "0"], ["--jobs 0", "1 or more"]),
        (["-d", "synthetic", "--device", "cuda:7"], ["--device cuda:7", "--device cpu"]),
        (["-d", "synthetic", "--engine", "warp"], ["unknown engine 'warp'", "reference"]),
        (["-d", "synthetic", "-a", "softedge", "-b", "gat"], ["SoftEdge makes edge weights", "use gcn, gin or sage"]),
        (["-d", "PROTEINS"], ["PROTEINS is not in the data root", "bench data fetch PROTEINS", "bench data import"]),
        (["-a", "none"], ["need a dataset", "-d NAME"]),
        (["--grid", "fulll"], ["unknown grid 'fulll'", "Did you mean: full"]),
        (["--grid", "quick", "-d", "PROTEINS"], ["the grid quick has no dataset PROTEINS", "digits, synthetic"]),
        (["--grid", "missing.toml"], ["there is no grid file missing.toml"]),
        (
            ["-d", "synthetic", "--tracking-uri", "http://127.0.0.1:9"],
            ["tracking store http://127.0.0.1:9", "--tracking-uri"],
        ),
        (["-d", "synthetic", "--workspace", "/proc/nowhere"], ["/proc/nowhere", "--workspace"]),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    bench: Bench, tmp_data_root: Path, tmp_path: Path, words: list[str], said: list[str]
) -> None:
    code, out, err = bench("run", *words)
    assert code == 2, out + err
    assert err.startswith("error: ")
    assert len(err.strip().splitlines()) == 1, err
    assert all(part in err for part in said), err
    assert not [
        name
        for name in files_below(tmp_path)
        if "mlflow" not in name and "lock" not in name and name != "runs/ledger.jsonl"
    ]
    ledger = tmp_path / "runs" / "ledger.jsonl"
    assert not ledger.exists() or ledger.read_bytes() == b""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('datasets = ["synthetic"]\naugmentors = ["none"]\n', ["line 2", "augmentors", "Did you mean: augmenters"]),
        ('datasets = ["synthetic"]\nk = ["ten"]\n', ["line 2", "k: takes whole numbers"]),
        ('datasets = ["synthetic"\n', ["not valid TOML"]),
        ("k = [2]\n", ["no datasets"]),
        ('datasets = ["synthetic"]\n[training]\nepoch = 3\n', ["epoch", "Did you mean: epochs"]),
        ('datasets = ["synthetic"]\nfolds = 12\n', ["folds=12"]),
    ],
)
def test_a_grid_file_with_a_mistake_names_the_line(
    bench: Bench, tmp_path: Path, tmp_data_root: Path, text: str, said: list[str]
) -> None:
    (tmp_path / "mine.toml").write_text(text)
    code, _, err = bench("run", "--grid", "mine.toml")
    assert code == 2
    assert all(part in err for part in said), err


def test_an_unwritable_workspace_is_one_line(bench: Bench, tmp_path: Path, tmp_data_root: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    code, _, err = bench("run", "-d", "synthetic", "--workspace", "taken")
    assert code == 2
    assert "cannot create the workspace taken" in err


def test_a_run_ends_with_a_comparison_and_a_second_one_has_nothing_to_do(
    bench: Bench, tmp_path: Path, tmp_data_root: Path
) -> None:
    words = ["run", "-d", "synthetic", "-a", "none", "-a", "dropedge", "-k", "2", *TINY]
    code, out, err = bench(*words)
    assert code == 0, err
    assert "2 cells, 4 trials" in out
    assert "our own stratified folds" in out
    assert "dropedge" in out.split("test accuracy in %")[1]
    before = (tmp_path / "runs" / "ledger.jsonl").read_bytes()
    code, out, _ = bench(*words)
    assert code == 0
    assert (tmp_path / "runs" / "ledger.jsonl").read_bytes() == before
    code, out, _ = bench("status")
    assert code == 0
    assert "dropedge" in out


def test_the_same_command_twice_gives_the_same_lines_but_for_times(
    bench: Bench, tmp_path: Path, tmp_data_root: Path
) -> None:
    def lines(workspace: str) -> list[dict[str, object]]:
        bench("run", "-d", "synthetic", "-a", "none", "-a", "gdm-acc", "-k", "2", *TINY, "--workspace", workspace)
        records = [json.loads(line) for line in (tmp_path / workspace / "ledger.jsonl").read_text().splitlines()]
        return [{k: v for k, v in r.items() if k not in ("seconds", "finished", "at")} for r in records]

    first = lines("one")
    assert sum(record["type"] == "trial" for record in first) == 4
    assert first == lines("two")


def test_status_without_a_ledger_says_what_to_do(bench: Bench) -> None:
    code, _, err = bench("status", "--workspace", "nowhere")
    assert code == 2
    assert "there is no ledger in nowhere" in err


def test_list_shows_settings_of_one_name(bench: Bench) -> None:
    code, out, _ = bench("list", "dropedge")
    assert code == 0
    assert "a number from 0 to 1; default 0.25; tuned from 0.05 to 0.5" in out
    assert "DropEdge (Rong et al., 2020)" in out and "anew in each epoch" in out
    code, out, _ = bench("list", "ifmixup")
    assert code == 0 and "labels are mixed; makes edge weights" in out and "tuned over random, file" in out
    code, _, err = bench("list", "dropegde")
    assert code == 2
    assert "Did you mean: dropedge" in err


def test_list_knows_compositions(bench: Bench) -> None:
    code, out, err = bench("list", "dropedge+maskattr")
    assert code == 0, err
    assert "dropedge.p" in out and "maskattr.p" in out and "anew in each epoch" in out
    code, _, err = bench("list", "dropedge+gdm-rand")
    assert code == 2 and "gdm-rand works once before training" in err
    code, _, err = bench("list", "dropedge+maskatr")
    assert code == 2 and "unknown augmenter 'maskatr'. Did you mean: maskattr" in err


@pytest.mark.parametrize("name", ["augmenters", "models", "tables"])
@pytest.mark.parametrize("form", ["package", "module"])
def test_somebody_elses_package_of_the_same_name_is_said_in_words_and_not_imported(
    name: str, form: str, tmp_path: Path
) -> None:
    place = tmp_path / name / "__init__.py" if form == "package" else tmp_path / f"{name}.py"
    place.parent.mkdir(exist_ok=True)
    place.write_text("open('imported', 'w').close()\nraise RuntimeError('imported')\n")
    home = Path(cli.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", "from bench.cli.entry import main; main()", "list"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{home}", "COLUMNS": "400"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"the package `{name}` that Python finds is the one in {tmp_path}" in line
    assert "environment of its own" in line and ("PyTables" in line) is (name == "tables")
    assert not (tmp_path / "imported").exists()
