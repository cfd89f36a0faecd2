"""`prove-gpu`: run each stage in a process; write checks to the terminal and a file."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Timer
from typing import Any, NamedTuple, NoReturn

from gpu_proof.report import Check

ROOT = Path(__file__).parents[1]
LOG_TAIL = 4_000
"""Characters of a stage's standard error to keep."""


class Stage(NamedTuple):
    """Time limit of a stage, and whether it also runs on a CPU."""

    limit_s: float
    """Maximum seconds; a stage also gets the time that earlier stages did not use."""
    on_cpu: bool = True


STAGES = {
    "toolchain": Stage(30),
    "kernels": Stage(60, on_cpu=False),
    "exact": Stage(120),
    "captured": Stage(60),
    "sync": Stage(30, on_cpu=False),
    "memory": Stage(60, on_cpu=False),
    "resume": Stage(40),
    "checkpoints": Stage(30),
    "speed": Stage(110),
}
"""Stages in order; together at most 540 s."""
TOTAL_MINUTES = sum(stage.limit_s for stage in STAGES.values()) / 60
DESCRIPTION = (
    "Prove that the GPU of this machine computes the right numbers, and fast enough, in at most "
    f"{TOTAL_MINUTES:.0f} minutes. Exit status: 0 all checks passed, 1 a check failed, 2 bad "
    "input or a check that could not run."
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proof and return the exit status.

    0: passed; 1: failed; 2: bad input, or checks not tried; 130: interrupted.
    """
    options = _options(arguments)
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        print(
            f"error: --device: torch {torch.__version__} finds no GPU. Use --device cpu for tiny "
            f"models.",
            file=sys.stderr,
        )
        return 2
    proof = Proof(options.device, options.json)
    try:
        proof.write()
    except OSError as error:
        print(
            f"error: --json: {options.json} cannot be written ({error.strerror})", file=sys.stderr
        )
        return 2
    with _raise_on_signals():
        try:
            for name in options.stages:
                proof.run(name)
        except KeyboardInterrupt:
            print(f"Interrupted. {options.json} has the finished stages.", file=sys.stderr)
            return 130
    return proof.verdict()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="prove-gpu", description=DESCRIPTION)
    parser.add_argument(
        "--device",
        choices=("cuda", "cpu"),
        default="cuda",
        help="cpu: the same checks with tiny models",
    )
    parser.add_argument(
        "--stages",
        nargs="+",
        choices=STAGES,
        default=list(STAGES),
        metavar="STAGE",
        help=f"stages to run (default: all): {', '.join(STAGES)}",
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=Path(f"gpu-proof-{socket.gethostname()}-{datetime.now(UTC):%Y-%m-%d}.json"),
        metavar="FILE",
        help="file for the results (default: gpu-proof-HOST-DATE.json)",
    )
    return parser.parse_args(arguments)


class Proof:
    """Results of the stages so far, and their file."""

    def __init__(self, device: str, file: Path) -> None:
        self._device, self._file = device, file
        self._started = datetime.now(UTC)
        self._stages: dict[str, dict[str, Any]] = {}
        self._counts = Counter[str]()
        self._spare_s = 0.0

    def run(self, name: str) -> None:
        """Run a stage and print its checks as they arrive."""
        stage = STAGES[name]
        limit_s = stage.limit_s + self._spare_s
        if self._device == "cpu" and not stage.on_cpu:
            print(f"INFO  {name}: runs only on a GPU", flush=True)
            return
        print(f"{name}, at most {limit_s:.0f} s", flush=True)
        checks, started = list[Check](), time.monotonic()
        with tempfile.TemporaryDirectory(prefix=".gpu-proof-", dir=self._file.parent) as folder:
            log = Path(folder) / "log"
            for check in _checks(name, limit_s, self._device, folder, log):
                checks.append(check)
                print(check.line, flush=True)
            tail = _anonymous(log.read_text(errors="replace"))[-LOG_TAIL:]
        self._counts.update(check.result for check in checks)
        seconds = time.monotonic() - started
        self._spare_s = max(0.0, limit_s - seconds)
        self._stages[name] = {
            "seconds": round(seconds, 1),
            "limit_s": round(limit_s, 1),
            "checks": [check.__dict__ for check in checks],
            "log": tail,
        }
        self.write()

    def write(self) -> None:
        """Write the results so far."""
        from trainables.trial_folder import code_version, write_file

        content = {
            "started": self._started.isoformat(timespec="seconds"),
            "code": code_version(),
            "device": self._device,
            "counts": self._counts,
            "stages": self._stages,
        }
        write_file(self._file, json.dumps(content, indent=1).encode(), durable=False)

    def verdict(self) -> int:
        """Print the verdict and return the exit status."""
        passed, failed, skipped = (self._counts[result] for result in ("PASS", "FAIL", "SKIP"))
        if self._device == "cuda":
            print(f"Please attach {self._file} to an issue (docs/gpus.md, Prove a GPU).")
        status = 1 if failed else 2 if skipped or not passed else 0
        word = ("PASS", "FAIL", "INCOMPLETE")[status]
        print(f"{word}  {passed} passed, {failed} failed, {skipped} not tried", flush=True)
        return status


def _command(name: str, device: str, folder: str) -> list[str]:
    return [sys.executable, "-m", "gpu_proof.stage", name, device, folder]


def _checks(name: str, limit_s: float, device: str, folder: str, log: Path) -> Iterator[Check]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    timed_out, count = Event(), 0
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            _command(name, device, folder),
            env=os.environ | {"PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):

        def stop() -> None:
            timed_out.set()
            _kill(process)

        timer = Timer(limit_s, stop)
        try:
            timer.start()
            assert process.stdout is not None
            for line in process.stdout:
                if line.endswith("\n"):  # otherwise killed while writing
                    count += 1
                    check = Check(**json.loads(line))
                    yield replace(check, text=_anonymous(check.text))
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        finally:
            timer.cancel()
            if timer.is_alive():  # a signal may have come before start()
                timer.join()
            _kill(process)
    if timed_out.is_set():
        yield Check(name, "FAIL", f"took longer than {limit_s:.0f} s and was killed")
    elif process.returncode or not count:
        last_line = log.read_text(errors="replace").strip().rpartition("\n")[2]
        yield Check(
            name, "FAIL", f"process ended with status {process.returncode}: {_anonymous(last_line)}"
        )


def _kill(process: subprocess.Popen[str]) -> None:
    # The group id still belongs to the process, which has not been waited for.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _anonymous(text: str) -> str:
    for folder, stand_in in (
        (ROOT, "."),
        (Path.cwd(), "."),
        (Path(sys.prefix), "VENV"),
        (Path.home(), "~"),
    ):
        if len(folder.parts) > 1:
            text = text.replace(str(folder), stand_in)
    with suppress(KeyError, OSError):  # a container's user may have no name
        text = re.sub(rf"\b{re.escape(getpass.getuser())}\b", "USER", text)
    return text


@contextmanager
def _raise_on_signals() -> Iterator[None]:
    # SIGTERM and SIGHUP raise SystemExit, so that the running stage is killed, too. `sweep.py`
    # starts with these signals and SIGINT blocked.

    def raise_exit(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    handlers = {number: signal.signal(number, raise_exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
