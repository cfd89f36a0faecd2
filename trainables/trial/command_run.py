"""A trial of any program, which prints its metrics as JSON objects, one per line."""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import subprocess
from collections import deque
from collections.abc import Iterator, Set
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from trainables.config import Command, require_code, write_files
from trainables.errors import UserError
from trainables.pulse import PULSE
from trainables.trial.user_trial import QUIET_S, Trial

FOLDER_VARIABLE = "SWEEP_TRIAL_DIR"
LINE_BYTES = 2**16
"""A longer line is cut."""
OUTPUT_BYTES = 2**20
"""Output beyond this size is not kept, except for the last lines."""
LAST_LINES = 50
GRACE_S = 10.0
"""Time between SIGTERM and SIGKILL."""
PR_SET_CHILD_SUBREAPER = 36
OUTPUT = "output.txt"
# Wait until standard input is closed. Then kill the processes with $0 in their environment.
KILL = """read -r _
while p=$(grep -lsxzFe "$0" /proc/[0-9]*/environ | tr -dc '0-9\\n') && [ "$p" ]
do kill -9 $p; sleep 0.1
done"""


def run_command(config: Command, trial: Trial) -> dict[str, Any]:
    """Run the program in the trial's folder, and return its final metrics.

    The program's environment is that of the worker, with these variables:

    - SWEEP_TRIAL_DIR: the trial's folder, which is also the working directory. Files in it survive
      interruptions.
    - SWEEP_SEED: the trial's seed.
    - SWEEP_DEVICE: `cpu` or `cuda`.
    - SWEEP_DATA_DIR: folder of `--data-dir`, by default `data`.

    All processes of the program end with it, and with this process. Raises UserError if the
    program fails.
    """
    folder = trial.folder.resolve()
    killer = ["sh", "-c", KILL, f"{FOLDER_VARIABLE}={folder}"]
    if any(folder.iterdir()):  # an earlier attempt's processes may be alive
        subprocess.run(killer, stdin=subprocess.DEVNULL, check=False)
    if config.sha256 is not None:
        write_files(folder, require_code(config.sha256, "command").files)
    final: dict[str, Any] = {}
    with (
        closing(_Output(folder / OUTPUT)) as output,
        _watched(killer),
        _started(config, folder, trial, strangers := _children()) as process,
    ):
        for is_output, text in _lines(process, strangers):
            output.add(text, is_output)
            values = _json_object(text) if is_output else None
            if values is None:
                continue
            if "epoch" in values:
                trial.report(values.pop("epoch"), **values)
            else:
                final |= values
    if status := process.returncode:
        signal_name = "" if status > 0 else f" ({signal.strsignal(-status)})"
        raise UserError(f"exit status {status}{signal_name}{output.last_words()}")
    return final


@contextmanager
def _watched(killer: list[str]) -> Iterator[None]:
    """Start a process that kills the program's processes if this process is killed."""
    with subprocess.Popen(killer, stdin=subprocess.PIPE, start_new_session=True) as watchdog:
        try:
            yield
        finally:
            watchdog.kill()


@contextmanager
def _started(
    config: Command, folder: Path, trial: Trial, strangers: Set[int]
) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        FOLDER_VARIABLE: str(folder),
        "SWEEP_DEVICE": trial.device,
        "SWEEP_DATA_DIR": str(trial.data_dir.resolve()),
        "SWEEP_SEED": str(trial.seed),
        "PYTHONUNBUFFERED": "1",
    }
    # Orphans become children of this process, which can kill them.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    arguments = config.arguments
    try:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise UserError(
            f"command: {arguments[0]!r} cannot be started ({getattr(error, 'strerror', error)}). "
            "Install it on every machine, or correct its name."
        ) from error
    with process:
        try:
            yield process
        finally:
            with suppress(PermissionError, subprocess.TimeoutExpired):
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait(GRACE_S)
            process.kill()
            process.wait()
            _kill_children(strangers)


def _children() -> set[int]:
    """Return the process ids of this process's children."""
    pids = set[int]()
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # this thread has ended
            pids.update(map(int, path.read_text().split()))
    return pids


def _kill_children(strangers: Set[int]) -> None:
    """Kill this process's descendants, without `strangers` and their descendants."""
    while pids := _children() - strangers:  # children of a killed process become ours
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _lines(process: subprocess.Popen[bytes], strangers: Set[int]) -> Iterator[tuple[bool, str]]:
    """Yield lines until the program has ended: whether from standard output, and the text."""
    assert process.stdout is not None and process.stderr is not None
    rests = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    with os.fdopen(os.pidfd_open(process.pid)) as end, selectors.DefaultSelector() as selector:
        for file in (process.stdout, process.stderr, end):
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if key.fileobj is end:
                    selector.unregister(end)
                    process.wait()
                    _kill_children(strangers)  # which would keep the pipes open
                    continue
                part = os.read(key.fd, LINE_BYTES)
                # Any output shows that the program is alive.
                PULSE.touch(max(QUIET_S, PULSE.quiet_s))
                # Progress bars end their lines with a carriage return.
                *lines, rest = (rests[key.fd] + part.replace(b"\r", b"\n")).split(b"\n")
                if not part:
                    selector.unregister(key.fileobj)
                    lines = [rest]
                rests[key.fd] = rest[:LINE_BYTES]
                for line in filter(None, lines):
                    yield key.fileobj is process.stdout, line[:LINE_BYTES].decode(errors="replace")


class _Output:
    """The program's output: a file of limited size, and the last lines."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        # The last lines of standard error and standard output.
        self._words = ["", ""]

    def add(self, line: str, is_output: bool) -> None:
        self._last.append(line)
        self._words[is_output] = line.strip() or self._words[is_output]
        if self._file.tell() < OUTPUT_BYTES:
            self._file.write(f"{line}\n".encode())

    def close(self) -> None:
        if self._file.tell() >= OUTPUT_BYTES:
            self._file.write("\n".join(["[cut; the last lines:]", *self._last, ""]).encode())
        self._file.close()

    def last_words(self) -> str:
        words = self._words[0] or self._words[1]
        return f": {words[:200]}" if words else " without output"


def _json_object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        # A longer number may be too large for a float.
        values: dict[str, Any] = json.loads(
            text, parse_int=lambda digits: int(digits) if len(digits) < 19 else float(digits)
        )
        json.dumps(values, ensure_ascii=False).encode()  # a file cannot hold half a character
    except (ValueError, RecursionError):
        return None
    return values
