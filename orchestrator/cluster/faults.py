"""What is amiss with machines that were asked about themselves: one sentence a fault, with the machine and the cure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.cluster.preflight import Findings, Question
from trainables.errors import UserError

LEAST_FREE_BYTES = 10**9
"""For checkpoints of the trials that run at the same time."""


def faults(
    asked: Question,
    machines: Mapping[str, Findings | str],
    gpus_known_to_ray: Mapping[str, float],
    gpu_memory_gb: float | None,
) -> list[str]:
    """One sentence for each thing that is amiss; `machines` has by address what each answered, or why it did not.

    `gpu_memory_gb` is what a trial needs of a whole GPU; None where that is not asked.
    """
    found = []
    for address, answer in machines.items():
        if isinstance(answer, str):
            found.append(
                f"The machine {address} cannot run this project ({answer}): install it there as it is here, and start "
                "Ray with that Python."
            )
            continue
        name = f"The machine {answer.host} ({address})"
        found += _version_faults(name, answer.versions, asked.versions)
        found += _storage_faults(name, answer)
        found += _text_faults(name, answer, asked)
        found += _gpu_faults(name, answer.gpu_gb, gpus_known_to_ray.get(address, 0.0), gpu_memory_gb)
    return found or _size_faults(smallest_gpus(machines, gpus_known_to_ray), gpu_memory_gb)


def smallest_gpus(machines: Mapping[str, Findings | str], gpus_known_to_ray: Mapping[str, float]) -> dict[str, float]:
    """By address of each machine with GPUs for Ray, the memory of the smallest of them in GB, where it told that."""
    told = {address: each.gpu_gb for address, each in machines.items() if isinstance(each, Findings)}
    return {address: min(sizes) for address, sizes in told.items() if sizes and gpus_known_to_ray.get(address, 0.0)}


def _size_faults(smallest: Mapping[str, float], needed_gb: float | None) -> list[str]:
    if needed_gb is None or not smallest or max(smallest.values()) >= needed_gb:
        return []
    address = max(smallest, key=smallest.__getitem__)
    return [
        f"No machine has GPUs that are large enough: a trial is estimated to need {needed_gb:.1f} GB of a whole one, "
        f"and the largest, of {address}, has {smallest[address]:.1f} GB: ask for a larger share with --gpus-per-trial, "
        "or for machines with larger ones."
    ]


def _version_faults(name: str, there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    different = [what for what in here if there.get(what) != here[what]]
    if not different:
        return []
    list_there, list_here = (
        ", ".join(f"{what} {which.get(what, 'missing')}" for what in different) for which in (there, here)
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


def _text_faults(name: str, answer: Findings, asked: Question) -> list[str]:
    if answer.text_problem is not None:
        return [f"{name} has not got what trials read: {answer.text_problem}"]
    if asked.corpus is None or answer.corpus_sha256 == asked.corpus_sha256:
        return []
    return [
        f"{name} has another text as the corpus {asked.corpus} than the driver: copy its folder from here to there."
    ]


def _gpu_faults(name: str, gpu_gb: Sequence[float], counted: float, needed_gb: float | None) -> list[str]:
    if needed_gb is None or counted == 0:
        return []
    if len(gpu_gb) < counted:
        return [
            f"{name} has {counted:g} GPUs for Ray and {len(gpu_gb)} that torch can use: see what nvidia-smi lists "
            "there and that torch was built for CUDA, or start Ray there with --num-gpus 0."
        ]
    return []


def check(problems: Sequence[str]) -> None:
    """Raise UserError where there are some, with all of them."""
    if problems:
        raise UserError("\n".join(problems))
