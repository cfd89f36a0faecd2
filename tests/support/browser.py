"""A real headless Chromium, driven over its DevTools pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

EXECUTABLE = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-unsafe-swiftshader",
    "--remote-debugging-pipe",
)


WAIT_S = 60.0
"""Seconds to wait for a page, far more than an idle host needs."""


class DevToolsError(Exception):
    """The browser could not answer a call, for example during navigation."""


class Browser:
    def __init__(self, profile: Path) -> None:
        assert EXECUTABLE is not None
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def take_the_pipes() -> None:
            # Move the pipes above descriptor 9 first, because their own descriptors may be 3 or 4.
            spare = [os.dup2(to_browser, 10), os.dup2(from_browser, 11)]
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        self._process = subprocess.Popen(
            [EXECUTABLE, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            close_fds=False,
            preexec_fn=take_the_pipes,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *error: object) -> None:
        # Chromium exits when its pipe closes, and deletes its temporary files. A killed one would
        # not.
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(timeout=20)
        finally:
            self._process.kill()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise DevToolsError(answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, url: str, *, width: int, dark: bool = False) -> None:
        self.look(width=width, dark=dark)
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for_load()

    def look(self, *, width: int, dark: bool) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def wait_for_load(self) -> None:
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_until(self, expression: str, *, timeout_s: float = WAIT_S) -> Any:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            with suppress(DevToolsError):
                if value := self.evaluate(expression):
                    return value
            time.sleep(0.05)
        raise AssertionError(f"not in {timeout_s} s: {expression}")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, **more
        )

    def click_at(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        time.sleep(0.3)  # a figure looks for the point under the pointer at most ten times a second
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def click_and_agree(self, selector: str) -> str:
        self.evaluate(f"setTimeout(() => document.querySelector({json.dumps(selector)}).click())")
        while True:
            event = self._receive()
            self.events.append(event)
            if event.get("method") == "Page.javascriptDialogOpening":
                break
        self.call("Page.handleJavaScriptDialog", accept=True)
        return str(event["params"]["message"])

    def complaints(self) -> list[str]:
        """Return console messages, uncaught exceptions and log entries since `open`.

        Content that the page's policy blocks appears as a log entry.
        """
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [
            json.dumps(event["params"]) for event in self.events if event.get("method") in kinds
        ]

    def requests(self) -> list[str]:
        sent = [
            event for event in self.events if event.get("method") == "Network.requestWillBeSent"
        ]
        return [event["params"]["request"]["url"] for event in sent]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            block = os.read(self._read, 1 << 20)
            assert block, "the browser closed its pipe"
            self._buffer += block
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if EXECUTABLE is None:
        pytest.skip("no Chromium on this machine")
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running
