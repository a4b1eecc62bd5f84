"""The style of all figures (one palette, one set of names, two widths), and saving figures to files.

Color never carries information alone: methods also have markers and dashes, signs have shapes, cells have numbers.
Grayscale prints and color-blind readers lose nothing.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.registry import UserError
from tables.specs import LONG_NAMES, METHODS, SHORT_NAMES
from tables.writing import whole_file

FORMATS = ("pdf", "svg", "png")
COLUMN, TEXT = 3.4, 7.0  # inches: one column of a two-column page, and the full text width
WIDTHS = {"text": TEXT, "column": COLUMN}
INK = "#000000"  # text and lines that belong to no method; a page replaces it by its own text color
PAPER_GRAY = "#999999"  # grid and zero lines
# the outcome of a comparison, each with its own shape
BETTER, WORSE, OPEN = "#0072B2", "#D55E00", "#7A7A7A"
SHAPES = {BETTER: "^", WORSE: "v", OPEN: "o"}
OURS, THEIRS = "#0072B2", "#E69F00"
# from WORSE through white to BETTER, about equally light on both sides
DIVERGING = ("#B3480A", "#E8A27C", "#FBFBFB", "#8CBFE0", "#155E96")

# Okabe and Ito's colors without yellow (too pale on paper) and with a lighter blue (for dark pages)
_COLORS = ("", "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#8A8A8A", "#1F7FC4", "#D55E00")
_MARKERS = ("o", "s", "^", "v", "D", "P", "X", "<")
_DASHES: tuple[Any, ...] = ((1, 1), (4, 1.5), (2, 1), (3, 1, 1, 1), (5, 1, 1, 1, 1, 1), (1, 2), "", (6, 1))


@dataclass(frozen=True)
class Style:
    """How one method is drawn."""

    color: str
    marker: str
    dashes: Any


def method_styles(methods: Iterable[str], ink: str = INK) -> dict[str, Style]:
    """The paper's methods look the same in every figure; others get the remaining styles, in order."""
    known = {row.name: place for place, row in enumerate(METHODS)}
    found, extra = {}, len(METHODS)
    for method in methods:
        place = known.get(method, extra)
        extra += method not in known
        turn = place + place // len(_MARKERS)  # a second round combines every marker with another color
        found[method] = Style(
            _COLORS[turn % len(_COLORS)] or ink, _MARKERS[place % len(_MARKERS)], _DASHES[turn % len(_DASHES)]
        )
    return found


def series_styles(names: Sequence[str], ink: str = INK) -> dict[str, Style]:
    """The same palette for lines that are not methods: readings, folds, engines."""
    return {
        name: Style(
            _COLORS[(place + place // len(_MARKERS)) % len(_COLORS)] or ink,
            _MARKERS[place % len(_MARKERS)],
            _DASHES[(place + place // len(_MARKERS)) % len(_DASHES)],
        )
        for place, name in enumerate(names)
    }


LONGEST = 41  # letters of a name in a figure


def dataset_name(dataset: str, short: bool = False) -> str:
    """A dataset's name as printed in tables and figures."""
    return plain_text((SHORT_NAMES if short else LONG_NAMES).get(dataset, dataset))


def datasets_in_order(datasets: Iterable[str]) -> list[str]:
    """The paper's datasets in the order of its tables, then the others by name."""
    order = {name: place for place, name in enumerate(LONG_NAMES)}
    return sorted(set(datasets), key=lambda name: (order.get(name, len(order)), name))


def colormap() -> Any:
    """From worse to better through white, for differences around zero."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("difference", DIVERGING)


@contextmanager
def drawing(ink: str = INK, size: float = 8.5) -> Iterator[None]:
    """Use the fonts and lines of this style; `ink` is the color of text and axes."""
    import matplotlib as mpl

    colors = {f"{part}.color": ink for part in ("text", "xtick", "ytick")}
    lines = {"axes.linewidth": 0.7, "lines.linewidth": 1.2, "xtick.major.width": 0.6, "ytick.major.width": 0.6}
    rc = {"font.size": size, "axes.labelcolor": ink, "axes.edgecolor": ink, "axes.titlesize": size + 0.5, **lines}
    with mpl.rc_context({**rc, **colors, "legend.frameon": False, "legend.fontsize": size - 1}):
        yield


def tidy_axes(ax: Any, grid: str = "both") -> None:
    """A light grid, and no frame at the top and on the right."""
    ax.grid(True, axis=grid, color=PAPER_GRAY, alpha=0.3, linewidth=0.5)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def plain_text(text: str) -> str:
    """Escape a name for matplotlib: a dollar sign starts no formula, a leading underscore hides no label.

    A longer name than LONGEST is cut in its middle, or it would leave no room for what is drawn.
    """
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())  # no glyph for the others
    half = (LONGEST - 1) // 2
    text = f"{text[:half]}…{text[-half:]}" if len(text) > LONGEST else text
    text = text.replace("\\", "\\\\") if "$" in text else text
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def save(figure: Any, folder: Path, name: str, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write the figure in every format, without dates, so that the same numbers give the same file."""
    import matplotlib as mpl

    paths = [folder / f"{name}.{kind}" for kind in formats]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix)
            with mpl.rc_context({"svg.hashsalt": name, "pdf.fonttype": 42}), whole_file(path) as part:
                figure.savefig(part, dpi=200, metadata=metadata)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; choose another --out") from error
    return paths


_PAST_HUNDREDTHS = re.compile(r"(\.\d\d)\d+")  # of a point


def inline_svg(figure: Any, salt: str, ink: str) -> str:
    """The figure as an SVG element for a page: `ink` becomes the page's own text color, light or dark."""
    import matplotlib as mpl

    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :].replace(ink, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # a page has dozens of them: what nobody sees or refers to is left out
    text = re.sub(r'\b(d|x|y)="[^"]*"', lambda found: _PAST_HUNDREDTHS.sub(r"\1", found[0]), text)
    text = re.sub(r"font-family: [^;\"]*sans-serif", "font-family: sans-serif", text)
    meant = set(re.findall(r'(?:url\(|href=")#([^")]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in meant else "", text)
    text = re.sub(r">\s+<", "><", text)
    # ids of several figures on one page must not meet
    names: Sequence[str] = re.findall(r'\bid="([^"]+)"', text)
    for name in sorted(set(names), key=len, reverse=True):
        text = text.replace(f'id="{name}"', f'id="{salt}-{name}"').replace(f"#{name})", f"#{salt}-{name})")
        text = text.replace(f'"#{name}"', f'"#{salt}-{name}"')
    return text
