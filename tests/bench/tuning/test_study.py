"""Studies: the defaults first, the same sequence for the same seed, never more trials than the budget."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from optuna.trial import TrialState

from bench.execution.pool import WorkerLost
from bench.plan.cells import Cell
from bench.registry import UserError
from bench.tuning import study as studies
from bench.tuning.space import space_for
from bench.tuning.storage import Storage
from bench.tuning.study import SILENT_SECONDS, MethodStudy, best_of, own_identity, seems_alive
from bench.tuning.summary import summarize


@pytest.fixture
def storage(tmp_path: Path, tuning: ModuleType) -> Storage:
    return Storage(tuning.url(tmp_path))


@pytest.fixture(scope="module")
def cell(tuning: ModuleType) -> Cell:
    made: Cell = tuning.cell()
    return made


def running(study: MethodStudy) -> list[int]:
    return [trial.number for trial in study.study.get_trials(states=(TrialState.RUNNING,))]


def test_the_defaults_are_the_first_trial_so_the_best_is_never_worse(
    storage: Storage, cell: Cell, tuning: ModuleType
) -> None:
    study, pool = tuning.study(storage, cell, 6), tuning.PretendingPool()
    tuning.search([study], pool)
    assert [Cell.from_json(work["cell"]) for work in pool.works[: tuning.FOLDS]] == [cell] * tuning.FOLDS
    facts = summarize(study.study)
    expected = sum(tuning.pretended(work) for work in pool.works[: tuning.FOLDS]) / tuning.FOLDS
    assert facts.default == pytest.approx(expected)
    assert facts.best is not None and facts.best.value is not None and facts.best.value >= facts.default
    assert len(facts.trials) == 6 and pool.closed


@pytest.mark.parametrize("sampler", ["tpe", "gp", "random"])
def test_the_same_seed_gives_the_same_sequence(tmp_path: Path, cell: Cell, tuning: ModuleType, sampler: str) -> None:
    found = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        study = tuning.study(Storage(tuning.url(tmp_path / folder)), cell, 12, sampler=sampler)
        tuning.search([study])
        found.append(tuning.sequence(study))
    assert found[0] == found[1] and len(found[0]) == 12
    settings = [str(row[3]) for row in found[0]]
    assert len(set(settings)) == 12


def test_another_seed_gives_another_sequence(storage: Storage, tmp_path: Path, cell: Cell, tuning: ModuleType) -> None:
    one = tuning.study(storage, cell, 3)
    (tmp_path / "other").mkdir()
    other = tuning.study(Storage(tuning.url(tmp_path / "other")), cell, 3, seed=1)
    tuning.search([one])
    tuning.search([other])
    assert tuning.sequence(one)[0] == tuning.sequence(other)[0], "the defaults"
    assert tuning.sequence(one)[1:] != tuning.sequence(other)[1:]


def test_the_sequence_does_not_hang_on_the_number_of_workers(tmp_path: Path, tuning: ModuleType) -> None:
    cells = [tuning.cell("none"), tuning.cell("dropedge")]
    found = []
    for size in (1, 7):
        (tmp_path / str(size)).mkdir()
        storage = Storage(tuning.url(tmp_path / str(size)))
        made = [tuning.study(storage, cell, 9) for cell in cells]
        tuning.search(made, tuning.PretendingPool(size))
        found.append([tuning.sequence(study) for study in made])
    assert found[0] == found[1]
    assert any(row[1] == "PRUNED" for study in found[0] for row in study), "the pruner had its say"


def test_folds_are_searched_apart_and_alike_with_any_number_of_workers(tmp_path: Path, tuning: ModuleType) -> None:
    found = []
    for size, folds in ((1, range(tuning.FOLDS)), (7, range(tuning.FOLDS)), (1, [2])):
        (tmp_path / f"{size} {len(folds)}").mkdir()
        storage = Storage(tuning.url(tmp_path / f"{size} {len(folds)}"))
        made = [tuning.by_fold(storage, tuning.cell(name), 7)[fold] for name in ("none", "dropedge") for fold in folds]
        pool = tuning.PretendingPool(size)
        tuning.search(made, pool)
        assert len(pool.works) == 2 * 7 * len(folds), "as many trainings as one pooled study of 7 trials"
        found.append({study.name: tuning.sequence(study) for study in made})
    assert found[0] == found[1] and len(found[0]) == 2 * tuning.FOLDS
    assert found[2].items() <= found[0].items(), "a fold's sequence is the same without the others"
    assert len({str(rows[1:]) for rows in found[0].values()}) == 2 * tuning.FOLDS, "each has its own"


def test_a_trial_of_a_fold_is_the_mean_over_its_label_draws(storage: Storage, cell: Cell, tuning: ModuleType) -> None:
    extent, pool = studies.extents(3, 2, pooled=False)[1], tuning.PretendingPool(answer=lambda work: work["repeat"] / 4)
    study = MethodStudy(storage, cell, space_for(cell, {}), extent, "budget", studies.Search(1))
    tuning.search([study], pool)
    assert [(work["fold"], work["repeat"]) for work in pool.works] == [(1, 0), (1, 1)]
    facts = summarize(study.study)
    assert facts.fold == 1 and facts.default == 0.125 and study.name.endswith(", fold 1")


def test_stopped_anywhere_and_resumed_it_tries_what_an_unbroken_search_would_have(
    storage: Storage, tmp_path: Path, cell: Cell, tuning: ModuleType
) -> None:
    (tmp_path / "whole").mkdir()
    whole = tuning.study(Storage(tuning.url(tmp_path / "whole")), cell, 13)
    tuning.search([whole])

    class Stopped(Exception):
        pass

    left = [11]

    def stopping(work: Mapping[str, Any]) -> float:
        left[0] -= 1
        if left[0] < 0:
            raise Stopped
        return float(tuning.pretended(work))

    for _ in range(3):
        study = tuning.study(storage, cell, 13)
        left[0] = 11
        with pytest.raises(Stopped):
            tuning.search([study], tuning.PretendingPool(answer=stopping))
        assert running(study) == [], "what was under way was handed back"
    tuning.search([tuning.study(storage, cell, 13)])
    assert tuning.sequence(study) == tuning.sequence(whole)


def test_a_larger_budget_goes_on_and_a_spent_one_does_nothing(storage: Storage, cell: Cell, tuning: ModuleType) -> None:
    tuning.search([tuning.study(storage, cell, 3)])
    pool = tuning.PretendingPool()
    tuning.search([tuning.study(storage, cell, 3)], pool)
    assert pool.works == []
    more = tuning.study(storage, cell, 5)
    tuning.search([more], pool)
    assert len(tuning.sequence(more)) == 5 and summarize(more.study).wanted == 5


def test_turns_of_a_dead_process_are_free_again_and_those_of_a_living_one_are_not(
    storage: Storage, cell: Cell, tuning: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tuning.study(storage, cell, 3)
    held = study.take()
    assert held is not None and held.number == 0
    with monkeypatch.context() as patch:
        patch.setattr(studies, "own_identity", lambda: {**own_identity(), "born": 1.0})  # a process id that was reused
        lost = study.take()
        assert lost is not None and lost.number == 1
    again = study.take()
    assert again is not None and again.number == 1, "the lost turn, not a new one"
    assert again.trial.params == lost.trial.params
    assert study.take().number == 2 and study.take() is None
    study.complete(lost, [1.0])  # it was not dead after all: too late, its turn is another's
    assert best_of(study.turns()) is None


def test_a_process_elsewhere_is_judged_by_its_signs_of_life() -> None:
    elsewhere = {**own_identity(), "host": "another machine"}
    assert seems_alive(elsewhere, time.time() - SILENT_SECONDS / 2)
    assert not seems_alive(elsewhere, time.time() - SILENT_SECONDS * 2)
    assert seems_alive(own_identity(), 0.0)


def test_a_trial_given_away_meanwhile_is_dropped_without_a_word(
    storage: Storage, cell: Cell, tuning: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tuning.study(storage, cell, 2)
    calls = []

    def answer(work: Mapping[str, Any]) -> float:
        calls.append(work)
        if len(calls) == 2:  # another process takes this one for dead
            with monkeypatch.context() as patch:
                patch.setattr(studies, "seems_alive", lambda owner, sign: False)
                study._release_the_dead()
        return float(tuning.pretended(work))

    tuning.search([study], tuning.PretendingPool(answer=answer))
    assert [row[:2] for row in tuning.sequence(study)] == [(0, "COMPLETE"), (1, "COMPLETE")]


def test_proposals_made_before_are_not_run_again(storage: Storage, tuning: ModuleType) -> None:
    narrowing = {"lr": "0.004|0.01", "weight_decay": "0", "width": "8", "layers": "2", "dropout": "0"}
    study, pool = tuning.study(storage, tuning.cell("none"), 6, narrowing), tuning.PretendingPool()
    tuning.search([study], pool)
    assert len(tuning.sequence(study)) == 6, "they count, all the same"
    assert len(pool.works) == 2 * tuning.FOLDS
    facts = summarize(study.study)
    assert facts.best is not None and facts.best.settings == {"training.lr": 0.004}
    assert {trial.value for trial in facts.trials} == {facts.default, facts.best.value}
    assert sum("same settings as trial" in trial.reason for trial in facts.trials) == 4


def test_settings_that_fail_or_diverge_spend_their_turn_and_say_why(
    storage: Storage, cell: Cell, tuning: ModuleType
) -> None:
    def answer(work: Mapping[str, Any]) -> Any:
        rate = work["cell"]["training"]["lr"]
        if rate > 0.015:
            return {"status": "diverged", "reason": "the loss is nan in epoch 3"}
        if rate < 0.002:
            return {"status": "failed", "reason": "RuntimeError: boom"}
        return tuning.pretended(work)

    study = tuning.study(storage, cell, 12, sampler="random", pruner="none")
    tuning.search([study], tuning.PretendingPool(answer=answer))
    facts = summarize(study.study)
    assert len(facts.trials) == 12
    reasons = {trial.reason: trial.state for trial in facts.trials if trial.reason}
    assert reasons == {"the loss is nan in epoch 3": "given up", "RuntimeError: boom": "failed"}
    again = tuning.PretendingPool()
    tuning.search([tuning.study(storage, cell, 12)], again)
    assert again.works == []


@pytest.mark.parametrize("size", [1, 3])
def test_only_the_trial_that_brings_workers_down_is_lost(storage: Storage, tuning: ModuleType, size: int) -> None:
    def answer(work: Mapping[str, Any]) -> float:
        if work["cell"]["augmenter"]["name"] == "dropnode" and work["fold"] == 1:
            raise WorkerLost("its worker process died")
        if size > 1 and len(pool.works) == 3:
            raise WorkerLost("in flight beside it")
        return float(tuning.pretended(work))

    made = [tuning.study(storage, tuning.cell(name), 2) for name in ("none", "dropnode", "dropedge")]
    pool = tuning.PretendingPool(size, answer)
    tuning.search(made, pool)
    states = [{row[1] for row in tuning.sequence(study)} for study in made]
    assert states == [{"COMPLETE"}, {"FAIL"}, {"COMPLETE"}]


def test_after_the_time_is_up_nothing_new_begins(storage: Storage, cell: Cell, tuning: ModuleType) -> None:
    study = tuning.study(storage, cell, 50)

    def slow(work: Mapping[str, Any]) -> float:
        time.sleep(0.02)
        return float(tuning.pretended(work))

    tuning.search([study], tuning.PretendingPool(answer=slow), deadline=time.monotonic() + 0.3)
    facts = summarize(study.study)
    assert 1 <= len(facts.trials) < 50 and facts.running == 0


@pytest.mark.parametrize("pruner", ["median", "wilcoxon"])
def test_bad_trials_are_given_up_after_the_first_folds_but_never_the_defaults(
    storage: Storage, cell: Cell, tuning: ModuleType, pruner: str
) -> None:
    folds = 10

    def answer(work: Mapping[str, Any]) -> float:
        trial = pool.works.index(work) if work in pool.works else 0
        return 0.2 if trial == 0 or bad(work) else 0.8 + work["fold"] / 100

    def bad(work: Mapping[str, Any]) -> bool:
        return bool(work["cell"]["training"]["lr"] == 0.01 or work["cell"]["training"]["lr"] < 0.004)

    extent, search = studies.Extent(tuple(range(folds)), 1, pooled=True), studies.Search(16, "random", pruner)
    study = MethodStudy(storage, cell, space_for(cell, {}), extent, "budget", search)
    pool = tuning.PretendingPool(answer=answer)
    tuning.search([study], pool)
    facts = summarize(study.study)
    defaults = next(trial for trial in facts.trials if trial.turn == 0)
    assert defaults.state == "complete" and len(defaults.accuracies) == folds, "though they were bad"
    given_up = [trial for trial in facts.trials if trial.state == "given up"]
    assert given_up and all(3 <= len(trial.accuracies) < folds for trial in given_up)
    assert all(trial.settings["training.lr"] < 0.004 for trial in given_up)
    assert len(pool.works) < 16 * folds


def test_a_study_from_something_else_is_refused_in_one_line(storage: Storage, cell: Cell, tuning: ModuleType) -> None:
    tuning.study(storage, cell, 2)
    with pytest.raises(UserError, match=r"another search space \(training.lr") as error:
        tuning.study(storage, cell, 2, {"lr": "0.002..0.02"})
    assert "choose another --storage" in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(UserError, match=r"another training \(preset \"quick\+epochs=2\", now \"quick\+epochs=3\"\)"):
        tuning.study(storage, tuning.cell(epochs=3), 2)
    with pytest.raises(UserError, match="another validation"):
        MethodStudy(storage, cell, studies.Space((), {}), tuning.POOLED, "full", studies.Search(2))
    stranger = studies.study_name(tuning.cell("none"))
    storage.new_study(stranger).ask()
    with pytest.raises(UserError, match="was not made by bench tune"):
        tuning.study(storage, tuning.cell("none"), 2)
