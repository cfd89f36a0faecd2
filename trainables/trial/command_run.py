"""A trial of any program, which prints its metrics as JSON objects, one per line."""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

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
DIES_WITH_PARENT = 1
"""Linux `PR_SET_PDEATHSIG`."""
OUTPUT = "output.txt"


def run_command(config: Command, trial: Trial) -> dict[str, Any]:
    """Run the program in the trial's folder, and return its final metrics.

    The environment variable SWEEP_TRIAL_DIR names the folder. All processes of the program end with
    it. Raises UserError if the program fails.
    """
    folder = trial.folder.resolve()
    if config.sha256 is not None:
        write_files(folder, require_code(config.sha256, "command").files)
    _end_processes(folder)  # of an earlier attempt, whose worker was killed
    final: dict[str, Any] = {}
    with (
        closing(_Output(folder / OUTPUT)) as output,
        _started(config, folder, trial) as process,
    ):
        for is_output, text in _lines(process, folder):
            PULSE.touch(QUIET_S)
            output.add(text)
            values = _json_object(text) if is_output else None
            if values is None:
                continue
            if "epoch" in values:
                trial.report(values.pop("epoch"), **values)
            else:
                final |= values
    if process.returncode:
        raise UserError(f"{_ending(process.returncode)}{output.last_words()}")
    return final


@contextmanager
def _started(config: Command, folder: Path, trial: Trial) -> Iterator[subprocess.Popen[bytes]]:
    libc = ctypes.CDLL(None)

    def die_with_worker() -> None:
        if sys.platform == "linux":
            libc.prctl(DIES_WITH_PARENT, signal.SIGKILL)

    environment = {
        **os.environ,
        FOLDER_VARIABLE: str(folder),
        "SWEEP_DEVICE": trial.device,
        "SWEEP_DATA_DIR": str(trial.data_dir.resolve()),
        "SWEEP_SEED": str(trial.seed),
        "PYTHONUNBUFFERED": "1",
    }
    try:
        process = subprocess.Popen(
            config.arguments,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=die_with_worker,
        )
    except OSError as error:
        raise UserError(
            f"command: {config.arguments[0]!r} cannot be started ({error.strerror}). Install it on "
            "every machine, or correct its name."
        ) from error
    try:
        yield process
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        _end_processes(folder)
        process.wait()


def _end_processes(folder: Path) -> None:
    """Kill all processes that a program in this folder started, also in other sessions."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(FOLDER_VARIABLE) == str(folder) and process.pid != os.getpid():
                process.kill()


def _lines(process: subprocess.Popen[bytes], folder: Path) -> Iterator[tuple[bool, str]]:
    """Yield lines until the program has ended: whether from standard output, and the text."""
    assert process.stdout is not None and process.stderr is not None
    rests = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    has_ended = False
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(0.1):
                part = os.read(key.fd, LINE_BYTES)
                *lines, rest = (rests[key.fd] + part).split(b"\n")
                if not part:
                    selector.unregister(key.fileobj)
                if rest and (not part or len(rest) > LINE_BYTES):
                    lines, rest = [*lines, rest], b""
                rests[key.fd] = rest
                for line in lines:
                    yield key.fileobj is process.stdout, line.decode(errors="replace").rstrip("\r")
            if not has_ended and process.poll() is not None:
                has_ended = True
                _end_processes(folder)  # which would keep the pipes open
    process.wait()


class _Output:
    """The program's output: a file of limited size, and the last lines."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    def add(self, line: str) -> None:
        self._last.append(line)
        if self._file.tell() < OUTPUT_BYTES:
            self._file.write(f"{line}\n".encode(errors="replace"))

    def close(self) -> None:
        if self._file.tell() >= OUTPUT_BYTES:
            text = "\n".join(["[cut; the last lines:]", *self._last, ""])
            self._file.write(text.encode(errors="replace"))
        self._file.close()

    def last_words(self) -> str:
        words = next((line.strip() for line in reversed(self._last) if line.strip()), "")
        return f": {words[:200]}" if words else " without output"


def _json_object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _ending(status: int) -> str:
    if status > 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return f"ended by {signal.Signals(-status).name}"
    return f"ended by signal {-status}"
