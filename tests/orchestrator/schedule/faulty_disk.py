"""Sweeps whose disk writes fail.

A preloaded library makes write number n fail, or every write from number n on. Each sweep runs in a
forked child process, without Ray.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import select
import shutil
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from tests.support.command import ROOT

SOURCE = Path(__file__).with_suffix(".c")
CONTROL = struct.Struct("5q")
FULL, BROKEN = errno.ENOSPC, errno.EIO
HANGS_S = 120.0


@dataclass(frozen=True)
class Ended:
    status: int
    """Exit status: 0, or 2 after a one-sentence error; other values mean a traceback."""
    text: str
    writes: int


class FaultySweeps:
    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process, self.folder = process, folder

    def run(self, *, fail_at: int = 0, error: int = 0, lasting: bool = False) -> Ended:
        """Run a sweep in which write number `fail_at` fails, counted from 1.

        If `fail_at` is 0, no write fails.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([fail_at, error, lasting]), file=self._process.stdin, flush=True)
        assert select.select([self._process.stdout], [], [], HANGS_S)[0], "the sweep hangs"
        return Ended(*json.loads(self._process.stdout.readline()))


@contextmanager
def faulty_sweeps(scratch: Path) -> Iterator[FaultySweeps]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs the C compiler cc, to make writes fail")
    library, control, folder = scratch / "faulty_disk.so", scratch / "control", scratch / "results"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    control.write_bytes(bytes(CONTROL.size))
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "LD_PRELOAD": str(library),
        "FAULTS_CONTROL": str(control),
        "FAULTS_FOLDER": str(folder),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.orchestrator.schedule.faulty_disk"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield FaultySweeps(process, folder)
    finally:
        process.kill()
        process.wait()


def serve(requests: IO[str]) -> None:
    from tests.orchestrator.schedule import small_sweep

    folder = Path(os.environ["FAULTS_FOLDER"])
    with (
        Path(os.environ["FAULTS_CONTROL"]).open("r+b") as file,
        mmap.mmap(file.fileno(), CONTROL.size) as control,
    ):
        for line in requests:
            fail_at, error, lasting = json.loads(line)
            output = folder.with_name("output.txt")
            child = os.fork()
            if child == 0:
                descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(descriptor, 1)
                os.dup2(descriptor, 2)
                control[:] = CONTROL.pack(1, 0, fail_at, lasting, error)
                os._exit(_status(lambda: small_sweep.sweep(folder)))
            _, status = os.waitpid(child, 0)
            writes = CONTROL.unpack(control[:])[1]
            control[:] = bytes(CONTROL.size)
            print(
                json.dumps([os.waitstatus_to_exitcode(status), output.read_text(), writes]),
                flush=True,
            )


def _status(action: Callable[[], object]) -> int:
    from trainables.errors import UserError

    try:
        action()
    except UserError as error:
        print(f"error: {error}", flush=True)
        return 2
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(sys.stdin)
