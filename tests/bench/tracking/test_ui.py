"""MLflow's own pages in a real browser: the runs table shows the cells, and the compare view opens for chosen runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Make = Callable[..., Path]
METHODS = ("none", "dropedge", "m-mixup", "gdm-unc")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@pytest.fixture
def page(workspace: Make, tools: ModuleType) -> Iterator[str]:
    """The address that `bench ui` names, on a finished grid."""
    folder, port = workspace(), free_port()
    grid = tools.grid(METHODS, k=(5,), folds=3, epochs=60, datasets=["digits"], name="digits")
    assert tools.run(grid, folder)[0] == 0
    server = subprocess.Popen(
        [sys.executable, "-c", "from bench.cli.app import main; main()", "ui", "-w", str(folder), "--port", str(port)],
        cwd=tools.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        tools.wait_until(lambda: answers(f"{address}/health"))
        yield next(word for word in said.split() if word.startswith(address))
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except (urllib.error.URLError, OSError):
        return False
    return True


def test_the_runs_table_shows_the_cells_and_chosen_runs_can_be_compared(
    browser: Any, page: str, tmp_path: Path
) -> None:
    """As it opens for a browser that has never been here: no setting is made by hand."""
    folder = Path(os.environ.get("AUGBENCH_PICTURES", tmp_path))  # docs/images, to take the README's anew
    browser.open(page)
    browser.until(lambda: all(f"{method} digits k=5" in browser.text() for method in METHODS))
    shown = browser.text()
    assert "Model training" in shown and "Prompts" not in shown, "not the screens for chats"
    figures = [name for name in shown.splitlines() if name in ("accuracy", "accuracy_std", "trials_done")]
    assert figures[:2] == ["accuracy", "accuracy_std"]
    browser.screenshot(folder / "mlflow-runs.png")
    browser.open(f"{page}&compareRunsMode=CHART")
    browser.until(lambda: "Model metrics" in browser.text() and "accuracy" in browser.text())
    browser.screenshot(folder / "mlflow-charts.png")
    browser.open(page)
    browser.until(lambda: all(f"{method} digits k=5" in browser.text() for method in METHODS))
    for _ in METHODS:
        browser.click("//input[contains(@aria-label, 'row selection (unchecked)')]")
    browser.click("//button[contains(., 'Compare')]")
    browser.until(lambda: "Comparing 4 Runs" in browser.text())
    browser.until(lambda: "accuracy" in browser.text() and "augmenter" in browser.text())
    chosen = browser.text().partition("Metrics:")[2].split()
    assert chosen[0] == "accuracy", "what runs are compared by when the page opens"
    browser.screenshot(folder / "mlflow-compare.png")
    for name in ("runs", "charts", "compare"):
        assert (folder / f"mlflow-{name}.png").stat().st_size > 10_000
