from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.registry import Registry, Tune, UserError, Within, show, signature_settings, split_spec


class Base:
    pass


class Thing(Base):
    def __init__(
        self,
        size: int,
        p: Annotated[float, Within(0, 1), Tune(0.1, 0.5)] = 0.25,
        count: Annotated[int, Within(1)] = 3,
        kind: Literal["a", "b"] = "a",
        loud: bool = False,
        ratio: Annotated[float | None, Within(0, 1, above=True)] = None,
        anything: Any = None,
    ) -> None:
        self.settings = (size, p, count, kind, loud, ratio)


class Stranger:
    pass


@pytest.fixture
def things() -> Registry:
    registry = Registry("thing", "augbench.no-such-group", f"{__name__}:Base")
    registry.add("thing", Thing, "a thing")
    registry.add("loud-thing", Thing, "a loud one", loud=True)
    return registry


def test_settings_are_the_typed_arguments_with_a_default() -> None:
    found = signature_settings(Thing)
    assert list(found) == ["p", "count", "kind", "loud", "ratio"]  # not `size` (given), not `anything` (no plain type)
    assert found["p"].tune == Tune(0.1, 0.5)
    assert found["kind"].choices == ("a", "b")
    assert found["ratio"].optional


def test_resolve_fills_defaults_and_names_only_what_differs(things: Registry) -> None:
    choice = things.resolve("thing: p = 0.5 , kind=b")
    assert choice.settings == {"count": 3, "kind": "b", "loud": False, "p": 0.5, "ratio": None}
    assert choice.label == "thing:kind=b,p=0.5"
    assert things.resolve("thing:p=0.25").label == "thing"
    assert things.resolve(choice.label) == choice


def test_create_gives_settings_and_what_the_caller_supplies(things: Registry) -> None:
    assert things.create("thing:count=7,loud=TRUE,ratio=0.5", size=9).settings == (9, 0.25, 7, "a", True, 0.5)
    assert things.create("loud-thing", size=1).settings == (1, 0.25, 3, "a", True, None)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("thign", ["unknown thing 'thign'", "Did you mean: thing"]),
        ("zzz", ["unknown thing 'zzz'", "Known: loud-thing, thing"]),
        ("thing:q=1", ["no setting 'q'", "p (a number from 0 to 1; default 0.25)"]),
        ("thing:cuont=1", ["no setting 'cuont'", "Did you mean: count?"]),
        ("thing:p=1.5", ["thing: p=1.5 is not valid", "a number from 0 to 1"]),
        ("thing:p=nan", ["p=nan is not valid"]),
        ("thing:p=half", ["p=half is not valid"]),
        ("thing:count=0", ["count=0 is not valid", "a whole number from 1"]),
        ("thing:count=1.5", ["count=1.5 is not valid"]),
        ("thing:count=none", ["count=none is not valid"]),
        ("thing:ratio=0", ["ratio=0 is not valid", "above 0 up to 1, or none"]),
        ("thing:kind=c", ["kind=c is not valid", "a|b"]),
        ("thing:loud=1", ["loud=1 is not valid", "true|false"]),
        ("thing:p", ["cannot read 'p'", "key=value"]),
        ("thing:p=", ["cannot read 'p='"]),
        ("thing:p=0.1,p=0.2", ["sets p twice"]),
        ("thing:p=0.1:q=2", ["is not a name with settings"]),
        ("", ["is not a name with settings"]),
        ("loud-thing:loud=false", ["loud is fixed by the name loud-thing"]),
        ("no.such.module:Class", ["cannot be loaded from no.such.module:Class"]),
        ("bench.plan.cells:NoSuchClass", ["cannot be loaded"]),
        ("bench.plan.cells:Cell", ["is not a", "derive it from that class"]),
    ],
)
def test_mistakes_are_one_line_that_names_the_remedy(things: Registry, spec: str, words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        things.resolve(spec)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_a_flag_written_as_false_is_false(things: Registry) -> None:
    assert things.resolve("thing:loud=False").settings["loud"] is False


def test_a_name_is_taken_once_and_only_by_the_right_class(things: Registry) -> None:
    with pytest.raises(UserError, match="registered twice"):
        things.add("thing", Thing)
    things.register("stranger", "of another family")(Stranger)
    with pytest.raises(UserError, match="derive it from that class"):
        things.load("stranger")


def test_path_with_settings_stands_for_a_name() -> None:
    assert split_spec("my.module:Class:p=0.1,q=2") == ("my.module:Class", {"p": "0.1", "q": "2"})
    assert split_spec("my.module:Class") == ("my.module:Class", {})


@given(st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.integers() | st.none())
def test_show_writes_what_reads_back_as_the_same_value(value: float | bool | int | None) -> None:
    text = show(value)
    if isinstance(value, bool) or value is None:
        assert text == str(value).lower()
    else:
        assert type(value)(text) == value


@given(st.text(max_size=60))
def test_any_text_resolves_or_is_a_user_error(text: str) -> None:
    registry = Registry("thing", "augbench.no-such-group", "bench.plan.cells:Cell")
    registry.add("known", "bench.plan.cells:Cell")
    try:
        registry.resolve(text)
    except UserError as error:
        assert "\n" not in str(error) or "\n" in text


def test_entry_points_of_installed_packages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    point = importlib.metadata.EntryPoint("theirs", "their.module:Class", "augbench.augmenters")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    registry = Registry("augmenter", "augbench.augmenters", "augmenters.base:Augmenter")
    assert registry.names() == ["theirs"]
    assert registry.entry("theirs").target == "their.module:Class"
    clash = Registry("augmenter", "augbench.augmenters", "augmenters.base:Augmenter")
    clash.add("theirs", Thing)
    with pytest.raises(UserError, match="already taken"):
        clash.names()
