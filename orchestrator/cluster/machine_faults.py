"""What is amiss with machines that were asked about themselves: one sentence a fault, with the machine and the cure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.cluster.preflight import Findings, Question
from trainables.errors import UserError

LEAST_FREE_BYTES = 10**9
"""For checkpoints of the trials that run at the same time."""


def faults(
    question: Question, machines: Mapping[str, Findings | str], gpus_known_to_ray: Mapping[str, float]
) -> list[str]:
    """One sentence for each thing that is amiss; `machines` has by address what each answered, or why it did not.

    Where GPUs are in question, `gpus_known_to_ray` has each of these machines; KeyError otherwise.
    """
    sentences = []
    for address, answer in machines.items():
        if isinstance(answer, str):
            sentences.append(
                f"The machine {address} cannot run this project ({answer}): install it there as it is here, and start "
                "Ray with that Python."
            )
            continue
        name = f"The machine {answer.host} ({address})"
        sentences += _version_faults(name, answer.versions, question.versions)
        sentences += _storage_faults(name, answer)
        sentences += _text_faults(name, answer, question)
        if question.gpus:
            sentences += _gpu_faults(name, answer.gpus, gpus_known_to_ray[address])
    return sentences


def _version_faults(name: str, there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    different = [package for package in here if there.get(package) != here[package]]
    if not different:
        return []
    list_there, list_here = (
        ", ".join(f"{package} {versions.get(package, 'missing')}" for package in different)
        for versions in (there, here)
    )
    return [f"{name} has {list_there}, where the driver has {list_here}: install the same on every machine."]


def _storage_faults(name: str, answer: Findings) -> list[str]:
    if answer.storage_problem is not None:
        return [f"{name} does not see the storage: {answer.storage_problem.rstrip('.')}."]
    if answer.free_bytes is None or answer.free_bytes >= LEAST_FREE_BYTES:
        return []
    return [
        f"{name} has {answer.free_bytes / 1e9:.1f} GB free in {answer.written_to}, and checkpoints need at least "
        f"{LEAST_FREE_BYTES / 1e9:g}: free space there."
    ]


def _text_faults(name: str, answer: Findings, question: Question) -> list[str]:
    if answer.text_problem is not None:
        return [f"{name} has not got what trials read: {answer.text_problem}"]
    if question.corpus is None or answer.corpus_sha256 == question.corpus_sha256:
        return []
    return [
        f"{name} has another text as the corpus {question.corpus} than the driver: copy its folder from here to there."
    ]


def _gpu_faults(name: str, usable: int, gpus_known_to_ray: float) -> list[str]:
    if usable >= gpus_known_to_ray:
        return []
    return [
        f"{name} has {gpus_known_to_ray:g} GPUs for Ray and {usable} that torch can use: see what nvidia-smi lists "
        "there and that torch was built for CUDA, or start Ray there with --num-gpus 0."
    ]


def check(problems: Sequence[str]) -> None:
    """Raise UserError where there are some, with all of them."""
    if problems:
        raise UserError("\n".join(problems))
