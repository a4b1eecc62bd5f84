"""MLflow's own pages in a real browser: the runs table shows the cells, and the compare view opens for chosen runs."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Make = Callable[..., Path]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the WebDriver standard's key of an element


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


class Browser:
    """Headless Chromium through the WebDriver protocol, with nothing but the standard library."""

    def __init__(self, profile: Path, width: int = 1600, height: int = 900) -> None:
        port = free_port()
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.base = f"http://127.0.0.1:{port}"
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
        more = "--disable-component-update --disable-sync --hide-scrollbars --disable-dev-shm-usage"
        arguments = [*flags.split(), *more.split(), f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}}
        self.until(lambda: self.call("GET", "/status")["ready"])
        self.base += f"/session/{self.call('POST', '/session', wanted)['sessionId']}"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def until(self, condition: Callable[[], Any], seconds: float = 90) -> Any:
        """Wait until it holds; a page that is not ready yet answers with an error."""
        end = time.monotonic() + seconds
        while True:
            try:
                found = condition()
            except (urllib.error.URLError, OSError):
                found = None
            if found:
                return found
            assert time.monotonic() < end, f"the page did not come to it in {seconds} s"
            time.sleep(0.3)

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def find(self, xpath: str) -> list[str]:
        found = self.call("POST", "/elements", {"using": "xpath", "value": xpath})
        return [element[ELEMENT] for element in found]

    def click(self, xpath: str) -> None:
        """Click the first such element once it is there."""
        self.until(
            lambda: self.call("POST", f"/element/{self.find(xpath)[0]}/click") is None if self.find(xpath) else 0
        )

    def text(self) -> str:
        return str(self.call("POST", "/execute/sync", {"script": "return document.body.innerText", "args": []}))

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self) -> None:
        try:
            self.call("DELETE", "")
        finally:
            self.driver.kill()
            self.driver.wait()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} here; on Debian: apt-get install chromium chromium-driver")
    opened = Browser(tmp_path / "profile")
    yield opened
    opened.close()


@pytest.fixture
def page(workspace: Make, tools: ModuleType) -> Iterator[str]:
    """The address of `bench ui` on a finished grid."""
    folder, port = workspace(), free_port()
    assert tools.run(tools.grid(["none", "duplicate", "m-mixup"]), folder)[0] == 0
    server = subprocess.Popen(
        [sys.executable, "-c", "from bench.cli.app import main; main()", "ui", "-w", str(folder), "--port", str(port)],
        cwd=tools.ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        tools.wait_until(lambda: answers(f"{address}/health"))
        yield address
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
    browser: Browser, page: str, tmp_path: Path
) -> None:
    browser.open(f"{page}/#/experiments/1/runs")
    methods = ("none", "duplicate", "m-mixup")
    browser.until(lambda: all(f"k=2 {method}" in browser.text() for method in methods))
    browser.screenshot(tmp_path / "runs.png")
    for _ in range(2):
        browser.click("//input[contains(@aria-label, 'row selection (unchecked)')]")
    browser.click("//button[contains(., 'Compare')]")
    browser.until(lambda: "Comparing 2 Runs" in browser.text())
    browser.until(lambda: "accuracy_mean" in browser.text() and "augmenter" in browser.text())
    browser.screenshot(tmp_path / "compare.png")
    assert (tmp_path / "runs.png").stat().st_size > 10_000
    assert (tmp_path / "compare.png").stat().st_size > 10_000
