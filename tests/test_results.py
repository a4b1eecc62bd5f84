"""The published results: what is rendered is what its trials give, and the README quotes it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"


RENDERED = ("tables", "paper", "readings", "degree-onehot")


def files(folder: Path, findings: Path) -> dict[str, bytes]:
    """What `make tables` writes."""
    paths = [folder / "report.html", *(path for name in RENDERED for path in (folder / name).iterdir())]
    found = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    pictures = [findings.parent / "images" / name for name in re.findall(r"\]\(images/([^)]+)\)", findings.read_text())]
    return found | {path.name: path.read_bytes() for path in (findings, *pictures)}


def test_rendering_again_changes_nothing(tmp_path: Path) -> None:
    # the environment that runs the tests, instead of one that make would install
    binaries, findings = Path(sys.executable).parent, tmp_path / "docs" / "findings.md"
    findings.parent.mkdir()
    (tmp_path / ".installed").touch()
    command = ["make", "--silent", "--old-file", f"{tmp_path}/.installed", "tables", f"VENV={tmp_path}"]
    subprocess.run(
        [*command, f"BIN={binaries}", f"OUT={tmp_path}", f"FINDINGS={findings}", "PAGES="], cwd=ROOT, check=True
    )
    published, again = files(RESULTS, ROOT / "docs" / "findings.md"), files(tmp_path, findings)
    assert again.keys() == published.keys()
    unlike = [name for name in again if again[name] != published[name]]
    assert not unlike, f"results/ is not what its trials give ({', '.join(unlike)}); run `make tables` and commit"


@pytest.mark.parametrize("page", ["README.md", "docs/learners.md"])
def test_pages_quote_the_published_tables(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    quoted = re.findall(r"<!-- (\S+\.md) -->\n((?:\|.*\n)+)", text)
    assert quoted
    for name, table in quoted:
        lines = (RESULTS / name).read_text(encoding="utf-8").splitlines(keepends=True)
        assert table == "".join(line for line in lines if line.startswith("|")), (
            f"{page} quotes {name}: run `make tables`"
        )


def test_every_cell_of_the_main_table_that_can_run_without_a_network_is_complete() -> None:
    from bench.results.ledger import LedgerState
    from bench.results.workspace import records_at
    from tables.specs import TABLES

    state = LedgerState.of(records_at(RESULTS / "trials.parquet"))
    wanted = {at for at in TABLES["10labelrate"].coordinates() if at.dataset != "REDDIT-MULTI-5K"}
    complete = set()
    for key, cell in state.cells.items():
        place = (cell.dataset, cell.k, *(cell.part_label(part) for part in ("augmenter", "backbone", "readout")))
        if cell.features != "degree-onehot" and len(state.done(key)) >= 30:  # some have more draws
            complete.add(place)
        assert all(record.reason for record in state.failed(key).values())
    missing = {str(at) for at in wanted if (at.dataset, at.k, at.augmenter, at.backbone, at.readout) not in complete}
    assert not missing
