"""The report: complete, self-contained, inert, and readable in a browser narrow and wide."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from bench.registry import UserError
from bench.results.frame import from_records
from bench.results.records import Record, TrialRecord
from tables.explorer import Curves
from tables.grid import Request
from tables.report import render
from tables.site import ResultSet, names_of, site
from tables.specs import FIGURE, TABLES, Coordinate, full

HOSTILE = "\"><script>window.pwned=1</script><img src=x onerror='window.pwned=1'>{{7*7}}"


EPOCHS = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 55, 77, 108, 150, 210, 294, 410, 573, 800)
DATASETS = ("PROTEINS", "NCI1", "IMDB-BINARY")


@pytest.fixture(scope="module")
def page(fake: ModuleType) -> str:
    def value(place: Coordinate, fold: int, repeat: int) -> float | None:
        return None if (place.dataset, place.k, fold) == ("NCI1", 5, 1) else fake.accuracy(place, fold, repeat)

    places = [
        *TABLES["GAE"].coordinates(),
        *(c for c in FIGURE.coordinates() if c.k in (5, 10) and c.dataset in DATASETS),
    ]
    records = fake.ledger(dict.fromkeys(places), value=value)
    odd = [Coordinate(HOSTILE, 2, name) for name in ("none", HOSTILE)]
    records += fake.ledger(odd, features="degree")
    cell = fake.cell(Coordinate("MUTAG", 2, "none"), features="native")
    records += [cell, fake.trial(cell.key, 0, 0, None, status="diverged", reason=HOSTILE)]
    records.append(fake.plan([], [], [], grid=HOSTILE, skipped=[{"cell": HOSTILE, "reason": HOSTILE}]))
    origin = {**fake.PROVENANCE.facts, "machine": {"cpu": HOSTILE, "cores": 3}}
    records.append(replace(fake.PROVENANCE, id="p2", facts=origin))
    curves = Curves()
    return render(from_records(curves.watch(with_curves(records))), [Request(mark="ties")], HOSTILE, curves)


def with_curves(records: Iterable[Record]) -> list[Record]:
    """The same, each trial with the twenty points of loss that a real one has."""
    found = list(records)
    for place, one in enumerate(found):
        if isinstance(one, TrialRecord) and one.done:
            one.curve = [[epoch, round(2.5 / epoch**0.5 + place % 7 / 100, 4)] for epoch in EPOCHS]
    return found


def test_page_says_what_was_run_and_what_failed(page: str) -> None:
    for words in (
        "What was run",
        "Features: constant",
        "Features: degree",
        "Beside the paper",
        "Costs",
        "out of memory",
        "diverged",
        "0123456789abcdef",
        "a made-up processor",
        "Left out of the plan",
        "27/30",
        "the same configuration has 64.2 (7.9) in one table",
    ):
        assert words in page


def test_hostile_names_are_text(page: str) -> None:
    assert "<script>window.pwned" not in page and "<img" not in page
    assert page.count("<script>") == 1 and page.count("<script") == 2
    assert "{{7*7}}" in page
    assert "&lt;script&gt;window.pwned=1&lt;/script&gt;" in page


def test_page_loads_nothing(page: str) -> None:
    class Links(HTMLParser):
        found: ClassVar[list[str]] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.found += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "srcset", "action")]

    links = Links()
    links.feed(page)
    assert links.found and all(link.startswith("#") for link in links.found)
    assert not re.findall(r"url\((?!#)|@import", page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_features_are_sections_unless_one_is_picked(fake: ModuleType) -> None:
    place = Coordinate("IMDB-BINARY", 2, "none")
    records = fake.ledger([place]) + fake.ledger([place], features="degree")
    assert "Features: degree" in render(from_records(records), [Request()])
    records = fake.ledger([Coordinate("PROTEINS", 2, "none")])
    text = render(from_records(records), [Request(metric="macro_f1")])
    assert "No cell of the paper" in text and "macro-averaged F1" in text


def test_an_empty_ledger_is_said(fake: ModuleType) -> None:
    with pytest.raises(UserError, match="no trials to report on yet"):
        render(from_records([fake.PROVENANCE]), [Request()])


LOOK = """
const words = (row) => [...row.cells].map((cell) => cell.textContent);
const rows = [...document.querySelectorAll("#explorer tbody tr")].map(words);
const root = document.documentElement, dialog = document.getElementById("cell");
return {rows, count: document.getElementById("count").textContent, hash: location.hash, pwned: window.pwned === 1,
  wide: root.scrollWidth, room: root.clientWidth, title: document.activeElement?.id ?? "", open: dialog.open,
  opened: dialog.innerText, curves: dialog.querySelectorAll("svg.curve").length,
  sorted: document.querySelector("#explorer th[aria-sort]")?.textContent ?? "", errors: window.failures ?? [],
  paper: getComputedStyle(document.body).backgroundColor,
  paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null}
"""


def look(browser: Any) -> dict[str, Any]:
    found = browser.call("POST", "/execute/sync", {"script": LOOK, "args": []})
    assert isinstance(found, dict)
    return found


def choose(browser: Any, name: str, value: str) -> None:
    script = "const f = document.querySelector(`#filters [name=${arguments[0]}]`); f.value = arguments[1];"
    script += "f.dispatchEvent(new Event(f.tagName === 'INPUT' ? 'input' : 'change'))"
    browser.call("POST", "/execute/sync", {"script": script, "args": [name, value]})


def test_in_a_browser(page: str, browser: Any, tmp_path: Path) -> None:
    """Filters filter, sorting sorts, a cell opens and is linked, no foreign script runs, the console is empty."""
    watched = "<script>window.failures=[];addEventListener('error',(e)=>failures.push(e.message));</script>"
    path = tmp_path / "report.html"
    path.write_text(page.replace("<title>", f"{watched}<title>", 1), encoding="utf-8")
    browser.open(path.as_uri())
    browser.until(lambda: look(browser)["rows"])
    whole = look(browser)
    choose(browser, "dataset", "NCI1")
    choose(browser, "k", "10")
    browser.click("//table[@id='explorer']//th[@data-name='mean']/button")
    found = look(browser)
    means = [float(row[3].split()[0]) for row in found["rows"]]
    assert len(means) > 5 and means == sorted(means, reverse=True) and found["sorted"] == "Mean (std)"
    assert {(row[0], row[1]) for row in found["rows"]} == {("NCI1", "10")}
    assert f"{len(means)} of " in found["count"] and found["count"] != whole["count"]
    assert "dataset=NCI1" in found["hash"] and "sort=-mean" in found["hash"]
    choose(browser, "q", "gdm")
    assert 0 < len(look(browser)["rows"]) < len(means)
    browser.click("//table[@id='explorer']/tbody//a")
    browser.until(lambda: look(browser)["open"])
    found = look(browser)
    assert found["title"] == "cell-title" and found["hash"].startswith("#cell=")
    for words in ("30 of 30 trials", "Generated graphs", "density", "Settings", "training.epochs", "0123456789ab"):
        assert words in found["opened"]
    assert found["curves"] == 1
    browser.open("about:blank")
    browser.open(path.as_uri() + found["hash"])
    browser.until(lambda: look(browser)["open"])
    assert look(browser)["opened"].split("\n")[0] == found["opened"].split("\n")[0], "the address opens the same cell"
    browser.click("//button[@id='close']")
    before = look(browser)
    assert not before["open"]
    browser.click("//button[@id='theme']")
    assert look(browser)["paper"] != before["paper"]
    choose(browser, "q", "pwned")  # the hostile cells themselves
    found = look(browser)
    assert len(found["rows"]) == 2 and not found["pwned"] and not found["errors"]
    severe = [one for one in browser.log() if one["level"] == "SEVERE"]
    assert not severe


@pytest.mark.parametrize("width", [400, 800, 1600])
def test_nothing_overflows(page: str, browser: Any, tmp_path: Path, width: int) -> None:
    frame = '<!doctype html><body style="margin:0"><iframe src="report.html" style="width:%dpx;height:900px;border:0">'
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    (tmp_path / "frame.html").write_text(frame % width, encoding="utf-8")
    browser.open((tmp_path / "frame.html").as_uri())
    browser.call("POST", "/frame", {"id": 0})
    browser.until(lambda: look(browser)["rows"])
    found = look(browser)
    assert found["room"] == width and found["wide"] <= width


def test_thousands_of_trials_are_small_and_quick(fake: ModuleType, browser: Any, tmp_path: Path) -> None:
    """The paper's 440 cells of 30 trials, with curves, in under 3 MB and painted within a second."""
    places = list(full())
    records = with_curves(fake.ledger(places))
    assert sum(isinstance(one, TrialRecord) for one in records) == 30 * len(places) >= 13_200
    curves = Curves()
    text = render(from_records(curves.watch(records)), [Request(mark="ties")], curves=curves)
    assert len(text.encode()) < 3_000_000
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    browser.open((tmp_path / "report.html").as_uri())
    browser.until(lambda: look(browser)["rows"])
    found = look(browser)
    assert len(found["rows"]) == 100 and found["count"] == f"{len(places)} of {len(places)} cells"
    assert found["paint"] < 1000


def test_a_site_of_two_result_sets(fake: ModuleType, browser: Any, tmp_path: Path) -> None:
    """The index says who measured each set, and its cells lead to the set's own report."""
    methods = ("none", "dropedge", "gdm-acc")
    places = [Coordinate(name, 10, method) for name in ("PROTEINS", "NCI1") for method in methods]
    sets = []
    for name, commit in (("lab", "1111111111112222"), (HOSTILE, "3333333333334444")):
        records = fake.ledger(places)
        records[0] = replace(fake.PROVENANCE, facts={**fake.PROVENANCE.facts, "commit": commit})
        words = {"verified": "5 of 5 came out the same"} if name == "lab" else {}
        sets.append(ResultSet(name, from_records(records), Curves(), **words))
    texts = site(sets, [Request()], "All")
    assert list(texts) == [sets[0].page, sets[1].page, "index.html"]
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    index = texts["index.html"]
    assert "111111111111," in index and "333333333333," in index and index.count("not verified") == 1 + 2
    assert index.count("5 of 5 came out the same") == 1 + 2 and "5 of 5 came out the same" in texts["set-lab.html"]
    assert "<script>window.pwned" not in index and index.count("<script") == 2
    browser.open((tmp_path / "index.html").as_uri())
    browser.until(lambda: browser.find("//table[@id='explorer']/tbody/tr"))
    assert len(browser.find("//table[@id='explorer']/tbody/tr")) == 2 * len(places)
    choose(browser, "set", "lab")
    assert len(browser.find("//table[@id='explorer']/tbody/tr")) == len(places)
    browser.click("//table[@id='explorer']/tbody//a[contains(., 'DropEdge')]")
    browser.until(lambda: look(browser)["open"])
    assert "DropEdge on" in look(browser)["opened"] and "111111111111" in look(browser)["opened"]
    assert not [one for one in browser.log() if one["level"] == "SEVERE"]


def test_result_sets_are_named_by_their_folders() -> None:
    paths = ["lab/trials.parquet", "other/lab", "x/lab/ledger.jsonl", "mine.parquet"]
    assert names_of([Path(path) for path in paths]) == ["lab", "lab-2", "lab-3", "mine"]


def test_a_dataset_that_has_learners_alone_breaks_no_figure(fake: ModuleType) -> None:
    places = [Coordinate("PROTEINS", 10, name) for name in ("none", "dropedge")]
    places += [Coordinate("DD", 10, "none", "", "", "wl"), Coordinate("NCI1", 10, "submix")]
    page = render(from_records(fake.ledger(places)), [Request()], "learners beside")
    assert "learners beside" in page and "WL" in page
