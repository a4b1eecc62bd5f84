"""The end of a run: differences beside means, bold only what is significant, and what may be concluded."""

from __future__ import annotations

import io
from types import ModuleType

import pytest
from rich.console import Console
from scipy import stats

from bench.plan.cells import Cell
from bench.results.ledger import LedgerState
from bench.results.summary import ordered_trials
from tables.conclusion import Conclusion, conclude
from tables.specs import Coordinate
from tables.terminal import run_notes, run_table

NAMES = ("none", "dropedge", "dropnode")


def concluded(fake: ModuleType, value: object, folds: int = 10, names: tuple[str, ...] = NAMES) -> Conclusion:
    places = [Coordinate("PROTEINS", 10, name) for name in names]
    state = LedgerState.of(fake.ledger(places, folds=folds, repeats=1, value=value))

    def name(cell: Cell) -> str:
        return cell.augmenter.label

    return conclude(state.cells.values(), lambda key: ordered_trials(state, key), name)


def level(place: Coordinate, fold: int, repeat: int) -> float:
    gain = {"dropedge": 0.1, "dropnode": 0.0}.get(place.augmenter, 0.0)
    wobble = 0.004 * ((fold * 7 + len(place.augmenter)) % 5 - 2)
    return round(0.5 + gain + wobble, 6)


def printed(found: Conclusion, planned: int) -> str:
    out = io.StringIO()
    Console(file=out, width=100, force_terminal=True, color_system="standard").print(run_table(found, planned))
    return out.getvalue()


def test_a_significant_gain_is_bold_and_said(fake: ModuleType) -> None:
    found = concluded(fake, level)
    at = ("PROTEINS", 10)
    gain = found.findings["dropedge", at]
    means = [
        level(Coordinate("PROTEINS", 10, "dropedge"), f, 0) - level(Coordinate("PROTEINS", 10, "none"), f, 0)
        for f in range(10)
    ]
    assert gain.difference is not None and gain.difference.p == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert gain.sign == "+" and found.findings["dropnode", at].sign == ""
    assert found.sentence().startswith(
        "Significantly better than plain training in 1 of 2 comparisons: dropedge on Proteins at k = 10 (+10.0). "
    )
    text = printed(found, 10)
    bold = [line for line in text.splitlines() if "\x1b[1m60" in line]
    assert len(bold) == 1 and "*" in bold[0], text
    assert any("bold: significantly better" in note for note in run_notes(found))


def test_a_higher_mean_alone_is_not_bold(fake: ModuleType) -> None:
    found = concluded(fake, lambda p, f, r: 0.5 + 0.03 * ((f + len(p.augmenter)) % 3))
    assert found.answer() == "No method differs significantly from plain training in any of 2 comparisons."
    assert found.limits().startswith(
        "A single test finds a difference to plain training 4 times in 5 if it is at least "
    )
    assert found.limits().endswith("Smaller ones can be neither claimed nor ruled out.")
    assert "\x1b[1m5" not in printed(found, 10)


def test_equal_methods_are_said_to_be_equal(fake: ModuleType) -> None:
    found = concluded(fake, lambda p, f, r: 0.5 + f / 100)
    assert found.limits() == "In 2 of them the difference is practically none (within one point, 95 % sure)."


def test_a_loss_is_no_gain_and_a_single_comparison_is_no_method_of_many(fake: ModuleType) -> None:
    lost = concluded(fake, lambda p, f, r: 1 - level(p, f, r))
    assert lost.answer() == (
        "No method is significantly better than plain training in any of 2 comparisons; significantly worse: dropedge "
        "on Proteins at k = 10 (-10.0)."
    )
    alone = concluded(fake, lambda p, f, r: 1 - level(p, f, r), names=("none", "dropedge"))
    assert alone.answer().startswith("The only method is not significantly better than plain training; significantly")
    gain = concluded(fake, level, names=("none", "dropedge"))
    assert gain.answer() == "Significantly better than plain training: dropedge on Proteins at k = 10 (+10.0)."
    nothing = concluded(fake, lambda p, f, r: 0.5 + 0.03 * ((f + len(p.augmenter)) % 3), names=("none", "dropedge"))
    assert nothing.answer() == "The one comparison with plain training shows no significant difference."


def test_few_pairs_can_show_nothing(fake: ModuleType) -> None:
    found = concluded(fake, level, folds=3)
    assert found.sentence().startswith("Nothing here can be significant: 3 paired trials at most, and a test needs 6")
    assert not any(one.sign for one in found.findings.values())


def test_plain_training_alone_asks_for_a_method(fake: ModuleType) -> None:
    assert concluded(fake, level, names=("none",)).sentence().startswith("This is plain training alone; ")


def test_without_plain_training_no_difference_is_shown(fake: ModuleType) -> None:
    found = concluded(fake, level, names=NAMES[1:])
    assert "no method has plain training" in found.sentence()
    assert all(one.difference is None for one in found.findings.values())


def test_plain_training_of_several_models_asks_for_no_more_plain_training(fake: ModuleType) -> None:
    places = [Coordinate("PROTEINS", 10, "none", backbone) for backbone in ("gcn", "gin")]
    state = LedgerState.of(fake.ledger(places, folds=2, repeats=1, value=level))
    found = conclude(state.cells.values(), lambda key: ordered_trials(state, key), lambda cell: str(cell.backbone))
    assert len(found.rows) == 2
    assert "Every row is plain training of another model" in found.sentence() and "add -a none" not in found.sentence()
