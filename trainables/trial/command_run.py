"""A trial of any program, which prints its metrics as JSON objects, one per line."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from trainables.config import Command, require_code, write_files
from trainables.errors import UserError, last_line
from trainables.pulse import PULSE
from trainables.training import DivergedError
from trainables.trial.user_trial import QUIET_S, Trial
from trainables.trial_folder import Metric

FOLDER_VARIABLE, WORKER_VARIABLE = "SWEEP_TRIAL_DIR", "SWEEP_WORKER"
LINE_BYTES = 2**16
"""A longer line is cut."""
PRINTED_BYTES = 2**30
"""Maximum output of an attempt."""
KEPT_BYTES = 2**18
"""Size to keep of the start and of the end of each stream."""
LOOK_S = 0.1
"""Time between two looks at the output."""
GRACE_S = 10.0
"""Time between SIGTERM and SIGKILL."""
PR_SET_CHILD_SUBREAPER = 36
OUTPUT = "output.txt"
# Wait until standard input is closed. Then kill the processes with $0 in their environment.
KILLER = [
    "sh",
    "-c",
    """read -r _
while p=$(grep -lsxzFe "$0" /proc/[0-9]*/environ | tr -dc '0-9\\n') && [ "$p" ]
do kill -9 $p; sleep 0.1
done""",
]


def run_command(config: Command, trial: Trial) -> dict[str, Metric]:
    """Run the program in the trial's folder, and return its final metrics.

    The program's environment is that of the worker, with these variables:

    - SWEEP_TRIAL_DIR: the trial's folder, which is also the working directory. Files in it survive
      interruptions.
    - SWEEP_SEED: the trial's seed.
    - SWEEP_DEVICE: `cpu` or `cuda`.
    - SWEEP_DATA_DIR: folder of `--data-dir`, by default `data`.

    On Linux, all processes of the program end with it, and with this process. Raises UserError if
    the program fails.

    The program writes into two files, which survive a kill of this process: the next attempt on
    this host first reports the epochs that this one did not. An object store has no copies of
    these files. So these epochs are lost if the host is lost.
    """
    folder = trial.folder.resolve()
    if any(folder.iterdir()):  # an earlier attempt's processes may be alive
        arguments = [*KILLER, f"{FOLDER_VARIABLE}={folder}"]
        subprocess.run(arguments, stdin=subprocess.DEVNULL, check=False)
    if config.sha256 is not None:
        write_files(folder, require_code(config.sha256, "command").files)
    final: dict[str, Any] = {}
    recorded = [epoch.epoch for epoch in trial.epochs]
    files = [folder.parent / f".{name}.tmp" for name in ("output", "errors")]

    def report(process: subprocess.Popen[bytes] | None = None) -> None:
        for line in _lines(files, process):
            values = _json_object(line)
            if values is None:
                continue
            if "epoch" not in values:
                final.update(values)
            elif process or values["epoch"] not in recorded:
                trial.report(values.pop("epoch"), **values)

    try:
        if files[0].exists():  # the last attempt was killed or pruned
            report()
            trial.has_reported = False  # this attempt may repeat epochs
        with _watched(), _started(config, folder, trial, files) as process:
            report(process)
        if status := process.returncode:
            signal_name = "" if status > 0 else f" ({signal.strsignal(-status)})"
            words = last_line((folder / OUTPUT).read_text(errors="replace"))[:200]
            raise UserError(
                f"exit status {status}{signal_name}{f': {words}' if words else ' without output'}"
            )
        return trial.final_metrics(final)
    except (UserError, DivergedError):
        for file in files:  # of a done trial, they are removed with its temporary files
            file.unlink(missing_ok=True)
        raise


@contextmanager
def _watched() -> Iterator[None]:
    """Start a process that kills the program's processes if this process is killed.

    It does not kill those of the next attempt, which another process may start at once.
    """
    arguments = [*KILLER, f"{WORKER_VARIABLE}={os.getpid()}"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, start_new_session=True) as watchdog:
        try:
            yield
        finally:
            watchdog.kill()


@contextmanager
def _started(
    config: Command, folder: Path, trial: Trial, files: list[Path]
) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        FOLDER_VARIABLE: str(folder),
        WORKER_VARIABLE: str(os.getpid()),
        "SWEEP_DEVICE": trial.device,
        "SWEEP_DATA_DIR": str(trial.data_dir.resolve()),
        "SWEEP_SEED": str(trial.seed),
        "PYTHONUNBUFFERED": "1",
    }
    if sys.platform == "linux":  # orphans become children of this process, which can kill them
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    arguments, strangers = config.arguments, _children()
    with files[1].open("wb") as errors, files[0].open("wb") as output:
        try:
            process = subprocess.Popen(
                arguments,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise UserError(
                f"command: {arguments[0]!r} cannot be started "
                f"({getattr(error, 'strerror', error)}). "
                "Install it on every machine, or correct its name."
            ) from error
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
        with suppress(OSError):  # another worker may have removed the folder
            _keep(files, folder / OUTPUT)


def _children() -> set[int]:
    """Return the process ids of this process's children."""
    return {child.pid for child in psutil.Process().children()}


def _kill_children(strangers: Set[int]) -> None:
    """Kill this process's descendants, without `strangers` and their descendants."""
    while pids := _children() - strangers:  # children of a killed process become ours
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _lines(files: list[Path], process: subprocess.Popen[bytes] | None) -> Iterator[str]:
    """Yield the lines of standard output until the program has ended, by default an earlier one."""
    tail, part, size, is_over = b"", b"\n", 0, False
    with files[0].open("rb") as stream:
        while part or not is_over:
            if not part:
                with suppress(subprocess.TimeoutExpired):
                    is_over = process is None or process.wait(LOOK_S) is not None
            if size != (size := sum(file.stat().st_size for file in files)):
                # Any output shows that the program is alive.
                PULSE.touch(max(QUIET_S, PULSE.quiet_s))
            if size > PRINTED_BYTES:
                raise UserError("the program printed more than 1 GiB. Let it print less.")
            part = stream.read(LINE_BYTES)
            # Progress bars end their lines with a carriage return.
            *lines, tail = (tail + part.replace(b"\r", b"\n")).split(b"\n")
            tail = tail[:LINE_BYTES]
            for line in lines:
                yield line.decode(errors="replace")
    yield tail.decode(errors="replace")


def _keep(files: list[Path], path: Path) -> None:
    with path.open("w", errors="replace") as kept:
        for file in files:
            with file.open(errors="replace") as stream:
                kept.write(stream.read(KEPT_BYTES))
                if (end := file.stat().st_size - KEPT_BYTES) > KEPT_BYTES:
                    kept.write("\n[cut]\n")
                    stream.seek(end)
                kept.write(stream.read(KEPT_BYTES))


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
