"""What a ledger's line may say: every record comes back as it was written, impossible ones are refused by name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plan.cells import Cell, Trial
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.protocol.training import Training
from bench.registry import Choice
from bench.results.ledger import Ledger, read_records
from bench.results.records import (
    CIRCUMSTANCES,
    RESULT,
    STATUSES,
    CellRecord,
    Flaw,
    PlanRecord,
    ProvenanceRecord,
    Record,
    TrialRecord,
    parse,
)

TEXTS = st.text(max_size=8)
SHARES = st.floats(0, 1)
COUNTS = st.integers(0, 2**31 - 1)
NUMBERS = st.one_of(st.floats(-1e200, 1e200), st.integers(-(2**63) + 1, 2**63 - 1))
TIMES = st.datetimes().map(lambda moment: moment.isoformat())
FLAT = st.dictionaries(TEXTS, st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS), max_size=3)
CHOICES = st.builds(Choice, TEXTS, FLAT, TEXTS)
PARTS = st.one_of(st.tuples(CHOICES, CHOICES), st.just((None, None)))
TRAININGS = st.builds(
    Training,
    TEXTS,
    st.integers(1, 10**6),
    st.floats(1e-9, 10),
    st.floats(0, 10),
    st.sampled_from(["last", "best-val"]),
    st.sampled_from(["linear", "relu"]),
    st.sampled_from(["fresh", "pretrained"]),
    st.sampled_from(["sum", "mean"]),
    st.integers(0, 10**6),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


def optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


@st.composite
def trials(draw: st.DrawFn) -> TrialRecord:
    scored = draw(st.booleans())
    return TrialRecord(
        draw(TEXTS),
        draw(COUNTS),
        draw(COUNTS),
        "done" if scored else draw(st.sampled_from(STATUSES[1:])),
        draw(optional(TEXTS)),
        draw(SHARES) if scored else None,
        draw(optional(SHARES)),
        draw(optional(SHARES)),
        draw(optional(NUMBERS)),
        draw(optional(COUNTS)),
        draw(optional(TEXTS)),
        draw(optional(TEXTS)),
        draw(st.dictionaries(TEXTS, SHARES, max_size=3)),
        draw(st.dictionaries(TEXTS, st.floats(0, 1e9), max_size=3)),
        draw(st.dictionaries(TEXTS, NUMBERS, max_size=3)),
        draw(st.lists(st.tuples(st.integers(0, 10**6), st.floats(-1e9, 1e9)).map(list), max_size=4)),
        draw(optional(TIMES)),
        draw(optional(TEXTS)),
        draw(st.dictionaries(TEXTS, SHARES, max_size=3)),
    )


@st.composite
def cells(draw: st.DrawFn) -> CellRecord:
    backbone, readout = draw(PARTS)
    cell = Cell(
        draw(TEXTS),
        draw(TEXTS),
        draw(TEXTS),
        draw(st.integers(1, 1000)),
        draw(CHOICES),
        draw(CHOICES),
        backbone,
        readout,
        draw(TRAININGS),
        draw(FLAT),
        draw(st.booleans()),
        draw(optional(st.dictionaries(TEXTS, TEXTS, max_size=2))),
    )
    return CellRecord(cell.key, cell)


def tuples(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=4).map(tuple)


SKIPS = st.fixed_dictionaries({"cell": st.one_of(TEXTS, st.dictionaries(TEXTS, JSON, max_size=2)), "reason": TEXTS})
PLANS = st.builds(PlanRecord, TEXTS, tuples(TEXTS), tuples(COUNTS), tuples(COUNTS), tuples(SKIPS), optional(TIMES))
FACTS = st.dictionaries(TEXTS.filter(lambda name: name not in ("type", "id")), JSON, max_size=4)
RECORDS = st.one_of(trials(), cells(), PLANS, st.builds(ProvenanceRecord, TEXTS, FACTS))


@given(RECORDS)
def test_every_record_comes_back_from_its_line(record: Record) -> None:
    line = json.dumps(record.to_json(), allow_nan=False)
    again = parse(json.loads(line))
    assert again == record and type(again) is type(record)
    assert json.dumps(again.to_json()) == line


@given(RECORDS)
def test_what_says_nothing_may_be_null_or_missing(record: Record) -> None:
    raw = json.loads(json.dumps(record.to_json()))
    empty = {name: None for name in ("reason", "loss", "curve", "seconds", "at", "tuned_from", "predicted")}
    assert parse({**empty, **raw}) == record or isinstance(record, ProvenanceRecord)


@given(RECORDS, st.data())
def test_whatever_is_put_into_a_line_it_is_a_record_or_a_flaw_in_one_line(record: Record, data: st.DataObject) -> None:
    raw = json.loads(json.dumps(record.to_json()))
    name = data.draw(st.sampled_from(sorted(raw)))
    raw[name] = data.draw(st.one_of(JSON, st.floats(), st.integers(), st.sampled_from([[[1]], [[1, 2, 3]], {"a": {}}])))
    try:
        found = parse(raw)
    except Flaw as flaw:
        assert str(flaw).isprintable()
    else:  # what is taken can be written and is the same again
        assert parse(json.loads(json.dumps(found.to_json(), allow_nan=False))) == found


def refused(raw: dict[str, Any], message: str) -> None:
    """Refused in one line with these words, by the reader of a file, too."""
    with pytest.raises(Flaw, match=message) as caught:
        parse(raw)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("accuracy", [7, -0.1, 1.0000001, math.nan, math.inf, "0.5", True, None, [0.5]]),
        ("balanced_accuracy", [7, -0.1, math.nan, "0.5", False]),
        ("macro_f1", [2, -1, math.nan, {}]),
        ("loss", [math.nan, math.inf, -math.inf, "1", True, 2**63, []]),
        ("labels", [-1, 2.0, "20", True, 2**31]),
        ("fold", [-1, 0.0, "0", None, False, 2**31]),
        ("repeat", [-1, 1.5, None, []]),
        ("cell", [None, 3, ["c"], {}]),
        ("status", [None, "", "Done", "pending", ["done"], {}, 1]),
        ("reason", [3, ["boom"], {}]),
        ("engine", [3, {}]),
        ("handed_over", [True, []]),
        ("provenance", [3, {}]),
        ("seconds", [{"train": -1.0}, {"train": -1}, {"train": math.nan}, {"train": math.inf}, {"a": "1"}, [], 1.0]),
        ("generated", [{"count": math.nan}, {"count": None}, {"count": 2**63}, {"count": True}, {"a": {}}, []]),
        ("predicted", [{"0": 1.1}, {"0": -0.1}, {"0": math.nan}, {"0": "1"}, {"0": True}, [0.5, 0.5]]),
        ("finished", ["yesterday", "2026-13-01", "", 20260101, [], "2026-01-01T25:00:00"]),
    ],
)
def test_impossible_values_of_a_trial_are_refused_by_name(fake: ModuleType, name: str, values: list[Any]) -> None:
    raw = fake.trial().to_json()
    assert parse(raw) == fake.trial()
    for value in values:
        refused({**raw, name: value}, re.escape(f"its {name} is {value!r}"))


@pytest.mark.parametrize(
    "value",
    [
        *([[1]], [[1, 2, 3]], [[1, 2], [3]], [1, 2], [[]], "ab", ["ab"], [[1, 2], "ab"], {"1": 2}, {"12": 3}, 3, True),
        *([[1, "2"]], [["1", 2]], [[1, None]], [[1, [2]]], [[1, {}]], [{"a": 1, "b": 2}], ""),
        *([[1, math.nan]], [[1, 2.0], [2, math.nan], [3, 1.0]], [[1, math.inf]], [[1, 10**400]], [[10**400, 1.0]]),
        *([[-1, 2.0]], [[1.5, 2.0]], [[math.nan, 2.0]], [[1, 2.0], [2**63, 1.0]]),
    ],
)
def test_a_curve_is_pairs_of_an_epoch_and_a_finite_loss(fake: ModuleType, value: Any) -> None:
    refused({**fake.trial().to_json(), "curve": value}, "its curve is ")


def test_a_curve_may_be_empty_and_have_whole_losses(fake: ModuleType) -> None:
    for curve in ([], [[0, 2], [7, -1.5]]):
        assert parse({**fake.trial().to_json(), "curve": curve}).to_json().get("curve", []) == curve


def test_only_a_trial_that_is_done_needs_a_score(fake: ModuleType) -> None:
    for status in ("failed", "diverged"):
        record = parse({"type": "trial", "cell": "c", "fold": 0, "repeat": 0, "status": status})
        assert isinstance(record, TrialRecord) and not record.done and record.trial == Trial(0, 0)
        assert record.to_json() == {"type": "trial", "cell": "c", "fold": 0, "repeat": 0, "status": status}
    assert fake.trial().done


def test_the_bounds_belong_to_what_is_allowed(fake: ModuleType) -> None:
    for change in ({"accuracy": 0}, {"accuracy": 1}, {"fold": 2**31 - 1}, {"seconds": {"train": 0}}, {"seconds": {}}):
        assert (
            parse({**fake.trial().to_json(), **change}).to_json().items()
            >= {name: value for name, value in change.items() if value != {}}.items()
        )
    assert parse({**fake.cell(k=1).to_json()}) == fake.cell(k=1)


@pytest.mark.parametrize(
    "change",
    [
        *({"k": 0}, {"k": -1}, {"k": 2.0}, {"k": "2"}, {"k": True}, {"dataset": None}, {"features": 3}, {"splits": []}),
        *({"key": None}, {"key": 3}, {"augmenter": None}, {"augmenter": "none"}, {"learner": None}, {"learner": {}}),
        *({"backbone": "gcn"}, {"readout": {"name": "mean"}}, {"versions": None}, {"versions": {"torch": [2]}}),
        *({"versions": {"torch": math.nan}}, {"training": None}, {"training": {"lr": {}}}, {"tuned": 1}),
        *({"tuned": "yes"}, {"tuned_from": "gcn"}, {"tuned_from": {"augmenter": 3}}),
        {"augmenter": {"name": "none", "settings": {"p": math.inf}, "label": "none"}},
        {"augmenter": {"name": "none", "settings": {}, "label": "none", "more": 1}},
    ],
)
def test_impossible_values_of_a_cell_are_refused_by_name(fake: ModuleType, change: dict[str, Any]) -> None:
    (name,) = change
    refused({**fake.cell().to_json(), **change}, f"its {name} is ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "its training.epochs is 0"),
        ({"epochs": "800"}, "its training.epochs is '800'"),
        ({"epochs": 800.0}, "its training.epochs is 800.0"),
        ({"epochs": True}, "its training.epochs is True"),
        ({"lr": 0}, "its training.lr is 0"),
        ({"lr": "0.01"}, "its training.lr is '0.01'"),
        ({"lr": None}, "its training.lr is None"),
        ({"weight_decay": -1e-5}, "its training.weight_decay is -1e-05"),
        ({"select": "first"}, "its training.select is 'first'"),
        ({"preset": None}, "its training.preset is None"),
        ({"preset": 3}, "its training.preset is 3"),
        ({"warp": 9}, "its training has the setting 'warp', so its cell was written by another version"),
        ({"two\nlines": 9}, r"its training has the setting 'two\\nlines'"),
    ],
)
def test_a_cell_is_trained_with_settings_that_could_be_asked_for(
    fake: ModuleType, change: dict[str, Any], message: str
) -> None:
    raw = fake.cell().to_json()
    refused({**raw, "training": {**raw["training"], **change}}, message)


def test_a_cell_without_one_of_its_training_settings_is_refused(fake: ModuleType) -> None:
    raw = fake.cell().to_json()
    for name in asdict(Training()):
        training = {key: value for key, value in raw["training"].items() if key != name}
        refused({**raw, "training": training}, f"its training.{name} is None")


def test_a_cell_whose_content_contradicts_its_key_is_refused(fake: ModuleType) -> None:
    cell, other = fake.cell(), fake.cell(k=3)
    for raw in ({**cell.to_json(), "k": 3}, {**other.to_json(), "key": cell.key}):
        refused(raw, f"its key is '{cell.key}', and what it says has the key {other.key}")


@pytest.mark.parametrize("missing", ["backbone", "readout"])
def test_backbone_and_readout_come_together_or_not_at_all(fake: ModuleType, missing: str) -> None:
    raw = fake.cell().to_json()
    refused({**raw, missing: None}, "it has one of backbone and readout")
    refused({name: value for name, value in raw.items() if name != missing}, "it has one of backbone and readout")
    cell = replace(fake.cell().cell, backbone=None, readout=None)
    assert parse(CellRecord(cell.key, cell).to_json()) == CellRecord(cell.key, cell)


def test_a_cell_of_the_first_format_is_told_its_remedy(fake: ModuleType) -> None:
    raw = fake.cell().to_json()
    del raw["learner"]
    refused(raw, r"written by augbench 0\.1, which knew no learners; `bench rekey`")


@pytest.mark.parametrize(
    "change",
    [
        *({"grid": None}, {"grid": 3}, {"cells": None}, {"cells": "c"}, {"cells": [3]}, {"folds": [-1]}),
        *({"folds": 3}, {"folds": [0.5]}, {"repeats": [True]}, {"repeats": None}, {"skipped": {}}, {"skipped": ["c"]}),
        *({"skipped": [{"cell": 3, "reason": "r"}]}, {"skipped": [{"cell": "c"}]}, {"at": "soon"}, {"at": 3}),
        {"skipped": [{"cell": {"k": math.nan}, "reason": "r"}]},
    ],
)
def test_impossible_values_of_a_plan_are_refused_by_name(fake: ModuleType, change: dict[str, Any]) -> None:
    (name,) = change
    refused({**fake.plan(["c"], [0]).to_json(), **change}, f"its {name} is ")


def test_a_plan_cannot_ask_for_billions_of_trials(fake: ModuleType) -> None:
    raw = fake.plan(["c"], [0]).to_json()
    assert parse({**raw, "folds": [*range(1000)], "repeats": [*range(100)]})
    refused(
        {**raw, "folds": [*range(1001)], "repeats": [*range(100)]}, "its folds and repeats are 1001 times 100 trials"
    )


def test_provenance_is_anything_that_json_can_hold() -> None:
    raw = {"type": "provenance", "id": "p", "machine": {"cores": [1, None, {"a": True}]}}
    assert parse(raw) == ProvenanceRecord("p", {"machine": raw["machine"]})
    refused({**raw, "id": None}, "its id is None")
    refused({**raw, "machine": {"cores": [math.nan]}}, "its machine is ")


@pytest.mark.parametrize("raw", [None, 3, "trial", [], [{}], math.nan])
def test_what_is_no_object_is_no_record(raw: Any) -> None:
    refused(raw, "no JSON object")


@pytest.mark.parametrize("kind", [None, "poem", "Trial", 3, ["trial"], {"a": 1}])
def test_what_is_of_no_known_type_is_no_record(kind: Any) -> None:
    refused({"type": kind, "cell": "c"}, re.escape(f"its type is {kind!r}"))
    refused({"cell": "c"}, "its type is None")


def test_a_long_or_strange_value_is_told_in_one_short_line() -> None:
    raw = {"type": "trial", "cell": "c", "fold": 0, "repeat": 0, "status": "x\n\x1b[31m" * 1000}
    refused(raw, r"its status is 'x\\n\\x1b\[31m.*\.\.\.$")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda fake: replace(fake.trial("c", 1), accuracy=7),
        lambda fake: replace(fake.trial("c", 1), finished="soon"),
        lambda fake: replace(fake.plan(["c"], [0]), folds=(-1,)),
        lambda fake: CellRecord("another key", fake.cell().cell),
        lambda fake: ProvenanceRecord("p", {"load": math.nan}),
    ],
)
def test_a_ledger_refuses_what_a_reader_would_and_stays_as_it_was(
    fake: ModuleType, tmp_path: Path, spoil: Callable[[ModuleType], Record]
) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append(fake.trial())
        before = path.read_bytes()
        with pytest.raises(Flaw) as caught:
            ledger.append_all([fake.trial("c", 2), spoil(fake)])
        assert str(caught.value).startswith("its ")
        assert path.read_bytes() == before
        assert list(ledger.state.records()) == [fake.trial()] == read_records(path)


def test_the_fields_of_a_trial_are_its_result_or_its_circumstances() -> None:
    names = {one.name for one in fields(TrialRecord)}
    assert set(RESULT) | set(CIRCUMSTANCES) == names and not set(RESULT) & set(CIRCUMSTANCES)


def test_the_record_of_a_plan_says_what_it_sets_out_to_do(tmp_path: Path) -> None:
    grid = Grid("mine", product(["synthetic", "PROTEINS"], k=[2, 3]), folds=3, repeats=2)
    plan = Planner(tmp_path).plan(grid, skip_unavailable=True)
    record = PlanRecord.of(plan)
    assert parse(json.loads(json.dumps(record.to_json()))) == record
    assert (record.grid, record.cells, record.at) == ("mine", tuple(cell.key for cell in plan.cells), None)
    assert sorted(record.trials()) == sorted(plan.trials)
    assert [one["cell"]["dataset"] for one in record.skipped] == ["PROTEINS"] * 2
