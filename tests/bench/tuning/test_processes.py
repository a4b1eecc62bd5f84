"""Several processes on one study, and processes that are killed: on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bench.tuning.storage import Storage
from bench.tuning.study import turns_of
from bench.tuning.summary import StudyFacts, studies_in

Make = Callable[..., Path]
SLEEPY = """
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from augmenters.controls import Unchanged
from bench.registry import Tune, Within

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Sleepy(Unchanged):
    depth: Annotated[float, Within(0, 1), Tune(0.0, 1.0)] = 0.5

    def draw(self, graphs, rng, context):
        # a machine may take long to start another process: wait for those that are to come
        (HERE / f"{os.getpid()}.here").touch()
        deadline = time.monotonic() + 100
        while len(list(HERE.glob("*.here"))) < int(os.environ.get("COMPANY", 1)) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.1)
        return super().draw(graphs, rng, context)
"""
WORDS = ["-d", "synthetic:graphs=60", "-k", "2", "--epochs", "2", "--folds", "3", "--space", "gcn.dropout=0"]


@pytest.fixture(params=["sqlite", "postgresql"])
def storage_url(request: pytest.FixtureRequest, tmp_path: Path, tuning: ModuleType) -> str:
    url: str = tuning.url(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgresql").url
    return url


@pytest.fixture
def sleepy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A third party's augmenter, given by its path, that takes its time."""
    package = tmp_path / f"sleepy_{abs(hash(str(tmp_path)))}"  # a study of its own on a server that tests share
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "methods.py").write_text(SLEEPY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return f"{package.name}.methods:Sleepy"


def studies_of(storage: Storage, method: str) -> list[StudyFacts]:
    """Those of a method's folds."""
    return [study for study in studies_in(storage) if study.facts["augmenter"] == method]


def test_two_processes_on_the_same_studies_share_their_budgets(
    workspace: Make, tuning: ModuleType, storage_url: str, sleepy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPANY", "2")
    words = [*WORDS, "-a", sleepy, "-n", "5", "-j", "1", "--storage", storage_url]
    processes = [tuning.start(workspace(name), words) for name in ("one", "other")]
    outputs = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    storage = Storage(storage_url)
    found, owners = studies_of(storage, sleepy), set()
    assert [study.fold for study in found] == [0, 1, 2]
    for study in found:
        assert study.wanted == 5 and study.running == 0
        trials = storage.study(study.name).get_trials()
        assert len(trials) == 5, "no trial too many, not even a failed one"
        assert sorted(trial.turn for trial in study.trials) == list(range(5))
        assert len({str(trial.settings) for trial in study.trials}) == 5, "no trial twice"
        owners |= {trial.user_attrs["augbench"]["owner"]["pid"] for trial in trials}
    assert owners == {process.pid for process in processes}, "both took part"


def test_killed_and_started_again_it_loses_nothing_and_ends_as_if_nothing_had_happened(
    workspace: Make, tools: ModuleType, tuning: ModuleType, storage_url: str, sleepy: str
) -> None:
    words = [*WORDS, "-a", sleepy, "-n", "4", "-j", "2", "--seed", "5", "--storage", storage_url]
    folder, whole, storage = workspace("killed"), workspace("whole"), Storage(storage_url)

    def finished() -> dict[tuple[int | None, int], object]:
        return {(study.fold, trial.number): trial for study in studies_of(storage, sleepy) for trial in study.trials}

    process = tuning.start(folder, words)
    tools.wait_until(lambda: len(finished()) >= 4, 180)
    tools.kill(process)
    kept = finished()
    assert 4 <= len(kept) < 12
    grid, options = tuning.grid([sleepy], name="custom"), {"seed": 5, "narrowing": {"gcn.dropout": "0"}}
    code, output = tuning.tune(grid, folder, 4, storage=storage_url, **options)
    assert code == 0, output
    after = finished()
    assert len(studies_of(storage, sleepy)) == 3
    assert {place: after[place] for place in kept} == kept, "nothing finished was lost"
    assert tuning.tune(grid, whole, 4, **options)[0] == 0
    unbroken = Storage(tuning.url(whole))
    assert len(unbroken.names()) == 3
    for name in unbroken.names():
        assert len(sequence(storage, name)) == 4 and sequence(storage, name) == sequence(unbroken, name)


def sequence(storage: Storage, name: str) -> list[tuple[int, str, float | None, object]]:
    turns = turns_of(storage.study(name))
    return [(n, t.state.name, t.value, t.user_attrs["augbench"]["settings"]) for n, t in turns.items()]


def test_a_lock_keeps_others_out_until_it_is_given_back(storage_url: str, tmp_path: Path, tuning: ModuleType) -> None:
    """The lock is what keeps two processes within one budget."""
    storage, order = Storage(storage_url), []

    def second() -> None:
        other = Storage(storage_url)
        order.append("waits")
        with other.lock("turns"):
            order.append("enters")

    with storage.lock("turns"):
        thread = threading.Thread(target=second)
        thread.start()
        while "waits" not in order:
            pass
        with storage.lock("mlflow"):  # another purpose is another lock
            thread.join(0.3)
        assert order == ["waits"]
        order.append("leaves")
    thread.join(30)
    assert order == ["waits", "leaves", "enters"]
