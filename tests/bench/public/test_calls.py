"""The functions of `import bench` do what the commands do: same keys, same ledger, same refusals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import pytest
import typer
from torch_geometric.data import Data

import bench as augbench
from augmenters import GDM, DropEdge, MMixup
from bench.cli.app import app
from bench.execution.precision import Precision
from bench.plan.grids import Grid
from bench.public.options import RunOptions, TuneOptions, run_request
from bench.registry import UserError

Command = Callable[..., tuple[int, str, str]]
SMALL: dict[str, Any] = {"folds": 2, "repeats": 1, "epochs": 2, "executor": "serial"}


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    import own_methods  # type: ignore[import-not-found]

    yield own_methods
    sys.modules.pop("own_methods", None)


def labels(plan: Any) -> list[str]:
    return [cell.augmenter.label for cell in plan.cells]


def small_plan(augmenters: Any, **more: Any) -> Any:
    return augbench.plan("synthetic:graphs=60", augmenters, 2, **more)


def test_a_run_is_the_commands_run(
    bench: Command, workspace: Callable[[str], Path], capfd: pytest.CaptureFixture[str], tools: ModuleType
) -> None:
    """What the shell has run, Python does not run again, and the other way round."""
    runs = workspace("runs")
    words = ["-d", "synthetic:graphs=60", "-k", "2", "--folds", "2", "--repeats", "1", "--epochs", "2"]
    call = ["run", *words, "--executor", "serial", "-w", str(runs)]
    assert bench(*call, "-a", "none", "-a", "dropedge:p=0.4")[0] == 0
    capfd.readouterr()
    methods = ["none", DropEdge(p=0.4), MMixup]
    results = augbench.run("synthetic:graphs=60", methods, 2, workspace=runs, **SMALL)
    assert capfd.readouterr() == ("", ""), "nothing is printed unless it is asked for"
    assert sorted(results.cells["augmenter"]) == ["dropedge:p=0.4", "m-mixup", "none"]
    assert tools.trial_lines(runs) == len(results) == 6, "two methods were there, m-mixup was new"
    code, out, _ = bench(*call, "-a", "none", "-a", "m-mixup", "-a", "dropedge:p=0.4")
    assert code == 0 and "6 trials done already" in out
    assert tools.trial_lines(runs) == 6


def test_an_instance_is_known_by_its_name_and_settings() -> None:
    plan = small_plan([DropEdge(), DropEdge(p=0.4), DropEdge, GDM(sampler="unc"), GDM(sampler="acc", without="low")])
    assert labels(plan) == ["dropedge", "dropedge:p=0.4", "gdm-unc", "gdm-acc:without=low"]
    assert [cell.key for cell in plan.cells] == [
        cell.key for cell in small_plan(["dropedge", "dropedge:p=0.4", "gdm-unc", "gdm-acc:without=low"]).cells
    ]


def test_a_class_of_ones_own_module_is_known_by_its_path(own: ModuleType) -> None:
    plan = small_plan([own.Shifted, own.Shifted(by=2.0)])
    assert labels(plan) == ["own_methods:Shifted", "own_methods:Shifted:by=2"]
    assert "+" in str(plan.cells[0].versions["augmenter"]), "a hash of the source is part of it"


def test_what_cannot_be_made_again_is_refused(own: ModuleType) -> None:
    for method, reason in (
        (own.Listed([1.0]), "values is not a setting that can be written as text"),
        (own.Forgetful(), "does not keep its setting p"),
        (own.NoAugmenter(), "cannot be used as the augmenter; pass a name or a"),
        (own.nested(), "own_methods|top level"),
        (3, "int cannot be used as the augmenter"),
    ):
        with pytest.raises(UserError, match=reason):
            small_plan([method])


def test_graphs_in_memory_are_a_dataset(
    tmp_path: Path, workspace: Callable[[str], Path], some_graphs: Callable[..., list[Data]]
) -> None:
    graphs = [graph for seed in range(5) for graph in some_graphs(seed)]
    runs, data = workspace("runs"), tmp_path / "data"
    results = augbench.run([graphs], "none", 1, workspace=runs, data=data, **SMALL)
    [name] = results.cells["dataset"].unique()
    assert name.startswith("graphs-") and len(results) == 2
    assert (
        augbench.plan(name, "none", 1, data=data, **{k: SMALL[k] for k in ("folds", "repeats", "epochs")}).pending(
            results.state
        )
        == []
    ), "by its name it is the same dataset"
    [named] = augbench.plan({"mine": graphs}, "none", 1, data=data).cells
    assert (named.dataset, named.versions["dataset"]) == ("mine", results.cells["versions.dataset"].iloc[0])
    for wrong, reason in (
        ({"mine": graphs[:20]}, "different graphs under the name 'mine'"),
        (graphs, "write datasets=\\[graphs\\]"),
        ([graphs[0]], "write datasets=\\[graphs\\]"),
        ([[1, 2]], "a dataset cannot be a list"),
        ([None], "a dataset cannot be a NoneType"),
    ):
        with pytest.raises(UserError, match=reason):
            augbench.plan(wrong, data=data)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"fold": 3}, "unknown keyword of bench.plan 'fold'. Did you mean: folds"),
        ({"jobs": 2}, "unknown keyword of bench.plan 'jobs'"),
        ({"augmenters": "dropedg"}, "unknown augmenter 'dropedg'. Did you mean: dropedge"),
        ({"k": "2"}, "k='2' is not a whole number"),
        ({"k": [2.5]}, "k=2.5 is not a whole number"),
        ({"models": "wl", "learners": "wl"}, "models and learners mean the same"),
        ({"learners": "wl", "backbones": "gin"}, "wl has no backbone"),
        ({"datasets": None, "k": 3}, "these axes need a dataset"),
    ],
)
def test_a_mistake_is_one_line(words: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        augbench.plan(**{"datasets": "digits", **words})


@pytest.mark.parametrize(
    ("function", "options", "elsewhere"),
    [
        # a plan is a call of its own in Python, and axes are in the plural or stand without a name
        ("run", RunOptions, {"dataset", "augmenter", "k", "backbone", "readout", "learner", "dry_run", "probe"}),
        # studies are read with the command line
        ("tune", TuneOptions, {"dataset", "augmenter", "k", "backbone", "readout", "learner", "status", "by_fold"}),
    ],
)
def test_every_option_of_the_command_is_a_keyword(function: str, options: Any, elsewhere: set[str]) -> None:
    command = typer.main.get_command(app).commands[function]  # type: ignore[attr-defined]
    flags = {max(parameter.opts, key=len).strip("-").replace("-", "_") for parameter in command.params}
    mine = {"backbones", "readouts", "learners", "models", "progress"}
    assert flags - elsewhere == set(get_type_hints(options)) - mine


def test_options_with_a_shape_of_their_own_reach_the_request() -> None:
    words: dict[str, Any] = {"metric": "roc_auc", "shard": "1/2", "precision": 1.5, "max_repeats": 4, "jobs": 3}
    request = run_request("digits", "none", 2, {**words, "executor": "slurm", "cluster": {"partition": "cpu"}})
    assert request.grid.metric == "roc_auc" and request.shard == "1/2" and request.jobs == 3
    assert request.precision == Precision(1.5, 4) and request.cluster_options == {"partition": "cpu"}
    with pytest.raises(UserError, match="--max-repeats 4 limits --precision"):
        run_request("digits", "none", 2, {"max_repeats": 4})


def test_sources_may_come_as_a_list(tmp_path: Path, workspace: Callable[[str], Path]) -> None:
    runs = workspace("runs")
    augbench.run("synthetic:graphs=60", "none", 2, workspace=runs, data=tmp_path / "data", **SMALL)
    assert len(augbench.load([runs, runs / "ledger.jsonl"])) == len(augbench.load(runs, runs)) == 2
    with pytest.raises(UserError, match="3 is not a path; give workspaces"):
        augbench.load([runs, 3])  # type: ignore[list-item]


def test_a_grid_is_narrowed_as_on_the_command_line() -> None:
    plan = augbench.plan(grid="quick", augmenters=["none", "gdm-unc"], k=10, folds=1)
    assert (plan.size, plan.grid.folds, plan.grid.preset) == (4, 1, "quick")
    given = augbench.plan(grid=Grid("mine", plan.grid.cells), datasets="digits", augmenters="none")
    assert [cell.label for cell in given.cells] == ["digits k=10 none gcn mean"]
    learners = augbench.plan("digits", k=[2], models=["wl", "gnn"], backbones=["gin", "gcn"])
    assert [cell.model for cell in learners.cells] == ["wl", "gin mean", "gcn mean"]


def test_check_takes_classes_and_instances(own: ModuleType) -> None:
    report = augbench.check(own.Shifted(by=0.25))
    assert report.name == "own_methods:Shifted:by=0.25" and not report.broken
    with pytest.raises(UserError, match="NoAugmenter cannot be checked; derive it from one of Augmenter"):
        augbench.check(own.NoAugmenter)
