"""Search spaces of learners that are not built from a backbone and a readout."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.plan.planner import Planner
from bench.protocol.training import preset
from bench.registry import UserError
from bench.tuning.best import pooled_cell
from bench.tuning.space import space_for, with_values
from bench.tuning.study import Extent, study_facts
from bench.tuning.summary import StudyFacts, TrialFacts
from tables.specs import Coordinate


def cell_of(learner: str, root: Path):  # type: ignore[no-untyped-def]
    return Planner(root).cell(Coordinate("synthetic", 2, "none", "", "", learner), preset("quick"))


@pytest.mark.parametrize(
    ("learner", "searched"),
    [
        ("wl", {"learner.c", "learner.h"}),
        ("wl:h=3", {"learner.c"}),
        ("size", {"learner.c"}),
        ("statistics", {"learner.depth", "learner.features"}),
        (
            "deepsets",
            {
                "learner.width",
                "learner.layers",
                "learner.dropout",
                "learner.pool",
                "training.lr",
                "training.weight_decay",
            },
        ),
    ],
)
def test_the_settings_of_a_learner_are_searched_and_training_only_where_there_is_some(
    learner: str, searched: set[str], tmp_path: Path
) -> None:
    assert {one.name for one in space_for(cell_of(learner, tmp_path), {}).dimensions} == searched


def test_what_has_no_settings_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing is left to search for 'synthetic k=2 none majority'"):
        space_for(cell_of("majority", tmp_path), {})


def test_a_tuned_learner_remembers_its_row(tmp_path: Path) -> None:
    cell = cell_of("wl", tmp_path)
    assert with_values(cell, {"learner.h": 2}).learner.label == "wl:h=2"
    facts = study_facts(cell, space_for(cell, {}), "budget", Extent((0, 1), 1, pooled=True))
    assert (facts["learner"], facts["backbone"]) == ("wl", "")
    best = TrialFacts(1, 1, "complete", 0.7, (0.7,), {"learner.h": 2, "learner.c": 10.0}, 1.0, "")
    tuned = pooled_cell(cell, [StudyFacts("study", None, facts, 1, 0, (best,), best, None)])
    assert tuned.learner.label == "wl:c=10,h=2"
    assert tuned.tuned_from == {"augmenter": "none", "learner": "wl"}
