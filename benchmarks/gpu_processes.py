"""Trials side by side on one device, each in a process of its own.

`python -m benchmarks.gpu_processes JSON` is one of those processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import torch

from gpu_proof.timing import alone_pace, usual_trainer
from gpu_proof.trials import Scale, random_corpus
from trainables.config import LanguageTrialConfig, read_config

ROOT = Path(__file__).parents[1]
WAIT_S = 120.0


def tokens_a_second(
    config: LanguageTrialConfig, scale: Scale, device: str, steps: int, count: int
) -> float:
    """Of `count` processes together, which begin their timed steps at the same time."""
    job: dict[str, Any] = {
        "config": config.model_dump(mode="json"),
        "scale": scale,
        "device": device,
    }
    job |= {"steps": steps, "cores": max(1, len(os.sched_getaffinity(0)) // count)}
    command = [sys.executable, "-m", "benchmarks.gpu_processes", json.dumps(job)]
    with tempfile.TemporaryFile("w+") as errors:
        processes = [
            subprocess.Popen(
                command,
                cwd=ROOT,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
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
            raise RuntimeError(
                f"a process ended early: "
                f"{(errors.read().strip().splitlines() or ['no message'])[-1]}"
            )
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
    """Be one of the processes: warm up, say so, wait for the others, take the steps, and print
    tokens a second."""
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
