"""Texts made to do harm: indices and counts that lie, bombs of nesting and of products, names that are markup."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.datasets import load_dataset
from bench.datasets.importing import import_path
from bench.datasets.split_files import LARGEST_FILE
from bench.plan.grid_files import read_grid
from bench.protocol.splits import read_splits
from bench.registry import UserError
from bench.results.ledger import read_records
from bench.results.records import CellRecord, ProvenanceRecord, Record

HOSTILE = (
    "\"><script>x</script><img src=y onerror='z'>{{7*7}}\\input{/etc/passwd}\\write18{id}$\\frac%\n&#_^~\x1b[31m\u202e"
)
LIES = {
    "one hot of a span that overflows": ({"node_labels": f"{-(2**63)}\n" + f"{2**63 - 1}\n" * 119}, "span more than"),
    "a graph number that counts to the end": ({"graph_indicator": "1\n" * 119 + f"{2**62}\n"}, "without gaps"),
    "the largest graph number": ({"graph_indicator": f"{2**63 - 1}\n" * 120}, "without gaps"),
    "graph numbers from below zero": ({"graph_indicator": "-1\n" * 60 + "0\n" * 60}, "without gaps"),
    "an edge to a negative node": ({"A": "1, 2\n-5, 1\n"}, r"outside 1\.\.120"),
    "an edge to the largest number": ({"A": f"1, {2**63 - 1}\n"}, r"outside 1\.\.120"),
    "a number of a hundred digits": ({"A": f"1, {10**100}\n"}, "not a table of whole numbers"),
    "one column": ({"A": "1\n2\n"}, "1 columns instead of 2"),
    "fewer nodes than labels": ({"graph_indicator": "1\n2\n"}, "labels for 2 graphs"),
    "a null byte": ({"graph_labels": "1\n\0\n" + "1\n" * 38}, "not a table of whole numbers"),
}


@pytest.mark.parametrize("case", LIES)
def test_text_files_that_lie(
    case: str, tmp_data_root: Path, write_archive: Callable[..., Path], tiny_files: Callable[..., dict[str, str]]
) -> None:
    change, reason = LIES[case]
    with pytest.raises(UserError, match=reason) as caught:
        import_path(write_archive(files={**tiny_files(), **change}), tmp_data_root)
    assert str(caught.value).isprintable()
    assert not list(tmp_data_root.rglob("*.txt"))


def test_a_set_with_a_single_edge_is_a_result_or_one_line(
    tmp_data_root: Path, write_archive: Callable[..., Path], tiny_files: Callable[..., dict[str, str]]
) -> None:
    """PyG's reader takes a table of one line for a list."""
    try:
        import_path(write_archive(files={**tiny_files(), "A": "1, 2\n"}), tmp_data_root)
        assert load_dataset("TINY", tmp_data_root).graphs[0].num_edges == 2
    except UserError as error:
        assert "TINY cannot be read by PyG" in str(error)


def test_a_split_file_without_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "TINY_splits.json"
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(UserError, match="larger than"):
        read_splits(path, "TINY", "MINE", 40)
    with pytest.raises(UserError, match="larger than"):
        import_path(path, tmp_path / "data")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'datasets = "digits"\nk = {list(range(1, 3000))}\naugmenters = {["none"] * 1000}', "more than 1000000 cells"),
        (f"datasets = 'digits'\n[space]\n{'.'.join('a' * 1500)} = 1", "tables in tables"),
        (f"datasets = 'digits'\nk = {'[' * 5000}", "not valid TOML"),
        ("datasets = 'digits'\nname = '..'", "cannot be the name of a grid"),
        ("datasets = 'digits'\nname = ''", "cannot be the name of a grid"),
        ("datasets = 'digits'\n[training]\nepochs = [1]", "epochs"),
        ("datasets = '..:x'", "datasets"),
        ("datasets = 'digits'\naugmenters = \"a\\nb\"", "unknown augmenter"),
    ],
)
def test_grid_files_that_grow(text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=reason) as caught:
        read_grid(path, tmp_path)
    assert str(caught.value).isprintable()


def test_a_plan_of_billions_of_trials_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    many = str(list(range(40_000)))
    path.write_text(f'{{"type":"plan","grid":"g","cells":["c"],"folds":{many},"repeats":{many}}}\n')
    with pytest.raises(UserError, match="line 1 is not a ledger record"):
        read_records(path)


class Tags(HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name) for name, _ in attrs} | {(tag, "")}


def fake_ledger() -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "tables" / "fake_ledger.py"
    spec = importlib.util.spec_from_file_location("augbench_fake_ledger_hostile", path)
    assert spec is not None and spec.loader is not None
    sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])
    return sys.modules[spec.name]


def records(word: str) -> list[Record]:
    """A ledger with that word wherever a ledger has words."""
    from tables.specs import Coordinate

    fake = fake_ledger()
    places = [Coordinate(f"D{word}", 2, name) for name in ("none", f"m{word}")]
    found: list[Record] = fake.ledger(places, folds=2, repeats=1)
    key = next(record.key for record in found if isinstance(record, CellRecord))
    found.append(fake.trial(key, 1, 1, None, reason=word))
    found.append(fake.plan([key], [0], [0], grid=word, skipped=[{"cell": {"dataset": word}, "reason": word}]))
    found.append(ProvenanceRecord(word, {"commit": word, "machine": {word: word}}))
    return found


def test_a_report_of_hostile_names_has_the_tags_of_any_other() -> None:
    from bench.results.frame import from_records
    from tables.grid import Request
    from tables.report import render

    pages = {}
    for word in ("plain", HOSTILE):
        pages[word] = render(from_records(records(word)), [Request()], word)
    seen = {}
    for word, page in pages.items():
        parser = Tags()
        parser.feed(page)
        seen[word] = parser.found
    assert seen[HOSTILE] == seen["plain"]
    assert not [name for _, name in seen[HOSTILE] if name.startswith("on")]
    assert pages[HOSTILE].count("<script") == 2, "ours, and the cells as data"


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(), max_size=40))
def test_any_text_is_inert_in_latex(text: str) -> None:
    from tables.latex import escape

    known = r"\\(textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar|textquotedbl|textquotesingle"
    known += r"|textasciigrave|pm)\b(\{\})?|\\[{}$&#%_]|\$\\pm\$"
    rest = re.sub(known, "", escape(text))
    assert not set(rest) & set("\\{}$&#%_^~") and rest.isprintable()
