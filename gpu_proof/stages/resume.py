"""Bitwise comparison of trials resumed in a new process with uninterrupted trials."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import fmean

import torch

from gpu_proof.report import Question
from gpu_proof.trials import LAYERS, Model, new_trainers, numbers_of, scale_on
from trainables.device import repeat_bits
from trainables.stack import Stack
from trainables.training import Trainer
from trainables.trial_folder import load_tensors, save_tensors

CASES: dict[str, tuple[Model, Sequence[str]]] = {
    "alone": ("awd_lstm", LAYERS),
    "stack": ("awd_lstm", ("gss", "lms_plif")),
    "stack of Transformers": ("transformer", ("gss", "mos", "lms_plif")),
}
STEPS = 6
"""Number of steps before the checkpoint; as many follow it."""


def questions(device: str, folder: Path) -> Iterator[Question]:
    """Resume each case; on a GPU, the stack of AWD-LSTMs has the papers' shapes."""
    for case in CASES:
        yield Question(
            f"share of tensors whose bits differ, {case}",
            partial(_changed_share, device, folder, case),
            0,
        )


def _changed_share(device: str, folder: Path, case: str) -> float:
    return _changed_shares(device, folder)[case]


@cache
def _changed_shares(device: str, folder: Path) -> dict[str, float]:
    expected = dict[str, dict[str, str]]()
    for case in CASES:
        trainers = _new_trainers(device, case)
        take_steps = _steps(trainers, case)
        take_steps()
        for number, trainer in enumerate(trainers):
            save_tensors(folder / f"{case}.{number}", *trainer.snapshot())
        take_steps()
        expected[case] = _digests(trainers)
    subprocess.run([sys.executable, "-m", __name__, device, folder, *CASES], check=True)
    shares = {}
    for case, digests in expected.items():
        results = json.loads((folder / case).read_text())
        shares[case] = fmean(results[name] != digest for name, digest in digests.items())
    return shares


def _new_trainers(device: str, case: str) -> list[Trainer]:
    repeat_bits(True)
    model, layers = CASES[case]
    return new_trainers(device, layers, model, scale_on(device) if case == "stack" else "tiny")


def _steps(trainers: list[Trainer], case: str) -> Callable[[], None]:
    steps = [trainer.step for trainer in trainers] if case == "alone" else [Stack(trainers).step]

    def run() -> None:
        for _ in range(STEPS):
            for step in steps:
                step()

    return run


def _digests(trainers: Sequence[Trainer]) -> dict[str, str]:
    return {
        f"{number} {name}": hashlib.sha256(tensor.cpu().numpy().tobytes()).hexdigest()
        for number, trainer in enumerate(trainers)
        for name, tensor in numbers_of(trainer).items()
    }


def main() -> None:
    """Resume from checkpoints and write digests of the tensors."""
    device, folder = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    for case in sys.argv[3:]:
        trainers = _new_trainers(device, case)
        for number, trainer in enumerate(trainers):
            trainer.restore(*load_tensors(folder / f"{case}.{number}", device))
        _steps(trainers, case)()
        (folder / case).write_text(json.dumps(_digests(trainers)))


if __name__ == "__main__":
    main()
