"""Plans: what runs, in which order, what cannot run and why, and that none of it needs torch the second time."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from augmenters import AUGMENTERS
from bench.execution.trial import engines
from bench.plan.cells import PARTS, Trial
from bench.plan.grids import Grid, product
from bench.plan.identity import ENGINE_VERSIONS, current_versions, stale_parts
from bench.plan.planner import Plan, Planner
from bench.plan.plugin_cache import Resolver
from bench.registry import Choice, Registry, UserError
from bench.results.ledger import LedgerState
from bench.results.records import PlanRecord, TrialRecord
from bench.sources import source_stamp


def plan_of(root: Path, *augmenters: str, folds: int = 3, repeats: int = 2, **options: bool) -> Plan:
    grid = Grid("g", product(["synthetic"], augmenters or ["none", "dropedge"], [2]), folds=folds, repeats=repeats)
    return Planner(root, "reference").plan(grid, **options)


def test_breadth_first_over_folds_so_that_an_interrupted_grid_is_balanced(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    jobs = plan.pending(LedgerState())
    assert len(jobs) == plan.size == 12
    assert [trial for _, trial in jobs[:4]] == [Trial(0, 0), Trial(0, 0), Trial(1, 0), Trial(1, 0)]
    for stop in range(len(jobs)):
        counts = [sum(cell is one for one, _ in jobs[:stop]) for cell in plan.cells]
        assert max(counts) - min(counts) <= 1


def test_done_trials_are_skipped_and_failed_ones_retried_unless_left(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "none")
    key, state = plan.cells[0].key, LedgerState()
    state.take(TrialRecord(key, 0, 0, "done", accuracy=0.5))
    state.take(TrialRecord(key, 1, 0, "failed", "x"))
    state.take(TrialRecord(key, 9, 0, "failed", "not planned"))
    assert len(plan.pending(state)) == 5
    assert len(plan.pending(state, retry=False)) == 4
    assert plan.done(state) == 1
    assert [record.fold for _, record in state.failures(plan.cells, plan.trials)] == [1]


def test_a_missing_dataset_stops_everything_with_the_remedy(tmp_path: Path) -> None:
    grid = Grid("g", product(["synthetic", "PROTEINS"]))
    with pytest.raises(
        UserError, match=r"PROTEINS is not in the data root .* `bench data fetch PROTEINS` .*--skip-una"
    ):
        Planner(tmp_path, "reference").plan(grid)


def test_what_was_skipped_is_in_the_plans_record(tmp_path: Path) -> None:
    grid = Grid("g", product(["synthetic", "PROTEINS"], k=[2, 3]))
    plan = Planner(tmp_path, "reference").plan(grid, skip_unavailable=True)
    record = json.loads(json.dumps(PlanRecord.of(plan).to_json()))
    assert len(plan.cells) == 2
    assert [item["cell"]["dataset"] for item in record["skipped"]] == ["PROTEINS", "PROTEINS"]
    assert [item["cell"]["k"] for item in record["skipped"]] == [2, 3]
    assert "bench data fetch PROTEINS" in record["skipped"][0]["reason"]


def test_a_grid_of_which_nothing_can_run_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no cell of the grid g can run: PROTEINS"):
        Planner(tmp_path, "reference").plan(Grid("g", product(["PROTEINS"])), skip_unavailable=True)


def test_edge_weights_need_a_backbone_that_reads_them(tmp_path: Path) -> None:
    grid = Grid("g", product(["synthetic"], ["softedge"], backbones=["gat"]))
    with pytest.raises(UserError, match="softedge with gat: SoftEdge makes edge weights, which GAT does not read"):
        Planner(tmp_path, "reference").plan(grid)


def test_a_changed_version_is_a_stale_part(tmp_path: Path) -> None:
    cell = plan_of(tmp_path, "none").cells[0]
    assert stale_parts(cell) == {}
    then = {**cell.versions, "torch": "1.0", "augmenter": 0}
    now = current_versions({part: getattr(cell, part).name for part in PARTS}, "reference", "cpu")
    assert now.items() <= cell.versions.items()
    assert stale_parts(replace(cell, versions=then)) == {
        "torch": ("1.0", now["torch"]),
        "augmenter": (0, now["augmenter"]),
    }


def test_the_kind_of_device_is_part_of_the_key_and_its_number_is_not(tmp_path: Path) -> None:
    grid = Grid("g", product(["synthetic"]))
    here, one, other = (Planner(tmp_path, device=name).plan(grid).cells[0] for name in ("cpu", "cuda:0", "cuda:1"))
    assert one == other and one.key != here.key
    assert (one.versions["device"], one.versions["engine"]) == ("cuda", "reference")
    assert (here.versions["device"], here.versions["engine"]) == ("cpu", "fast")


def test_every_engine_has_a_version_which_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ENGINE_VERSIONS.keys() == engines().keys()
    before = plan_of(tmp_path, "none").cells[0]
    monkeypatch.setitem(ENGINE_VERSIONS, "reference", 99)
    after = plan_of(tmp_path, "none").cells[0]
    assert after.key != before.key
    assert stale_parts(before) == {"engine-version": (before.versions["engine-version"], 99)}


def test_a_plug_in_that_is_gone_is_stale_too(tmp_path: Path) -> None:
    cell = plan_of(tmp_path, "none").cells[0]
    assert "plug-ins" in stale_parts(replace(cell, augmenter=Choice("gone", {}, "gone")))


def test_a_second_plan_resolves_from_disk_and_gives_the_same_cells(tmp_path: Path) -> None:
    specs = ["gdm-acc:eps=0.2,encoder=vgsae", "dropedge", "softedge"]
    first = Resolver(tmp_path / "plugins.json")
    learned = [first.resolve(AUGMENTERS, spec) for spec in specs]
    first.save()
    assert [Resolver(tmp_path / "plugins.json").resolve(AUGMENTERS, spec) for spec in specs] == learned
    assert [resolved.choice for resolved in learned] == [AUGMENTERS.resolve(spec) for spec in specs]
    assert [resolved.choice.settings for resolved in learned][1] == {"features": "carry", "p": 0.25}


def test_a_changed_source_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "changing_plugin"
    package.mkdir()
    (package / "__init__.py").touch()
    source = "from bench.learning.gnn import GNN\nclass Mine(GNN):\n    network = {}\n"
    (package / "methods.py").write_text(source.format(False), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("learner", "augbench.none", "bench.learning.learner:Learner")
    first = Resolver(tmp_path / "plugins.json")
    assert not first.resolve(registry, "changing_plugin.methods:Mine").flags["network"]
    first.save()
    (package / "methods.py").write_text(source.format(True), encoding="utf-8")
    source_stamp.cache_clear()
    for name in [name for name in sys.modules if name.startswith("changing_plugin")]:
        monkeypatch.delitem(sys.modules, name)
    second = Resolver(tmp_path / "plugins.json")
    assert second.resolve(registry, "changing_plugin.methods:Mine").flags["network"]


@pytest.mark.parametrize("content", ["", "nonsense", "[]", '{"augmenter none": 3}', '{"augmenter none": {"stamp": 1}}'])
def test_a_damaged_cache_is_passed_over(tmp_path: Path, content: str) -> None:
    (tmp_path / "plugins.json").write_text(content, encoding="utf-8")
    resolver = Resolver(tmp_path / "plugins.json")
    assert resolver.resolve(AUGMENTERS, "none").choice.name == "none"
    resolver.save()
    assert json.loads((tmp_path / "plugins.json").read_text(encoding="utf-8"))["augmenter none"]["stamp"]


def test_planning_full_again_needs_no_torch_and_less_than_a_second(
    data_root: Path, tmp_path: Path, tools: ModuleType
) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\nfrom bench.cli.dry_run import preview\n"
        "from bench.execution.request import RunRequest\n"
        "from bench.plan.grids import named_grid\n"
        "preview(RunRequest(named_grid('full'), Path('none'), Path(sys.argv[1])), probe=False)\n"
        "print('torch' in sys.modules, time.process_time())"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program, str(data_root)],
            cwd=tools.ROOT,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": str(tools.ROOT), "XDG_CACHE_HOME": str(tmp_path), "PATH": ""},
        ).stdout
        for _ in range(2)
    ]
    assert "440 cells, 13200 trials" in outputs[1]
    torch_imported, seconds = outputs[1].splitlines()[-1].split()
    assert torch_imported == "False"
    assert float(seconds) < 1  # of processor time; the clock of a busy machine says little
