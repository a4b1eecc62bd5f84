"""Several result sets as a small static site: an index with their origins, and a report for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bench.registry import UserError
from bench.results.frame import Results
from bench.results.verification import NOT_VERIFIED
from tables.explorer import COLUMNS, Curves, as_json, cell_rows, measured_words
from tables.grid import Request
from tables.report import environment, facts_of, render
from tables.selection import Index
from tables.verdict import standings, verdict
from tables.wording import noun

INDEX = "index.html"


@dataclass(frozen=True)
class ResultSet:
    """One entry of the site."""

    name: str
    results: Results
    curves: Curves
    verified: str = NOT_VERIFIED  # the result of `bench verify`

    @property
    def page(self) -> str:
        """Its file name: letters, digits and dashes, whatever its name is."""
        kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in self.name)
        return f"set-{kept}.html"


def names_of(paths: Sequence[Path]) -> list[str]:
    """A unique short name for each source: its folder, or the file if that is more informative."""
    found: list[str] = []
    for path in paths:
        whole = path.resolve()
        plain = whole.suffix in (".jsonl", ".parquet") and whole.stem in ("ledger", "trials")
        name = whole.parent.name if plain else whole.stem if whole.suffix in (".jsonl", ".parquet") else whole.name
        count = 1
        while (tried := name if count == 1 else f"{name}-{count}") in found:
            count += 1
        found.append(tried)
    return found


def site(sets: Sequence[ResultSet], requests: Sequence[Request], title: str) -> dict[str, str]:
    """All pages of the site by file name."""
    pages = [one.page for one in sets]
    if len(set(pages)) < len(pages):
        raise UserError("two result sets would have the same page name; rename one of their folders")
    texts = {
        one.page: render(one.results, requests, f"{title}: {one.name}", one.curves, INDEX, one.verified) for one in sets
    }
    metric = requests[0].metric or "accuracy"
    rows = [[one.name, *row] for one in sets for row in cell_rows(one.results, metric)]
    data = {
        "columns": ["set", *COLUMNS],
        "rows": rows,
        "pages": {one.name: one.page for one in sets},
    }
    texts[INDEX] = (
        environment()
        .get_template("site.html.j2")
        .render(
            title=title,
            noun=noun(requests[0].metric),
            entries=[_entry(one, requests[0]) for one in sets],
            data=Markup(as_json(data)),
        )
    )
    return texts


def _entry(one: ResultSet, request: Request) -> Mapping[str, Any]:
    index = Index(one.results)
    try:
        sentences, rows = verdict(index, request).sentences, standings(index, request)
    except UserError as error:  # cells that do not agree: the error explains how to choose
        sentences, rows = (str(error),), []
    return {
        "name": one.name,
        "page": one.page,
        "verdict": sentences[0],
        "facts": facts_of(one.results)[:3],
        "measured": measured_words(one.results) or ["nothing recorded"],
        "verified": one.verified,
        "standings": rows,
    }
