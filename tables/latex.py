"""Filled tables as LaTeX, in the paper's own layout or with booktabs; all external text is escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from bench.registry import unknown
from tables.formats import POOLED_HEADS, pooled_words
from tables.grid import Entry, Grid
from tables.specs import FIGURE, MEASURE, TABLES
from tables.wording import KINDS, PooledLine, Shown, caption, measure, notes, pooled_notes, shown

STYLES = ("paper", "booktabs")
DOCUMENT_CLASSES = ("article", "llncs")
TEMPLATES = Path(__file__).parent / "templates"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": "-",
}
_PLUS_MINUS = r"\pm "
_DIGIT_WORDS = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


class Tex(str):
    """Text that is already LaTeX."""

    __slots__ = ()


def escape(value: Any) -> Tex:
    """Any text as LaTeX that prints it; characters without a glyph in plain pdflatex are replaced by their code."""
    if isinstance(value, Tex):
        return value
    return Tex("".join(_escape_character(character) for character in str(value)))


def _escape_character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if " " <= character <= "~":
        return character
    if character.isspace() or unicodedata.category(character) == "Cc":
        return " "
    if character == "±":
        return r"$\pm$"
    if "\u00c0" <= character <= "\u017f":  # Latin letters with accents
        return character
    return f"[U+{ord(character):04X}]"


@cache
def environment() -> jinja2.Environment:
    """Templates in which every expression is escaped unless it is marked as LaTeX."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        finalize=escape,
        autoescape=False,
    )
    made.filters["tex"] = Tex
    return made


def number(cell: Shown) -> Tex:
    r"""One cell: `$59.3_{(6.8)}$`, the best `$\mathbf{66.0}_{(5.3)}$`."""
    raised = r"\,".join(cell.raised)
    if not cell.is_number:
        return Tex(f"{cell.main}$^{{{raised}}}$" if raised else cell.main)
    main = rf"\mathbf{{{cell.main}}}" if cell.bold else cell.main
    main = rf"\underline{{{main}}}" if cell.underlined else main
    spread = f"_{{{cell.spread.replace('±', _PLUS_MINUS)}}}" if cell.spread else ""
    return Tex(f"${main}{spread}{f'^{{{raised}}}' if raised else ''}$")


def table(grid: Grid, kind: str = "values", style: str = "paper") -> str:
    """One table environment."""
    for what, value, known in (("style", style, STYLES), ("kind of table", kind, KINDS)):
        if value not in known:
            raise unknown(what, value, known)
    widths = [count for _, count in grid.spec.spans()]
    spans, start = [], 2
    for name, count in grid.spec.spans():
        spans.append({"name": name, "count": count, "first": start, "last": start + count - 1})
        start += count
    return (
        environment()
        .get_template(f"{style}.tex.j2")
        .render(
            grid=grid,
            spec=grid.spec,
            spanned=any(column.span for column in grid.spec.columns),
            spans=spans,
            bars=_bars(widths),
            width=_width(grid, kind),
            caption=caption(grid, kind),
            notes=notes(grid, kind),
            label=Tex(_label(f"table:{grid.name}" if kind == "values" else f"table:{grid.name}-{kind}")),
            cells=[
                [[number(shown(entry, kind, grid.mark)) for entry in line.entries] for line in group]
                for group in grid.groups
            ],
        )
    )


def pooled(grid: Grid, lines: Sequence[PooledLine]) -> str:
    """Each method over the datasets of a table, with the notes as its caption."""
    rows = [pooled_words(line) for line in lines]
    label = Tex(_label(f"table:{grid.name}-overall"))
    template = environment().get_template("pooled.tex.j2")
    return template.render(heads=POOLED_HEADS, rows=rows, caption=" ".join(pooled_notes(lines)), label=label)


def _width(grid: Grid, kind: str) -> Tex | None:
    r"""The width of a table: the text width as in the paper; otherwise its natural width, limited to the text width.

    A table that the paper does not resize stays so while its cells are not wider than the paper's.
    """
    if grid.spec.resize:
        return Tex(r"\textwidth")
    as_printed = kind == "values" and grid.mark == "best" and len(grid.lines) == len(grid.spec.rows)
    if grid.spec.name in TABLES and as_printed and not any(entry.incomplete for entry in grid.entries):
        return None
    return Tex(r"\ifdim\width>\textwidth\textwidth\else\width\fi")


def _bars(widths: Sequence[int]) -> Tex:
    """The paper's column format: `l|llll||llll`."""
    return Tex("l|" + "||".join("l" * width for width in widths))


def _label(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9:_.-]", "-", text)


def macro_names(entries: Iterable[tuple[str, Entry]]) -> dict[tuple[str, str, Any], str]:
    """A macro name for each cell: letters only (as TeX requires), unique, and the same in every run."""
    wanted = sorted({(suffix, entry.settings, entry.coordinate) for suffix, entry in entries})
    taken: set[str] = set()
    found = {}
    for suffix, settings, place in wanted:
        words = f"{suffix} {place.dataset} k {place.k} {place.augmenter} "
        words += f"{place.backbone} {place.readout}" if place.backbone else place.learner
        name = "aug" + _letters(words + (" tuned" if settings == "tuned" else ""))
        while name in taken:
            name += "X"
        taken.add(name)
        found[suffix, settings, place] = name
    return found


def _letters(text: str) -> str:
    spelled = re.sub(r"\d", lambda digit: f" {_DIGIT_WORDS[int(digit[0])]} ", text, flags=re.ASCII)
    return "".join(word[0].upper() + word[1:].lower() for word in re.findall(r"[A-Za-z]+", spelled))


def macros(grids: Sequence[Grid]) -> str:
    r"""One `\newcommand` per cell, for numbers in running text."""
    found: dict[tuple[str, str, Any], Entry] = {}
    for grid in grids:
        for entry in grid.entries:
            found.setdefault((grid.suffix, entry.settings, entry.coordinate), entry)
    names = macro_names((suffix, entry) for (suffix, _, _), entry in found.items())
    lines = [
        {"name": Tex(names[place]), "comment": str(place[2]), "text": number(shown(found[place], "values", ""))}
        for place in sorted(found)
    ]
    metric = grids[0].metric if grids else "accuracy"
    return environment().get_template("macros.tex.j2").render(lines=lines, measure=measure(metric, "values"))


def standalone(
    bodies: Sequence[str], macro_text: str, document_class: str = "article", figures: Mapping[str, str] | None = None
) -> str:
    """A document that compiles on its own, with all tables and the figures stored beside it."""
    if document_class not in DOCUMENT_CLASSES:
        raise unknown("document class", document_class, DOCUMENT_CLASSES)
    return (
        environment()
        .get_template("standalone.tex.j2")
        .render(
            bodies=[Tex(body) for body in bodies],
            macros=Tex(macro_text),
            document_class=document_class,
            figures=figures or {},
            label=Tex(_label(FIGURE.label)),
        )
    )


def figure_caption(metric: str) -> str:
    """The caption of the label-rate figure."""
    text = FIGURE.caption.replace(MEASURE, measure(metric, "values").partition(" (")[0])
    return text[0].upper() + text[1:]
