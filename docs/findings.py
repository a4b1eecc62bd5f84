"""Writes docs/findings.md from docs/findings.md.j2; every number and picture comes from the trials in results/.

    python docs/findings.py            # `make tables` does this last

In the template `standard`, `degrees` and `paper` are the first three label draws of one preset and kind of features
(see `Quoted`), `precise` is all draws of those cells that have more, `study` is the study of readings, and
`include("tables/learners.md")` is a rendered file of results/.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.cli.study_holes import holes
from bench.plan.grids import named_grid
from bench.results.frame import from_records
from bench.results.ledger import LedgerState
from bench.results.workspace import records_at
from tables.compare import WITHIN, Compared, compare
from tables.formats import pipe_table
from tables.grid import PAPERS_DRAWS, Entry, Grid, Request, fill
from tables.own_specs import OWN_TABLES
from tables.readings import Study, paragraphs, study, summary_sentences
from tables.selection import Index, Pick
from tables.specs import LABEL_RATES, LONG_NAMES, METHODS, TABLES, Column, Coordinate, TableSpec, coordinates, full
from tables.statistics import ALPHA, Paired, Pooled, holm, pooled, summary
from tables.wording import pooled_lines, signed

DOCS = Path(__file__).resolve().parent
TRIALS = 30  # of a complete cell
STAR = " *"
NAMES = {row.augmenter: row.name for spec in (*TABLES.values(), *OWN_TABLES.values()) for row in spec.rows}
METHOD_ORDER = list(NAMES)
TABLE = re.compile(r"^\|.*\n", re.MULTILINE)  # the lines of a table; no file has two
PICTURES = {  # of the page, and the rendered figure that each is
    "differences.svg": "tables/differences-k10.svg",
    "learners-differences.svg": "tables/learners-differences-k10.svg",
    "specification-curve.svg": "readings/specification-curve.svg",
}


class Quoted:
    """The numbers of one preset, asked for with the words of the command line."""

    def __init__(self, archive: Path, preset: str, features: str, draws: int = PAPERS_DRAWS) -> None:
        self.index = Index(from_records(records_at(archive, curves=False))).using(draws)
        self.preset = preset
        self.request = Request(pick=Pick({"preset": preset, "features": features}), mark="ties")
        self._grids: dict[str, Grid] = {}

    def values(self, dataset: str, augmenter: str = "none", k: int = 10, **model: str) -> pd.Series[float]:
        """The accuracies of one cell by fold and repeat."""
        return self.index.results.values(self._key(dataset, augmenter, k, model), "accuracy")

    def mean(self, dataset: str, augmenter: str = "none", k: int = 10, **model: str) -> str:
        """Mean and standard deviation in percent, as `60.6 (9.1)`."""
        found = summary(self.values(dataset, augmenter, k, **model))
        return f"{100 * found.mean:.1f} ({100 * found.std:.1f})"

    def percent(self, dataset: str, augmenter: str = "none", k: int = 10, **model: str) -> str:
        """The mean alone."""
        return f"{100 * self.values(dataset, augmenter, k, **model).mean():.1f}"

    def collapsed(self, dataset: str, augmenter: str = "none", k: int = 10, **model: str) -> str:
        """The share of trials that put all test graphs into one class."""
        share = self.index.results.collapsed(self._key(dataset, augmenter, k, model))
        return f"{100 * share:.0f} %"

    def gain(self, dataset: str, augmenter: str, k: int = 10, **model: str) -> str:
        """The paired difference to plain training of the same model, as `+1.3 ± 2.1`."""
        return points(self._paired((dataset, augmenter, k, model), (dataset, "none", k, model)))

    def lead(self, dataset: str, learner: str, k: int = 10) -> str:
        """The paired difference of a learner without a network to plain GCN."""
        return points(self._paired((dataset, "none", k, outside(learner)), (dataset, "none", k, {})))

    def density(self, dataset: str, augmenter: str, k: int = 10, original: bool = False) -> str:
        """The mean density of the graphs that a method generates, or of those that it generates them from."""
        done = self.index.results.done(self._key(dataset, augmenter, k, {}))
        return f"{done['generated.density_original' if original else 'generated.density'].astype(float).mean():.2f}"

    def detectable(self, name: str) -> str:
        """The smallest and the largest difference that a table would find four times in five, as `1.8 to 4.7`."""
        found = sorted(one.difference.detectable for one in self.differences(name) if one.difference is not None)
        return f"{100 * found[0]:.1f} to {100 * found[-1]:.1f}"

    def grid(self, name: str) -> Grid:
        """A table by its name."""
        if name not in self._grids:
            self._grids[name] = fill(self.index, {**TABLES, **OWN_TABLES}[name], self.request)
        return self._grids[name]

    def rates(self) -> str:
        """What the other label rates say, a sentence for each."""
        return " ".join(self._rate(k) for k in LABEL_RATES if k != 10)

    def _rate(self, k: int) -> str:
        columns = tuple(Column(dataset, k, name) for dataset, name in LONG_NAMES.items())
        found = fill(self.index, TableSpec(f"k{k}", "", (METHODS,), columns), self.request)
        entries = [one for one in found.entries if one.difference is not None and not math.isnan(one.p_holm)]
        sure = [one for one in entries if one.p_holm < ALPHA]
        words = (
            f"{len(sure)} of {len(entries)} differences significant" if sure else f"none of {len(entries)} significant"
        )
        kept = [one for one in sure if one.p_table < ALPHA]
        said = f" ({named(sure)}; over all of them {len(kept) or 'none'})" if sure else ""
        return f"At k = {k}, {words}{said}."

    def differences(self, name: str, *datasets: str) -> list[Entry]:
        """The entries of a table that are compared with plain training, of some datasets or of all."""
        found = [entry for entry in self.grid(name).entries if entry.difference is not None and entry.value.n]
        return [entry for entry in found if not datasets or entry.coordinate.dataset in datasets]

    def significant(self, name: str, sign: str = "", table: bool = False) -> list[Entry]:
        """Those that are significant within their column, or over the whole table; `+` or `-` picks a direction."""
        found = [one for one in self.differences(name) if (one.p_table if table else one.p_holm) < ALPHA]
        return [one for one in found if not sign or (one.difference.mean > 0) == (sign == "+")]  # type: ignore[union-attr]

    def pooled(self, name: str, row: str) -> Pooled:
        """One row of a table over its datasets."""
        return next(line.found for line in pooled_lines(self.grid(name)) if line.row == row)

    @cached_property
    def compared(self) -> tuple[Compared, ...]:
        """Every number of the paper that has one of ours beside it."""
        return compare(self.index, self.request).lines

    def near(self, kind: str = "", table: str = "") -> str:
        """How many of the paper's numbers lie within noise: `baseline`, `gdm`, `other` or all; as `23 of 40`."""
        lines = [one for one in self.compared if kind in ("", kind_of(one)) and table in ("", one.theirs.table)]
        return f"{sum(one.verdict == WITHIN for one in lines)} of {len(lines)}"

    def missing(self, name: str = "full") -> str:
        """How much of a grid is complete, and what is not, by dataset."""
        wanted = full() if name == "full" else coordinates(name)
        found = self.index.choose(wanted, "default", self.request.pick)
        lacking = [place for place, key in found.items() if len(self.index.results.done(key)) < TRIALS]
        by_dataset = Counter(place.dataset for place in lacking)
        words = ", ".join(f"{count} of {LONG_NAMES[dataset]}" for dataset, count in by_dataset.items())
        done = f"{len(found) - len(lacking)} of {len(found)} cells have all their trials"
        return f"Preset `{self.preset}`: {done}" + (f"; missing are {words}." if words else ".")

    def precise(self) -> dict[str, list[str]]:
        """The methods by datasets of which more than the usual draws are on record, plain training left out."""
        found: dict[str, list[str]] = {}
        for place in self.index.coordinates(["default"]):
            key = self.index.choose([place], "default", self.request.pick)[place]
            usual = (place.k, place.backbone, place.readout) == (10, "gcn", "mean") and place.augmenter != "none"
            if usual and len(self.index.results.done(key)) > TRIALS:
                found.setdefault(place.augmenter, []).append(place.dataset)
        return found

    def precise_table(self) -> str:
        """Differences over all draws, with the pairs that each rests on; a star with Holm's correction over all."""
        methods, datasets, pairs = self._precise_pairs()
        starred = {place for place, _ in self.precise_findings()}
        lines = []
        for method in methods:
            over = pooled([pairs[method, dataset] for dataset in datasets])
            cells = [
                f"{points(pairs[place])}{STAR if place in starred else ''} ({pairs[place].n})"
                for place in ((method, dataset) for dataset in datasets)
            ]
            lines.append([NAMES[method], *cells, points(over) if over is not None else ""])
        return pipe_table(("Method", *(LONG_NAMES[name] for name in datasets), "All"), lines)

    def precise_findings(self) -> list[tuple[tuple[str, str], Paired]]:
        """The differences of that table that remain with Holm's correction over all of them."""
        _, _, pairs = self._precise_pairs()
        corrected = holm([pair.p for pair in pairs.values()])
        return [(place, pair) for (place, pair), p in zip(pairs.items(), corrected, strict=True) if p < ALPHA]

    def precise_words(self) -> str:
        """Those in words, as `DropNode on Proteins (+2.0 ± 0.8)`."""
        found = self.precise_findings()
        return " and ".join(f"{NAMES[m]} on {LONG_NAMES[d]} ({points(pair)})" for (m, d), pair in found) or "none"

    def _precise_pairs(self) -> tuple[list[str], list[str], dict[tuple[str, str], Paired]]:
        held = self.precise()
        methods = sorted(held, key=METHOD_ORDER.index)
        datasets = [name for name in LONG_NAMES if all(name in held[method] for method in methods)]
        pairs = {
            (method, name): self._paired((name, method, 10, {}), (name, "none", 10, {}))
            for method in methods
            for name in datasets
        }
        return methods, datasets, pairs

    def _key(self, dataset: str, augmenter: str, k: int, model: dict[str, str]) -> str:
        place = Coordinate(dataset, k, augmenter, **model)
        key = self.index.choose([place], "default", self.request.pick)[place]
        if key is None:
            raise SystemExit(f"findings.md.j2 quotes {place}, which is not in the archive")
        return key

    def _paired(self, *places: tuple[str, str, int, dict[str, str]]) -> Paired:
        first, second = (self._key(*place) for place in places)
        return self.index.paired(first, second, "accuracy")


def pooled_gains(quoted: Quoted) -> str:
    """Every augmenter over the datasets that all of them have, the highest mean first."""
    lines = sorted(pooled_lines(quoted.grid("augmenters")), key=lambda line: -line.found.mean)
    words = ", ".join(f"{line.row} {points(line.found)}" for line in lines)
    kept = ", ".join(line.row for line in lines if line.p_holm < ALPHA)
    return f"{words} (the intervals are about these datasets; with Holm's correction, significant: {kept or 'none'})"


def outside(learner: str) -> dict[str, str]:
    """The model of a learner without a network."""
    return {"backbone": "", "readout": "", "learner": learner}


def points(found: Paired | Pooled) -> str:
    """A difference with half of its 95 % interval, as `+1.3 ± 2.1`."""
    return f"{signed(found.mean)} ± {50 * (found.high - found.low):.1f}"


def kind_of(line: Compared) -> str:
    """What a number of the paper is of: plain training, GDM, or another augmenter."""
    augmenter = line.theirs.coordinate.augmenter
    return "baseline" if augmenter == "none" else "gdm" if augmenter.startswith("gdm") else "other"


def named(entries: Sequence[Entry]) -> str:
    """Differences by name, as `GDM Unc on IMDB-Binary (-4.0)`."""
    words = [
        f"{NAMES[one.coordinate.augmenter]} on {LONG_NAMES[one.coordinate.dataset]} ({signed(one.difference.mean)})"
        for one in entries
        if one.difference is not None
    ]
    return ", ".join(words)


def read_study(archive: Path) -> Study:
    """The study of readings in an archive."""
    state = LedgerState.of(records_at(archive, curves=False))
    return study(state, holes(state, named_grid("readings")))


def render(results: Path, rendered: Path) -> str:
    """The page, from the archives in one folder and the tables that were rendered from them in another."""
    pages = Environment(loader=FileSystemLoader(DOCS), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    readings = read_study(results / "readings.parquet")
    return pages.get_template("findings.md.j2").render(
        standard=Quoted(results / "trials.parquet", "standard", "constant"),
        degrees=Quoted(results / "trials.parquet", "standard", "degree-onehot"),
        paper=Quoted(results / "paper.parquet", "paper", "degree-onehot"),
        precise=Quoted(results / "trials.parquet", "standard", "constant", draws=0),
        study_sentence=" ".join(summary_sentences(readings)),
        study_paragraphs=paragraphs(readings),
        study_holes=" ".join(readings.holes),
        pooled_gains=pooled_gains,
        include=lambda name: (rendered / name).read_text(encoding="utf-8").rstrip("\n"),
        named=named,
        outside=outside,
    )


def requoted(text: str, rendered: Path) -> str:
    """The page with the table below each `<!-- tables/NAME.md -->` as that file has it."""

    def renewed(found: re.Match[str]) -> str:
        return found[1] + "".join(TABLE.findall((rendered / found[2]).read_text(encoding="utf-8")))

    return re.sub(r"(<!-- (\S+\.md) -->\n)(?:\|.*\n)+", renewed, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=DOCS.parent / "results")
    parser.add_argument("--rendered", type=Path, help="folder of the rendered tables (default: that of --results)")
    parser.add_argument("--out", type=Path, default=DOCS / "findings.md")
    parser.add_argument("--pages", type=Path, nargs="*", default=[], help="pages whose quoted tables are renewed")
    options = parser.parse_args()
    rendered = options.rendered or options.results
    options.out.write_text(render(options.results, rendered), encoding="utf-8")
    images = options.out.parent / "images"
    images.mkdir(exist_ok=True)
    for name, figure in PICTURES.items():
        shutil.copyfile(rendered / figure, images / name)
    for page in options.pages:
        page.write_text(requoted(page.read_text(encoding="utf-8"), rendered), encoding="utf-8")


if __name__ == "__main__":
    main()
