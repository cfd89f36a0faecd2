"""Runs functions in their own processes, which tests stop and kill.

The processes fork from one that has already imported the slow modules.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ray._raylet import Config  # type: ignore[attr-defined]  # Ray's extension module has no types

from tests.support.one_ray import join_ray

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["pytest", "torch", "orchestrator.worker.pack_run", "tests.support.drivers"]
)
WAIT_S = 180.0
Report = Callable[[Any], None]


class Process:
    """Runs `function(report, *arguments)` in a process group of its own, as a shell would."""

    def __init__(
        self,
        folder: Path,
        function: Callable[..., None],
        *arguments: Any,
        ray: str | None = None,
        **environment: str,
    ) -> None:
        """`folder` receives standard error; `ray` is the address of a running Ray to join."""
        self._receiver, sender = FORKS.Pipe(duplex=False)
        _, self._errors = tempfile.mkstemp(dir=folder, prefix="errors-")
        call = (function, sender, arguments, ray, {**os.environ, **environment}, self._errors)
        self._process = FORKS.Process(target=_call, args=call, daemon=True)
        self._process.start()
        sender.close()

    @property
    def errors(self) -> str:
        return Path(self._errors).read_text()

    def receive(self, timeout_s: float = WAIT_S) -> Any:
        assert self._receiver.poll(timeout_s), f"no report in time: {self.errors}"
        return self._receiver.recv()

    def end(self, timeout_s: float = WAIT_S, status: int = 0) -> list[Any]:
        """Wait for the process to end, and return the objects that were not received yet.

        `status` is the expected exit status, negative for a signal.
        """
        reports = []
        deadline_s = time.monotonic() + timeout_s
        try:
            while True:
                reports.append(self.receive(deadline_s - time.monotonic()))
        except EOFError:
            self._process.join(timeout_s)
        assert self._process.exitcode == status, self.errors
        return reports

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def signal(self, number: int) -> None:
        assert self.is_alive(), self.errors
        os.kill(self._process.ident or 0, number)

    def kill(self) -> list[Any]:
        self.signal(signal.SIGKILL)
        return self.end(status=-signal.SIGKILL)

    def wait_until(self, condition: Callable[[], object], timeout_s: float = WAIT_S) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            assert self.is_alive(), self.errors
            assert time.monotonic() < deadline_s, f"the condition is still false: {self.errors}"
            time.sleep(0.02)


def _call(
    function: Callable[..., None],
    sender: Connection,
    arguments: Any,
    ray: str | None,
    environment: dict[str, str],
    errors: str,
) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    # Ray caches the authentication mode of the process from which this one was forked.
    Config.initialize("")
    sys.stderr.flush()
    with open(errors, "w") as file:  # noqa: PTH123  (a descriptor is needed)
        os.dup2(file.fileno(), 2)
    if ray is not None:
        join_ray(ray)
    function(sender.send, *arguments)
