"""Every process below a typed command, by parentage, as /proc has it: to be killed, and to be
missed afterwards."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

VICTIMS = (
    "driver", "guard", "process group", "worker", "raylet", "GCS", "RuntimeEnvAgent", "DashboardAgent", "dashboard",
    "everything",
)  # fmt: skip
STARTED_LATER = ("RuntimeEnvAgent", "DashboardAgent", "dashboard")
"""Some seconds after the others, when a short sweep is nearly over: where one of them is to be
killed, sooner."""
LOOK_EVERY_S = 0.2
AGENTS = ("ray::RuntimeEnvAgent", "ray::DashboardAgent")
BY_COMMAND_LINE: Mapping[str, Callable[[str], bool]] = {
    "worker": lambda line: line.startswith("ray::") and not line.startswith(AGENTS),
    "raylet": lambda line: line.split()[0].endswith("/raylet"),
    "GCS": lambda line: line.split()[0].endswith("/gcs_server"),
    "RuntimeEnvAgent": lambda line: line.startswith("ray::RuntimeEnvAgent"),
    "DashboardAgent": lambda line: line.startswith("ray::DashboardAgent"),
    "dashboard": lambda line: "/ray/dashboard/dashboard.py " in line and " -I -S " not in line,
}


class Living(NamedTuple):
    """A process that is no zombie; no two have the same `pid` and `start`."""

    pid: int
    start: int
    parent: int
    line: str
    """As `ps` shows it."""


class Watch(threading.Thread):
    """Looks five times a second at the processes below those it is told, and at the results in a
    storage."""

    def __init__(self, storage: Path) -> None:
        super().__init__(daemon=True)
        self.results: dict[str, set[tuple[int, int]]] = defaultdict(set)
        """Trial id -> inode and time of every `result.json` that it had."""
        self._storage = storage
        self._below: set[tuple[int, int]] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()

    def add(self, pid: int) -> None:
        """Look at this process, and below it, too."""
        self._below |= {(living.pid, living.start) for living in _processes() if living.pid == pid}

    def run(self) -> None:
        """Until `end`."""
        while not self._over.wait(LOOK_EVERY_S):
            self.living()

    def forget(self) -> None:
        """Begin anew with the results."""
        with self._lock:
            self.results.clear()

    def end(self) -> None:
        """Look no more."""
        assert self.is_alive(), "nobody looked"
        self._over.set()
        self.join()

    def living(self) -> list[Living]:
        """Those that live now of all that were ever below; parents first."""
        with self._lock:
            with contextlib.suppress(
                FileNotFoundError
            ):  # also a folder, which a command or a test removes meanwhile
                for path in self._storage.glob("trials/*/*/result.json"):
                    stat = path.stat()
                    self.results[path.parent.name].add((stat.st_ino, stat.st_mtime_ns))
            living = sorted(_processes(), key=lambda process: process.start)
            starts = {process.pid: process.start for process in living}
            for process in living:
                if (process.parent, starts.get(process.parent)) in self._below:
                    self._below.add((process.pid, process.start))
            return [process for process in living if (process.pid, process.start) in self._below]

    def kill(self, victim: str, typed: int, chance: random.Random) -> str | None:
        """SIGKILL to this kind of process below the command with this pid; its command line, None
        where none lives."""
        chosen = self.alive(victim, typed)
        if not chosen:
            return None
        if victim == "process group":
            os.killpg(typed, signal.SIGKILL)
        else:
            for process in chance.sample(chosen, len(chosen) if victim == "everything" else 1):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
        return "; ".join(process.line for process in chosen[:2])

    def alive(self, victim: str, typed: int) -> list[Living]:
        """Those of this kind that live now below the command with this pid."""
        living = self.living()
        command = [process for process in living if process.pid == typed]
        drivers = [
            process for process in living if process.parent == typed and "sweep.py" in process.line
        ][:1]
        if victim == "driver":
            return drivers or command
        if victim == "guard":
            return command if drivers else []
        if victim in ("process group", "everything"):
            return living if command else []
        return [process for process in living if BY_COMMAND_LINE[victim](process.line)]


def _processes() -> list[Living]:
    """All of this machine."""
    living = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                line = (
                    (folder / "cmdline")
                    .read_bytes()
                    .replace(b"\0", b" ")
                    .decode(errors="replace")
                    .strip()
                )
                if fields[0] != "Z" and line:
                    living.append(Living(int(folder.name), int(fields[19]), int(fields[1]), line))
    return living


def abandoned_shared_memory(since_s: float) -> list[str]:
    """Files in /dev/shm that are newer and that no process has mapped."""
    new = [path for path in Path("/dev/shm").iterdir() if path.lstat().st_ctime > since_s]
    maps = ""
    for process in _processes() if new else ():
        with contextlib.suppress(OSError):
            maps += Path(f"/proc/{process.pid}/maps").read_text()
    return [str(path) for path in new if str(path) not in maps]
