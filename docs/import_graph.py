"""Draws which stage of bench/ imports which: `python docs/import_graph.py` writes docs/images/import-graph.svg.

`tests/test_rooms.py` takes the order of the stages from here and checks that the figure matches the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = Path("docs/images/import-graph.svg")
LEAVES = ("registry", "seeding", "sources", "temporary", "warn_once", "words")
STAGES = (
    *("datasets", "protocol", "learning", "plan", "results", "execution", "tuning", "tracking"),
    *("checking", "inspecting", "api", "public", "cli"),
)
Edge = tuple[str, str]  # a stage or leaf, and one that it imports
_TARGET = re.compile(r"bench(\.\w+)+(:\w+)?")  # a module named in a string, which is imported later
_EDGE = re.compile(r"^(\w+) -&gt; (\w+)$", re.MULTILINE)


def imported_by(path: Path) -> Iterator[str]:
    """All modules that a file imports: at the top, inside functions, for types, or by name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path} imports by a relative name; write the whole one"
            if node.module == "bench":
                yield from (f"bench.{alias.name}" for alias in node.names)
            else:
                yield node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _TARGET.fullmatch(node.value):
            yield node.value.partition(":")[0]


def stage_of(module: str) -> str:
    """`bench.plan.cells` belongs to `plan`."""
    return module.split(".")[1]


def edges(root: Path = ROOT) -> dict[Edge, list[str]]:
    """Stages that import one another, with the places where they do."""
    found: dict[Edge, list[str]] = {}
    for path in sorted((root / "bench").rglob("*.py")):
        place = path.relative_to(root)
        if place == Path("bench/__init__.py"):  # the entry point to all of them
            continue
        own = place.parts[1].removesuffix(".py")
        for module in imported_by(path):
            if module.startswith("bench.") and stage_of(module) != own:
                found.setdefault((own, stage_of(module)), []).append(f"{place} imports {module}")
    return found


def is_upward(edge: Edge) -> bool:
    """Whether a stage imports a later one; leaves must not import anything of ours."""
    importer, imported = edge
    return importer in LEAVES or (imported not in LEAVES and STAGES.index(imported) > STAGES.index(importer))


def edges_of_picture(svg: str) -> set[Edge]:
    """The edges of a figure, as listed in its description."""
    return {(importer, imported) for importer, imported in _EDGE.findall(svg)}


STEP, BOX, TALL, LINE, LANE, MARGIN = 44, 210, 28, 19, 34, 18  # pixels
COLORS = ("#4477aa", "#228833", "#aa7700", "#66508f", "#008b8b", "#9a3d78")
STYLE = """text{font:14px sans-serif;fill:#1c1c1c}.head{font-size:13px;fill:#555}
rect{fill:#f4f6f8;stroke:#8a949e}path{fill:none;stroke-width:1.6}.out{stroke:#c3cad1}"""


def drawing(found: Iterable[Edge]) -> str:
    """One box per stage, the command line on top; one lane per imported stage, with a dot for each importer.

    An arrow leads from the importers down its lane to the imported stage. Arrows that lead up would be red.
    """
    pairs = sorted(found)
    rows = [[stage] for stage in reversed(STAGES)] + [list(LEAVES)]
    row_of = {name: row for row, names in enumerate(rows) for name in names}
    drawn = {(row_of[importer], row_of[imported]) for importer, imported in pairs}
    middle = [MARGIN + 34 + row * STEP + TALL // 2 for row in range(len(rows))]
    targets = sorted({imported for _, imported in drawn})  # the lowest has the outermost lane, so that no arrows cross
    lane = {row: MARGIN + BOX + LANE * (1 + place) for place, row in enumerate(targets)}
    shapes = [_importer(row, middle, [lane[to] for at, to in drawn if at == row]) for row in range(len(rows))]
    shapes += [_lane(row, middle, lane[row], sorted(at for at, to in drawn if to == row)) for row in targets]
    shapes += [_box(row, names, middle) for row, names in enumerate(rows)]
    width, height = max(lane.values()) + LANE, middle[-1] + LINE * len(LEAVES) + MARGIN
    listed = "\n".join(f"{importer} -> {imported}" for importer, imported in pairs)
    words = "A dot: this stage imports the one where the arrow ends. "
    words += "Red arrows lead up." if any(map(is_upward, pairs)) else "All arrows lead down."
    size = f'width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size}>',
            "<title>What each stage of bench/ imports</title>",
            f"<desc>\n{escape(listed)}\n</desc>",
            f"<style>{STYLE}</style>",
            f'<rect {size} style="fill:white;stroke:none"/>',
            f'<text class="head" x="{MARGIN}" y="{MARGIN + 8}">{words}</text>',
            *filter(None, shapes),
            "</svg>\n",
        ]
    )


def _importer(row: int, middle: list[int], lanes: list[int]) -> str:
    """The line from a stage to the lanes of its imports."""
    return f'<path class="out" d="M{MARGIN + BOX} {middle[row] + 5}H{max(lanes)}"/>' if lanes else ""


def _lane(row: int, middle: list[int], x: int, importers: list[int]) -> str:
    color, parts = COLORS[row % len(COLORS)], []
    for up in (False, True):
        ends = [middle[at] + 5 for at in importers if (at > row) is up]
        if ends:
            ink = "#cc0000" if up else color
            first = max(ends) if up else min(ends)
            tip = MARGIN + BOX + 2
            parts.append(f'<path stroke="{ink}" d="M{x} {first}V{middle[row] - 6}H{tip + 6}"/>')
            parts.append(f'<path style="fill:{ink}" d="M{tip} {middle[row] - 6}l9 -4v8z"/>')
            parts += [f'<circle cx="{x}" cy="{y}" r="4.5" fill="{ink}"/>' for y in ends]
    return "\n".join(parts)


def _box(row: int, names: list[str], middle: list[int]) -> str:
    files = [f"{name}.py" if name in (*LEAVES, "api") else f"{name}/" for name in names]
    tall = TALL + LINE * (len(files) - 1)
    box = f'<rect x="{MARGIN}" y="{middle[row] - TALL // 2}" width="{BOX}" height="{tall}" rx="5"/>'
    places = [middle[row] + 5 + LINE * place for place in range(len(files))]
    lines = [f'<text x="{MARGIN + 10}" y="{y}">{name}</text>' for y, name in zip(places, files, strict=True)]
    return "\n".join([box, *lines])


if __name__ == "__main__":
    (ROOT / PICTURE).write_text(drawing(edges()), encoding="utf-8")
