"""Headless Chromium for tests, driven through the WebDriver protocol with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
        wanted = {
            "capabilities": {
                "alwaysMatch": {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
            }
        }
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

    def log(self) -> list[dict[str, Any]]:
        """What has been written to the console."""
        return [*self.call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self) -> None:
        try:
            self.call("DELETE", "")
        finally:
            self.driver.kill()
            self.driver.wait()
