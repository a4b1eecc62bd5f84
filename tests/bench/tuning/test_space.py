"""Search spaces: declared beside the arguments, narrowed by the user, refused in one line when impossible."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated

import pytest

from augmenters import AUGMENTERS
from augmenters.controls import Unchanged
from bench.plan.grid_files import read_grid
from bench.registry import Tune, UserError, Within
from bench.tuning.space import Space, check_narrowing, read_narrowing, space_for


@dataclass(frozen=True)
class Strange(Unchanged):
    """A third party's augmenter."""

    strength: Annotated[float, Within(0, 1), Tune(0.1, 0.9)] = 0.5
    deep: Annotated[bool, Tune()] = False
    kept: int = 3


@dataclass(frozen=True)
class Careless(Unchanged):
    strength: Annotated[float, Within(0, 1), Tune(0.5, 2.0)] = 0.5


@dataclass(frozen=True)
class Empty(Unchanged):
    strength: Annotated[float, Tune()] = 0.5


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AUGMENTERS, "_entries", dict(AUGMENTERS.entries()))
    for name, target in (("strange", Strange), ("careless", Careless), ("empty", Empty)):
        AUGMENTERS.add(name, target)


def dimensions(space: Space) -> dict[str, object]:
    return space.to_json()["search"]


def test_a_space_is_what_augmenter_backbone_and_training_declare(tuning: ModuleType) -> None:
    found = dimensions(space_for(tuning.cell("gdm-unc"), {}))
    names = {"training.lr", "training.weight_decay", "backbone.width", "backbone.layers", "backbone.dropout"}
    own = {"encoder", "structure", "width", "eps", "alpha", "count", "weight"}
    assert set(found) == names | {f"augmenter.{name}" for name in own}
    assert found["augmenter.count"] == {"choices": [0.5, 1.0, 2.0]}
    assert found["backbone.width"] == {"low": 16, "high": 128, "log": True, "type": "int"}
    assert set(dimensions(space_for(tuning.cell("none"), {}))) == names, "plain training has the rest all the same"


def test_a_third_party_declares_its_space_the_same_way(tuning: ModuleType, third_party: None) -> None:
    space = space_for(tuning.cell("strange"), {})
    own = {name: what for name, what in dimensions(space).items() if name.startswith("augmenter.")}
    assert own["augmenter.deep"] == {"choices": [False, True]}
    assert set(own) == {"augmenter.strength", "augmenter.deep"}
    changed = space.apply(tuning.cell("strange"), {"augmenter.strength": 0.123456, "augmenter.deep": True})
    assert changed.augmenter.label == "strange:deep=true,strength=0.1235"


def test_the_first_trial_is_the_method_as_it_is(tuning: ModuleType) -> None:
    for name in ("none", "dropedge", "gdm-unc", "g-mixup"):
        cell = tuning.cell(name)
        space = space_for(cell, {})
        assert space.apply(cell, space.start()) == cell
    assert "training.weight_decay" not in space.start(), "a default of 0 is not on a logarithmic scale"


def test_what_the_user_wrote_behind_a_name_stays(tuning: ModuleType) -> None:
    cell = tuning.cell("gdm-acc:encoder=vgsae", "gcn:layers=2", lr=0.02)
    found = dimensions(space_for(cell, {}))
    assert not {"augmenter.encoder", "backbone.layers", "training.lr"} & set(found)
    with pytest.raises(UserError, match=r"encoder is vgsae in .* keep one of them"):
        space_for(cell, {"gdm-acc.encoder": "gsae|vgsae"})


def test_ranges_choices_and_values_narrow_and_fix(tuning: ModuleType) -> None:
    cell = tuning.cell("gdm-unc")
    texts = ["lr=0.02..0.03", "gdm-unc.encoder=vgsae", "backbone.layers=2|3", "gcn.width=8..8.0|16", "beta=0.5..2"]
    with pytest.raises(UserError, match=r"8\.0\|16"):
        space_for(cell, read_narrowing(texts))
    texts[3] = "gcn.width=8..16"
    space = space_for(cell, read_narrowing(texts))
    found = dimensions(space)
    assert found["training.lr"] == {"low": 0.02, "high": 0.03, "log": True, "type": "float"}
    assert found["backbone.layers"] == {"choices": [2, 3]}
    assert found["augmenter.beta"] == {"low": 0.5, "high": 2.0, "log": False, "type": "float"}, "opened by the user"
    assert space.fixed == {"augmenter.encoder": "vgsae"}
    start = space.start()
    assert (start["training.lr"], start["backbone.layers"], start["backbone.width"]) == (0.02, 2, 16), "nearest"
    assert space.apply(cell, start).augmenter.label == "gdm-unc:encoder=vgsae"


@pytest.mark.parametrize(
    ("augmenter", "text", "said"),
    [
        ("dropedge", "lr=0.1..0.01", r"training.lr=0.1..0.01 is empty; the low end must be below"),
        ("dropedge", "lr=0.01..0.01", "is empty"),
        ("dropedge", "weight_decay=0..0.1", "logarithmic scale; the low end must be above 0"),
        ("dropedge", "p=0.5..2", r"--space dropedge.p=0.5..2: p=2 is not valid; it takes a number from 0 to 1"),
        ("dropedge", "p=some", "p=some is not valid"),
        ("dropedge", "gcn.layers=1.5..3", "layers=1.5 is not valid; it takes a whole number"),
        ("gdm-unc", "encoder=gsae|gae", "encoder=gae is not valid; it takes gsae"),
        ("gdm-unc", "encoder=a..b", "encoder has no range; it takes gsae"),
        ("gdm-unc", "width=8..16", "'width' in the space is ambiguous .* write gcn.width or gdm-unc.width"),
        ("g-mixup", "ratio=none..1", "a number at each end"),
        ("careless", "lr=0.01", r"search space of careless.strength: strength=2 is not valid"),
        ("empty", "lr=0.01", r"empty.strength is declared with Tune\(\) but has neither choices nor a range"),
    ],
)
def test_an_impossible_space_is_told_in_one_line(
    tuning: ModuleType, third_party: None, augmenter: str, text: str, said: str
) -> None:
    with pytest.raises(UserError, match=said) as error:
        space_for(tuning.cell(augmenter), read_narrowing([text]))
    assert "\n" not in str(error.value)


def test_a_space_without_anything_to_search_is_refused(tuning: ModuleType) -> None:
    texts = ["lr=0.01", "weight_decay=0", "width=8", "layers=2", "dropout=0"]
    with pytest.raises(UserError, match="nothing is left to search"):
        space_for(tuning.cell("none"), read_narrowing(texts))


def test_a_key_that_means_nothing_is_not_passed_over(tuning: ModuleType) -> None:
    cells = [tuning.cell("none"), tuning.cell("dropedge")]
    check_narrowing({"dropedge.p": "0.1..0.2", "lr": "0.01"}, cells)
    with pytest.raises(
        UserError, match=r"unknown setting in the search space 'dropegde\.p'\. Did you mean: dropedge.p"
    ):
        check_narrowing({"dropegde.p": "0.1..0.2"}, cells)
    assert "augmenter.p" not in dimensions(space_for(cells[0], {"dropedge.p": "0.1..0.2"})), "not a matter of none's"


@pytest.mark.parametrize("text", ["lr", "=3", "lr=", ""])
def test_a_space_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UserError, match=r"cannot be read; write setting=low\.\.high"):
        read_narrowing([text])


def test_naming_a_setting_twice_is_refused() -> None:
    with pytest.raises(UserError, match="names lr twice"):
        read_narrowing(["lr=0.01", "lr=0.02"])


def test_a_grid_file_narrows_in_the_same_words(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = 'datasets = ["synthetic"]\n[space]\nlr = "0.001..0.01"\ngcn.layers = 4\n"gdm-unc.encoder" = ["gsae"]\n'
    path.write_text(text, encoding="utf-8")
    space = read_grid(path, tmp_path).space
    assert space == {"lr": "0.001..0.01", "gcn.layers": "4", "gdm-unc.encoder": "gsae"}
