"""The report: complete, self-contained, inert, and readable in a browser narrow and wide."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from bench.registry import UserError
from bench.results.frame import from_records
from tables.grid import Request
from tables.report import render
from tables.specs import FIGURE, TABLES, Coordinate

HOSTILE = "\"><script>window.pwned=1</script><img src=x onerror='window.pwned=1'>{{7*7}}"


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
    return render(from_records(records), [Request(mark="ties")], title=HOSTILE)


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
    assert page.count("<script>") == 1
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
    assert "Beside the paper" not in text and "macro-averaged F1" in text


def test_an_empty_ledger_is_said(fake: ModuleType) -> None:
    with pytest.raises(UserError, match="no trials to report on yet"):
        render(from_records([fake.PROVENANCE]), [Request()])


WATCHER = """<!doctype html><html><body>
<iframe id="f" src="report.html" style="width:%dpx;height:900px;border:0"></iframe>
<pre id="out"></pre><script>
document.getElementById("f").addEventListener("load", (event) => {
  const w = event.target.contentWindow, d = w.document, root = d.documentElement;
  const table = d.querySelector("table.sortable tbody");
  const values = () => [...table.rows].map((row) => row.cells[1].dataset.value);
  const button = table.parentNode.querySelectorAll("thead tr:last-child th button")[1];
  button.click(); const falling = values(); button.click(); const rising = values();
  const light = w.getComputedStyle(d.body).backgroundColor;
  d.getElementById("theme").click();
  const dark = w.getComputedStyle(d.body).backgroundColor;
  const size = {wide: root.scrollWidth, room: root.clientWidth};
  const found = {...size, falling, rising, pwned: w.pwned === 1, light, dark, scripts: d.scripts.length};
  document.getElementById("out").textContent = JSON.stringify(found);
});
</script></body></html>"""


@pytest.mark.parametrize("width", [400, 1400])
def test_in_a_browser(page: str, tmp_path: Path, width: int) -> None:
    """Nothing overflows, sorting sorts, the theme turns, and no foreign script has run."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    (tmp_path / "watch.html").write_text(WATCHER % width, encoding="utf-8")
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    flags += " --disable-component-update --hide-scrollbars --allow-file-access-from-files --virtual-time-budget=4000"
    command = [browser, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width + 40},1000"]
    command += ["--dump-dom", (tmp_path / "watch.html").as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    found = json.loads(re.search(r'<pre id="out">(.*?)</pre>', dom, re.DOTALL)[1])  # type: ignore[index]
    assert found["room"] == width and found["wide"] <= width
    numbers = [float(value) for value in found["falling"]]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == 8
    assert [float(value) for value in found["rising"]] == sorted(numbers)
    assert not found["pwned"] and found["scripts"] == 1
    assert found["light"] != found["dark"]
