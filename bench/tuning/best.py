"""`bench run --tuned`: a plan with the best settings of its studies instead of the defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from bench.plan.cells import PARTS, Cell
from bench.plan.planner import Plan
from bench.registry import UserError
from bench.tuning.space import with_values
from bench.tuning.storage import Storage
from bench.tuning.study import study_name
from bench.tuning.summary import StudyFacts, studies_in

AXES = ("dataset", "k", *PARTS)
PLACE = ("splits", "features")
ALIKE = ("validation", "repeats", "folds")  # what must be the same in the search of every method of a plan
# The engine and torch may differ: they affect the last digits of a number, not which settings are good.
DECIDING_VERSIONS = ("protocol", *PARTS, "dataset")


def tuned_plan(plan: Plan, storage: Storage, pooled: bool = False) -> Plan:
    """The same cells with the best settings of their studies; an unsuitable study is an error."""
    how = "pooled" if pooled else "nested"
    known = [study for study in studies_in(storage) if study.facts["how"] == how]
    found = [studies_for(cell, plan.grid.folds, known, storage, how) for cell in plan.cells]
    _check_same_chance([study for studies in found for study in studies])
    made = pooled_cell if pooled else nested_cell
    return replace(plan, cells=tuple(map(made, plan.cells, found)))


def pooled_cell(cell: Cell, studies: Sequence[StudyFacts]) -> Cell:
    """The cell with the best settings of a study over all folds."""
    best = _with_best(cell, studies[0])
    training = replace(best.training, preset=cell.training.preset)  # named after the preset the search started from
    return replace(best, training=training, tuned=True, tuned_from=_row(cell), tuned_how="pooled")


def nested_cell(cell: Cell, studies: Sequence[StudyFacts]) -> Cell:
    """The cell with, for each fold, the best settings of that fold's own study."""
    by_fold = {str(study.fold): _changes(cell, _with_best(cell, study)) for study in studies}
    return replace(cell, tuned=True, tuned_from=_row(cell), tuned_how="nested", by_fold=by_fold)


def _row(cell: Cell) -> dict[str, str]:
    """The table row that the tuned cell belongs to."""
    row = ("augmenter", "backbone" if cell.backbone else "learner")  # the parts that identify it
    return {part: cell.part_label(part) for part in row}


def _with_best(cell: Cell, study: StudyFacts) -> Cell:
    if study.best is None:
        raise UserError(f"the study '{study.name}' has no complete trial; see `bench tune --status`")
    return with_values(cell, {**study.facts["space"]["fixed"], **study.best.settings})


def _changes(cell: Cell, tuned: Cell) -> dict[str, Any]:
    """How a tuned cell differs from the original: whole plug-ins, individual training settings."""
    changes: dict[str, Any] = {p: asdict(getattr(tuned, p)) for p in PARTS if getattr(tuned, p) != getattr(cell, p)}
    before, after = asdict(cell.training), asdict(tuned.training)
    training = {name: value for name, value in after.items() if value != before[name] and name != "preset"}
    return {**changes, "training": training} if training else changes


def _check_same_chance(studies: Sequence[StudyFacts]) -> None:
    """Every method gets the same number of trials: the longest study sets the number for all."""
    wanted = max(study.wanted for study in studies)
    for study in studies:
        if len(study.trials) < wanted:
            raise UserError(
                f"the study '{study.name}' has {len(study.trials)} of {wanted} trials; "
                f"complete it with bench tune --trials {wanted}"
            )
        for what in ALIKE:
            first, other = studies[0].facts.get(what), study.facts.get(what)
            if first != other:
                raise UserError(
                    f"the study '{study.name}' was made with {what} {other}, '{studies[0].name}' with {first}; "
                    f"tune both with the same --{what}, one of them in another --storage"
                )


def studies_for(cell: Cell, folds: int, known: Sequence[StudyFacts], storage: Storage, how: str) -> list[StudyFacts]:
    """The studies of a cell's method, if they were made with the same data, splits and training.

    For nested tuning, all existing ones, so that a run over fewer folds belongs to the same cell as one over all.
    """
    mine = {"dataset": cell.dataset, "k": cell.k, "splits": cell.splits, "features": cell.features}
    mine |= {part: cell.part_label(part) for part in PARTS}
    akin = [study for study in known if all(study.facts[axis] == mine[axis] for axis in AXES)]
    option = " --pooled" if how == "pooled" else ""
    if not akin:
        raise UserError(
            f"there is no {how} study of '{study_name(cell)}' in {storage.name}; make it with bench tune{option}"
        )
    for key in PLACE:
        same = [study for study in akin if study.facts[key] == mine[key]]
        if not same:
            others = ", ".join(sorted({str(study.facts[key]) for study in akin}))
            raise UserError(
                f"the study of '{cell.label}' was made with {key} {others}, this run has {mine[key]}; "
                f"run bench tune{option} with --{key} {mine[key]}"
            )
        akin = same
    for study in akin:
        _check_made_alike(cell, study)
    if how == "pooled":
        return akin[:1]
    missing = set(range(folds)) - {study.fold for study in akin}
    if missing:
        raise UserError(
            f"there is no study of '{study_name(cell, min(missing))}' in {storage.name}; "
            f"make it with bench tune --folds {folds}"
        )
    return sorted(akin, key=lambda study: study.fold or 0)


def _check_made_alike(cell: Cell, study: StudyFacts) -> None:
    training, versions = cell.to_json()["training"], cell.versions
    training["preset"] = training.pop("preset")  # last: a setting is more specific than the name derived from it
    for what, then, now in (
        *((f"{name}", study.facts["training"].get(name), value) for name, value in training.items()),
        *((f"{name} version", study.facts["versions"].get(name), versions.get(name)) for name in DECIDING_VERSIONS),
    ):
        if then != now:
            raise UserError(
                f"the study '{study.name}' was made with {what} {then}, this run has {now}; "
                "run bench tune again in another --storage, or run with the same"
            )
