"""`bench run --tuned`: a plan with the best settings of its studies in the place of the defaults."""

from __future__ import annotations

from dataclasses import replace

from bench.cli.tuning_status import studies_in
from bench.plan.cells import PARTS, Cell
from bench.plan.planner import Plan
from bench.registry import UserError
from bench.tuning.space import with_values
from bench.tuning.storage import Storage
from bench.tuning.study import study_name
from bench.tuning.summary import StudyFacts

AXES = ("dataset", "k", *PARTS)
PLACE = ("splits", "features")
# The engine and torch may be others: they change the last digits of a number, not which settings are good.
DECIDING_VERSIONS = ("protocol", *PARTS, "dataset")


def tuned_plan(plan: Plan, storage: Storage) -> Plan:
    """The same cells with their studies' best settings; a study that is not fit for it stops everything."""
    known = studies_in(storage)
    found = [study_for(cell, known, storage) for cell in plan.cells]
    # Every method gets the same chance: the longest study of the plan sets what the others must have.
    wanted = max(study.wanted for study in found)
    for study in found:
        if len(study.trials) < wanted:
            raise UserError(
                f"the study '{study.name}' has {len(study.trials)} of {wanted} trials; "
                f"complete it with bench tune --trials {wanted}"
            )
    return replace(plan, cells=tuple(map(tuned_cell, plan.cells, found)))


def tuned_cell(cell: Cell, study: StudyFacts) -> Cell:
    """The cell with a study's best settings; it remembers which row of a table it belongs to."""
    if study.best is None:
        raise UserError(f"the study '{study.name}' has no complete trial; `bench tune --status` says more")
    tuned = with_values(cell, {**study.facts["space"]["fixed"], **study.best.settings})
    row = ("augmenter", "backbone" if cell.backbone else "learner")  # what it is known by
    return replace(tuned, tuned=True, tuned_from={part: cell.part_label(part) for part in row})


def study_for(cell: Cell, known: list[StudyFacts], storage: Storage) -> StudyFacts:
    """The study of a cell's method, if it was made with the same data, splits and training."""
    mine = {"dataset": cell.dataset, "k": cell.k, "splits": cell.splits, "features": cell.features}
    mine |= {part: cell.part_label(part) for part in PARTS}
    akin = [study for study in known if all(study.facts[axis] == mine[axis] for axis in AXES)]
    if not akin:
        raise UserError(f"there is no study of '{study_name(cell)}' in {storage.name}; make it with bench tune")
    for key in PLACE:
        same = [study for study in akin if study.facts[key] == mine[key]]
        if not same:
            others = ", ".join(sorted({str(study.facts[key]) for study in akin}))
            raise UserError(
                f"the study of '{cell.label}' was made with {key} {others}, this run has {mine[key]}; "
                f"run bench tune with --{key} {mine[key]}"
            )
        akin = same
    _check_made_alike(cell, akin[0])
    return akin[0]


def _check_made_alike(cell: Cell, study: StudyFacts) -> None:
    training, versions = cell.to_json()["training"], cell.versions
    for what, then, now in (
        *((f"{name}", study.facts["training"].get(name), value) for name, value in training.items()),
        *((f"{name} version", study.facts["versions"].get(name), versions.get(name)) for name in DECIDING_VERSIONS),
    ):
        if then != now:
            raise UserError(
                f"the study '{study.name}' was made with {what} {then}, this run has {now}; "
                "run bench tune again in another --storage, or run with the same"
            )
