"""What packs that share a GPU need: CUDA's MPS, without which they take turns on it, and cores of their own.

Needs the standard library alone: tests/gpu loads it where there is no Ray.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from functools import cache

CONTROL = "nvidia-cuda-mps-control"
"""NVIDIA's daemon of MPS, and the program that asks it; it comes with the driver."""
PIPES = "/tmp/nvidia-mps"
"""Where the daemon is met unless CUDA_MPS_PIPE_DIRECTORY says otherwise."""
ANSWER_S, START_S = 10.0, 5.0
_held: list[socket.socket] = []
"""A socket for every core of this process; the kernel gives them back, however it ends."""


def share_gpu(gpus: float, cores: int) -> str | None:
    """In a worker, before CUDA is used, where a trial gets this part of a GPU: have MPS run, and pin the thread to so
    many cores that no other worker has.

    Returns why there is no MPS, in one worker of a machine; None in the others, and where all is well.
    """
    if not 0 < gpus < 1:
        return None
    why, pinned = start_mps(), pin_thread(cores)
    if why is None or (pinned and min(pinned) != min(_allowed())):
        return None
    return f"shares its GPU with others by turns, which gains little, since {why} (see docs/cluster.md)"


def start_mps() -> str | None:
    """Start MPS' daemon for this user unless it runs; why it does not run then, None where it does. It stays."""
    program = shutil.which(CONTROL)
    if program is None:
        return f"{CONTROL} is not installed here"
    if _runs(program):
        return None
    # Ray hides GPUs from its workers, which the daemon would then hide from all.
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    environment.setdefault("CUDA_MPS_LOG_DIRECTORY", environment.get("CUDA_MPS_PIPE_DIRECTORY", PIPES))
    quiet = subprocess.DEVNULL
    try:
        subprocess.run(
            [program, "-d"],
            env=environment,
            cwd="/",
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            start_new_session=True,
            timeout=ANSWER_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"`{CONTROL} -d` failed ({type(error).__name__})"
    deadline_s = time.monotonic() + START_S
    # Another worker may have been faster, and its daemon is ours too.
    while not _runs(program):
        if time.monotonic() > deadline_s:
            return f"`{CONTROL} -d` did not start it"
        time.sleep(0.1)
    return None


def _runs(program: str) -> bool:
    try:
        answer = subprocess.run([program], input=b"get_server_list\n", capture_output=True, timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def pin_thread(count: int) -> frozenset[int]:
    """Keep the calling thread, and those that it starts, on `count` cores of this process, the same ones every time;
    returns them, and none, with nothing changed, where there are too few or the system cannot."""
    cores = _cores(count)
    if cores:
        os.sched_setaffinity(0, cores)
    return cores


@cache
def _allowed() -> tuple[int, ...]:
    """The cores that this process may use, before any was pinned."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else (0,)


@cache
def _cores(count: int) -> frozenset[int]:
    if not hasattr(os, "sched_setaffinity"):
        return frozenset()
    taken = dict[int, socket.socket]()
    for core in _allowed():
        # A name of Linux that no file stands for, and that one socket of the machine has at a time.
        named = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            named.bind(f"\0sweep-core-{core}")
        except OSError:
            named.close()
            continue
        taken[core] = named
        if len(taken) == count:
            _held.extend(taken.values())
            return frozenset(taken)
    for named in taken.values():
        named.close()
    return frozenset()
