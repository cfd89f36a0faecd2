"""Trials side by side on one device, each in a process of its own: by turns, or through CUDA's MPS.

`python -m benchmarks.gpu_processes JSON` is one of those processes. Starts MPS as a worker of a sweep does.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import torch

from benchmarks.gpu_timing import alone_pace, usual_trainer
from benchmarks.gpu_trials import Scale, random_corpus
from trainables.config import LanguageTrialConfig, read_config

ROOT = Path(__file__).parents[1]
PIPES = "CUDA_MPS_PIPE_DIRECTORY"
WAIT_S = 120.0


def gpu_share() -> ModuleType:
    """The module of the worker, by its file: the room that it is in needs packages that may not be here."""
    spec = importlib.util.spec_from_file_location("gpu_share", ROOT / "orchestrator/worker/gpu_share.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def without_mps() -> Iterator[None]:
    """Inside, processes that are started look for a daemon in an empty folder."""
    before = os.environ.get(PIPES)
    # Sockets have short names, and so has their folder.
    with tempfile.TemporaryDirectory(prefix="mps-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ[PIPES] = folder
        try:
            yield
        finally:
            os.environ.pop(PIPES)
            os.environ.update({} if before is None else {PIPES: before})


@contextmanager
def mps_daemon() -> Iterator[str | None]:
    """Inside, processes that are started share a GPU through a daemon of their own; gives why not, where not."""
    sharing = gpu_share()
    with without_mps():
        why = sharing.start_mps()
        try:
            yield why
        finally:
            if why is None:
                subprocess.run([sharing.CONTROL], input="quit\n", text=True, timeout=60, stdout=subprocess.DEVNULL)


def tokens_a_second(config: LanguageTrialConfig, scale: Scale, device: str, steps: int, count: int) -> float:
    """Of `count` processes together, which begin their timed steps at the same time."""
    job: dict[str, Any] = {"config": config.model_dump(mode="json"), "scale": scale, "device": device}
    job |= {"steps": steps, "cores": max(1, len(os.sched_getaffinity(0)) // count)}
    command = [sys.executable, "-m", "benchmarks.gpu_processes", json.dumps(job)]
    with tempfile.TemporaryFile("w+") as errors:
        processes = [
            subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
            for _ in range(count)
        ]
        try:
            rates = _rates(processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        if rates is None:
            errors.seek(0)
            raise RuntimeError(f"a process ended early: {(errors.read().strip().splitlines() or ['no message'])[-1]}")
    return sum(rates)


def _rates(processes: list[subprocess.Popen[str]]) -> list[float] | None:
    """Tokens a second of every process; None where one ended early."""
    for process in processes:
        if not _stream(process.stdout).readline():
            return None
    for process in processes:
        _stream(process.stdin).write("go\n")
        _stream(process.stdin).flush()
    answers = [process.communicate(timeout=WAIT_S)[0] for process in processes]
    return [float(answer) for answer in answers] if all(answers) else None


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def work(job: Mapping[str, Any]) -> None:
    """Be one of the processes: warm up, say so, wait for the others, take the steps, and print tokens a second."""
    gpu_share().pin_thread(job["cores"])
    torch.set_num_threads(1 if job["scale"] == "tiny" else job["cores"])
    config = read_config(job["config"])
    assert isinstance(config, LanguageTrialConfig)
    trainer = usual_trainer(config, random_corpus(config.corpus.name, job["scale"]), job["device"])
    alone_pace(trainer, job["steps"])
    print("ready", flush=True)
    sys.stdin.readline()
    pace = alone_pace(trainer, job["steps"])
    print(pace.tokens / pace.seconds)


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
