"""Runs a command with or without a terminal and records when it prints."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
import threading
import time
from contextlib import suppress

from tests.support.command import ROOT


class Typed:
    def __init__(self, words: list[str], variables: dict[str, str], *, terminal: bool) -> None:
        self._near_end, far_end = pty.openpty() if terminal else os.pipe()
        self.start_s, self.texts = time.monotonic(), list[tuple[float, str]]()
        self._process = subprocess.Popen(
            words,
            cwd=ROOT,
            env=variables,
            stdin=far_end if terminal else subprocess.DEVNULL,
            stdout=far_end,
            stderr=far_end,
            start_new_session=True,
            preexec_fn=lambda: _start_as_a_shell_does(terminal),
        )
        os.close(far_end)
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # reading a terminal fails once every process has closed it
            while text := os.read(self._near_end, 65536):
                self.texts.append((time.monotonic(), text.decode(errors="replace")))
        os.close(self._near_end)

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.texts)

    def runs(self) -> bool:
        return self._process.poll() is None

    def status(self, within_s: float) -> int | None:
        """Return the exit status as a shell shows it (137 after SIGKILL).

        Return None if the command is still running after `within_s` seconds.
        """
        try:
            status = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(1)  # processes that the command left behind may hold its output open
        return status if status >= 0 else 128 - status

    def tracebacks(self) -> list[str]:
        return [f"traceback: {self.text[-2000:]}"] if "Traceback" in self.text else []

    def troubles(self, within_s: float) -> list[str]:
        status = self.status(within_s)
        end = "hung" if status is None else f"status {status}"
        return [*([] if status == 0 else [f"{end}: {self.text[-500:]}"]), *self.tracebacks()]


def _start_as_a_shell_does(terminal: bool) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # a test may run below `nohup`
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
