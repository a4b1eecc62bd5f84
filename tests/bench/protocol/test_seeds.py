from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.protocol.seeds import TrialSeeds, weights_name
from bench.seeding import seed_from, shuffled

names = st.lists(st.text(max_size=8) | st.integers(-(10**20), 10**20), max_size=5)


@given(names, names)
def test_distinct_names_give_distinct_seeds(one: list[str | int], other: list[str | int]) -> None:
    same = [(type(n), n) for n in one] == [(type(n), n) for n in other]
    assert (seed_from(*one) == seed_from(*other)) == same


@pytest.mark.parametrize(
    ("one", "other"), [(("ab", "c"), ("a", "bc")), ((1,), ("1",)), (("a", ""), ("a",)), (("a", "b"), ("b", "a"))]
)
def test_names_do_not_run_into_each_other(one: tuple[str | int, ...], other: tuple[str | int, ...]) -> None:
    assert seed_from(*one) != seed_from(*other)


def test_seeds_fit_every_generator_and_never_change() -> None:
    assert all(0 <= seed_from("range", i) < 2**63 for i in range(1000))
    # A changed encoding would silently make every stored result another experiment.
    assert seed_from("labels", "PROTEINS", "CHEMICAL", 0, 0) == 1830958439545427971


@pytest.mark.parametrize("wrong", [1.0, True, None, b"x"])
def test_only_texts_and_whole_numbers_are_names(wrong: object) -> None:
    with pytest.raises(TypeError):
        seed_from(wrong)  # type: ignore[arg-type]


def test_the_purposes_of_one_trial_have_streams_of_their_own() -> None:
    seeds = TrialSeeds("PROTEINS", "CHEMICAL", 3, 1)
    streams = [
        seeds.labels,
        seeds.validation,
        seeds.init("gcn", "mean"),
        seeds.pretrain("gcn", "mean"),
        seeds.augmenter("gcn", "mean", "none"),
        seeds.shared("none"),
    ]
    assert len(set(streams)) == len(streams)
    # Frozen: another name of a purpose would make every stored result another experiment.
    assert streams[:5] == [
        3165393799004459870,
        5102739705538436499,
        377041922508832990,
        1763274058992287868,
        644817484530036192,
    ]
    assert seeds.shared("autoencoder") == 3295383091849045


def test_each_coordinate_of_a_trial_moves_its_seeds() -> None:
    trials = itertools.product(["A", "B"], ["CHEMICAL", "stratified"], range(3), range(3))
    seeds = [TrialSeeds(*trial).labels for trial in trials]
    assert len(set(seeds)) == len(seeds)


def test_init_is_the_same_for_every_augmenter_and_differs_by_model() -> None:
    seeds = TrialSeeds("NCI1", "CHEMICAL", 0, 0)
    models = itertools.product(["gcn", "gin"], ["mean", "add"])
    assert len({seeds.init(*model) for model in models}) == 4
    assert seeds.augmenter("gcn", "mean", "dropedge") != seeds.augmenter("gcn", "mean", "dropedge:p=0.5")


@pytest.mark.parametrize("backbone", ["gcn", "gcn:layers=2", "gat:heads=2,width=8", "package.module:Class", ""])
def test_dropout_alone_moves_no_weights(backbone: str) -> None:
    """A tuned arm and its default have the same first weights unless shapes differ; every other name is as before."""
    seeds = TrialSeeds("NCI1", "CHEMICAL", 0, 0)
    expected = seed_from("init", "NCI1", "CHEMICAL", 0, 0, backbone, "mean")
    assert seeds.init(backbone, "mean") == expected, "digits on record hang on it"
    if backbone:
        head, _, settings = backbone.partition(":") if "=" in backbone else (backbone, "", "")
        dropped = f"{head}:{','.join(filter(None, ['dropout=0.3', settings]))}"
        assert weights_name(dropped) == backbone
        assert seeds.init(dropped, "mean") == expected
        assert seeds.pretrain(dropped, "mean") == seeds.pretrain(backbone, "mean") != expected
        assert seeds.augmenter(dropped, "mean", "none") != seeds.augmenter(backbone, "mean", "none")


@given(st.sets(st.integers(0, 500), min_size=1), st.integers(0, 500))
def test_an_item_that_joins_does_not_disturb_the_order_of_the_others(items: set[int], newcomer: int) -> None:
    before = shuffled(items - {newcomer}, "order")
    after = shuffled(items | {newcomer}, "order")
    assert [item for item in after if item != newcomer] == before
    assert sorted(after) == sorted(items | {newcomer})


def test_the_order_is_drawn_and_depends_on_its_names() -> None:
    assert shuffled(range(50), "a") != list(range(50))
    assert shuffled(range(50), "a") != shuffled(range(50), "b")
    assert shuffled(reversed(range(50)), "a") == shuffled(range(50), "a")
