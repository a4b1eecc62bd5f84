"""Methods that misbehave: whatever one does, its trial fails with the reason, and the grid goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bench.execution.containment import MOST_WARNINGS, TaskFailed, WarningFilter, contained, ending
from bench.registry import UserError

Make = Callable[..., Path]
RAISED = {"Exits": "SystemExit: 3", "Interrupts": "KeyboardInterrupt", "Leaves": "GeneratorExit"}


@pytest.mark.parametrize("how", [{"jobs": 1}, {"jobs": 2}, {"executor": "dask", "jobs": 1}])
def test_a_method_that_ends_its_process_or_never_returns_is_a_failed_trial(
    how: dict[str, object], workspace: Make, tools: ModuleType, misbehaving: str
) -> None:
    """The old code ended the grid with code 3, or with `stopped`, or never."""
    folder = workspace()
    names = [*RAISED, "Dies", "Loops"]
    grid = tools.grid([*(f"{misbehaving}:{name}" for name in names), "none"], folds=1)
    code, out = tools.run(grid, folder, trial_timeout=6, **how)
    assert code == 1 and "5 trials have no result" in out
    ends = tools.ends(folder)
    assert {name: record.status for name, record in ends.items()} == dict.fromkeys(names, "failed") | {"none": "done"}
    for name, words in RAISED.items():
        assert ends[name].reason == f"{words}; a method must return or raise an Exception, not end its process"
    assert ends["Loops"].reason == "took longer than 6 s (--trial-timeout); its worker was ended"
    assert "times in a row with no other trial beside it" in ends["Dies"].reason
    assert tools.trial_lines(folder) == len(names) + 1


def test_a_search_counts_such_trials_as_failed_and_goes_on(
    workspace: Make, tuning: ModuleType, misbehaving: str
) -> None:
    grid = tuning.grid([f"{misbehaving}:{name}" for name in ("Exits", "Dies", "Loops")] + ["none"], folds=1)
    code, out = tuning.tune(grid, workspace(), 1, jobs=1, trial_timeout=6)
    assert code == 1
    for words in ("SystemExit: 3; a method must return", "2 times in a row with no other", "took longer than 6 s"):
        assert out.count(words) == 1, out
    assert "none gcn mean (constant, stratified): the defaults are best on 1 of 1 folds" in out


def test_in_this_process_a_method_that_exits_is_a_failed_trial_too(
    workspace: Make, tools: ModuleType, misbehaving: str
) -> None:
    folder = workspace()
    grid = tools.grid([f"{misbehaving}:Exits", f"{misbehaving}:Leaves", "none"], folds=1)
    assert tools.run(grid, folder, executor="serial")[0] == 1
    assert {name: record.status for name, record in tools.ends(folder).items()} == {
        "Exits": "failed",
        "Leaves": "failed",
        "none": "done",
    }


def test_a_time_limit_ends_one_trial_of_a_bundle_and_keeps_the_others(
    workspace: Make, tools: ModuleType, misbehaving: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workspace()
    grid = tools.grid([f"{misbehaving}:Sometimes:loop={loop}" for loop in ("false", "true")], folds=1)
    assert tools.run(grid, folder, trial_timeout=5, jobs=1)[0] == 1
    state = tools.state(folder)
    ends = {
        state.cells[key].augmenter.settings["loop"]: record.status
        for key, trials in state.trials.items()
        for record in trials.values()
    }
    assert ends == {False: "done", True: "failed"}


def test_last_words_are_part_of_the_reason(workspace: Make, tools: ModuleType, misbehaving: str) -> None:
    folder = workspace()
    code, out = tools.run(tools.grid([f"{misbehaving}:Aborts"], folds=1), folder, jobs=1)
    assert code == 1
    assert "died of SIGABRT (its last output: about to abort [not markup])" in tools.ends(folder)["Aborts"].reason
    assert "about to abort [not markup]" in out


@pytest.mark.parametrize("executor", ["local", "dask"])
def test_a_storm_of_output_and_warnings_reaches_the_terminal_as_a_few_lines(
    executor: str, tmp_path: Path, tools: ModuleType, misbehaving: str
) -> None:
    """Output of workers is dropped, and each warning is shown once, up to a bound."""
    words = ["-d", "synthetic:graphs=60", "-k", "2", "--folds", "1", "--repeats", "1", "--epochs", "2", "--jobs", "1"]
    words += ["-a", f"{misbehaving}:Storms", "-a", "none", "--executor", executor]
    paths = {"PYTHONPATH": f"{tmp_path}:{tools.ROOT}"}
    process = tools.start(tmp_path / "runs", words, paths)
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 0, out[-3000:]
    assert "a line of a storm" not in out
    assert out.count("the same again and again") == 1
    assert out.count("storm number") == MOST_WARNINGS - 1 and "no more are shown" in " ".join(out.split())
    assert len(out) < 10_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trial_timeout": 0}, "--trial-timeout 0 leaves no time; give more than 0 seconds"),
        ({"trial_timeout": 3, "executor": "serial"}, "--trial-timeout 3: the executor serial cannot stop a trial"),
    ],
)
def test_a_limit_that_cannot_be_held_is_refused(
    options: dict[str, object], message: str, tmp_path: Path, tools: ModuleType
) -> None:
    with pytest.raises(UserError, match=message):
        tools.run(tools.grid(), tmp_path / "runs", **options)


def test_the_users_own_interrupt_is_not_a_methods() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        contained(interrupt)
    with pytest.raises(TaskFailed, match="SystemExit: 7; a method must return"):
        contained(sys.exit, 7)
    assert ending(UserError("as it is")) == "as it is"


def test_warnings_once_each_and_not_for_ever() -> None:
    said: list[str] = []
    hear = WarningFilter(said.append)
    for number in range(1000):
        hear("the same\nin two lines")
        hear(f"another {number}")
    assert said[0] == "the same in two lines"
    assert len(said) == MOST_WARNINGS + 1 and said[-1].startswith(f"more than {MOST_WARNINGS} different warnings")
