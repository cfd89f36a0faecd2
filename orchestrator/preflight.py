"""Whether every machine of a cluster could run a sweep's trials: asked of each, before any trial starts.

`look` runs on the machine in question, as a Ray task; this module knows nothing of Ray.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from orchestrator.bucket import Bucket, is_url
from orchestrator.cache import cache_folder
from orchestrator.data_folder import DataFolder
from orchestrator.execution import ScheduleOptions
from trainables.built_in_corpora import is_built_in
from trainables.corpora import NO_TEXT, CorpusIdentity, ensure, identity
from trainables.environment import package_versions
from trainables.errors import UserError
from trainables.frozen import Frozen

SAME_EVERYWHERE = ("torch", "numpy", "ray", "pydantic", "safetensors")
"""Packages that numbers, or what travels between machines, depend on."""
LEAST_FREE_BYTES = 10**9
"""For checkpoints of the trials that run at the same time."""
GPU_PROBE = """
import json, torch
count = torch.cuda.device_count()
print(json.dumps([torch.cuda.get_device_properties(i).total_memory / 1e9 for i in range(count)]))
"""


class Question(Frozen):
    """What a machine is asked about."""

    storage: str
    """A folder, or the URL of an object store."""
    marker: str
    """What was just written there."""
    corpus: str | None
    """The corpus that trials read from files; None where they read none."""
    data_dir: str | None
    """A folder, or the URL of an object store."""
    gpus: bool


class Findings(Frozen):
    """What a machine answers."""

    host: str
    versions: dict[str, str]
    storage_problem: str | None
    free_bytes: int | None
    """Where trials write: the storage, or what stands before an object store; None where there is no such folder."""
    corpus_sha256: str | None
    corpus_problem: str | None
    gpu_gb: tuple[float, ...]
    """The memory of each GPU that torch can use there, in GB."""


@cache
def versions() -> dict[str, str]:
    """Of Python, of packages, and of this project by the first digits of a SHA-256 over its files."""
    root, digest = Path(__file__).resolve().parents[1], hashlib.sha256()
    for package in ("orchestrator", "search_spaces", "trainables"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    found = {name: version for name, version in package_versions().items() if name in SAME_EVERYWHERE}
    return {"Python": platform.python_version(), **found, "this project's code": digest.hexdigest()[:12]}


def question(options: ScheduleOptions, marker: str, *, gpus: bool) -> Question:
    """What to ask about the machines of a sweep, in whose storage `marker` lies; with `gpus`, about these too."""
    corpus, data_dir = options.corpus, options.runtime.data_dir
    from_files = corpus is not None and corpus.name != NO_TEXT.name and not is_built_in(corpus.name)
    return Question(
        storage=str(options.mirror or options.storage),
        marker=marker,
        corpus=corpus.name if corpus is not None and from_files else None,
        data_dir=options.data.bucket.url if options.data is not None else data_dir and str(data_dir),
        gpus=gpus,
    )


def look(asked: str) -> str:
    """Answer a `Question` about this machine with `Findings`, both as JSON; fetches the corpus where it is missing."""
    about = Question.model_validate_json(asked)
    digest, problem = _corpus(about)
    try:
        free = shutil.disk_usage(_written_to(about.storage)).free
    except (OSError, UserError):
        free = None
    return Findings(
        host=socket.gethostname(),
        versions=versions(),
        storage_problem=_storage_problem(about.storage, about.marker),
        free_bytes=free,
        corpus_sha256=digest,
        corpus_problem=problem,
        gpu_gb=_gpu_gb() if about.gpus else (),
    ).model_dump_json()


def _storage_problem(storage: str, marker: str) -> str | None:
    """Why what was just written there cannot be found, or a trial could not write there, from here."""
    if not is_url(storage):
        if (Path(storage) / marker).exists():
            return None
        return f"{storage} is not the same folder there: name one that all machines of the cluster share with --storage"
    bucket = Bucket(storage)
    try:
        bucket.check()
        if bucket.read([marker]):
            return None
    except UserError as error:
        return str(error)
    return f"{storage} is not the one of the machine that the command was typed on: see AWS_ENDPOINT_URL on both"


def _written_to(storage: str) -> Path:
    return cache_folder("scratch", storage) if is_url(storage) else Path(storage)


def _corpus(about: Question) -> tuple[str | None, str | None]:
    if about.corpus is None:
        return None, None
    try:
        data_dir = _data_dir(about.data_dir, about.corpus)
        ensure(about.corpus, data_dir=data_dir, on_progress=_no_progress)
        return identity(about.corpus, data_dir=data_dir).sha256, None
    except UserError as error:
        return None, str(error)


def _data_dir(place: str | None, corpus: str) -> Path | None:
    if place is None or not is_url(place):
        return None if place is None else Path(place)
    return DataFolder(Bucket(place), (corpus,), driver=Path()).fetch()


def _no_progress(file: str, done: int, total: int) -> None:
    """Nobody watches the download of a worker."""
    del file, done, total


def _gpu_gb() -> tuple[float, ...]:
    """Asked of another process: Ray hides the GPUs from a task that takes none of them."""
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    answer = subprocess.run(
        [sys.executable, "-c", GPU_PROBE], env=environment, capture_output=True, text=True, check=False
    )
    return tuple(json.loads(answer.stdout)) if answer.returncode == 0 else ()


def faults(
    machines: Mapping[str, Findings | str],
    gpus_known_to_ray: Mapping[str, float],
    storage: Path,
    corpus: CorpusIdentity | None,
    gpu_memory_gb: float | None,
) -> list[str]:
    """One sentence for each thing that is amiss; `machines` has by address what each answered, or why it did not.

    `gpu_memory_gb` is what a trial needs of a GPU; None where trials train on CPUs.
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
        found += _version_faults(name, answer.versions)
        if answer.storage_problem is not None:
            found.append(f"{name} does not see the storage: {answer.storage_problem.rstrip('.')}.")
        found += _disk_faults(name, answer, storage)
        found += _corpus_faults(name, answer, corpus)
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


def _version_faults(name: str, there: Mapping[str, str]) -> list[str]:
    here = versions()
    different = [what for what in here if there.get(what) != here[what]]
    if not different:
        return []
    list_there, list_here = (
        ", ".join(f"{what} {which.get(what, 'missing')}" for what in different) for which in (there, here)
    )
    return [f"{name} has {list_there}, where this one has {list_here}: install the same on every machine."]


def _disk_faults(name: str, answer: Findings, storage: Path) -> list[str]:
    if answer.free_bytes is None or answer.free_bytes >= LEAST_FREE_BYTES:
        return []
    return [
        f"{name} has {answer.free_bytes / 1e9:.1f} GB free in {storage}, and checkpoints need at least "
        f"{LEAST_FREE_BYTES / 1e9:g}: free space there, or name another folder with --storage."
    ]


def _corpus_faults(name: str, answer: Findings, corpus: CorpusIdentity | None) -> list[str]:
    if answer.corpus_problem is not None:
        return [f"{name} has not got the corpus: {answer.corpus_problem}"]
    if corpus is None or answer.corpus_sha256 in (None, corpus.sha256):
        return []
    return [f"{name} has another text as the corpus {corpus.name} than this one: copy the folder from here to there."]


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
