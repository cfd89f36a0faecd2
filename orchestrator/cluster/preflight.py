"""Whether every machine of a cluster could run a sweep's trials: asked of each, before any trial starts.

`look` runs on the machine in question, as a Ray task; this module knows nothing of Ray.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage import Bucket, DataFolder, Storage, is_url, storage_at
from trainables.config import WORD_SIMILARITY, AnyConfig, Frozen, WordPairsConfig, is_built_in
from trainables.corpora import NO_TEXT, CorpusIdentity, ensure, identity
from trainables.corpora import WORD_SIMILARITY as BENCHMARKS
from trainables.errors import UserError
from trainables.trial_folder import package_versions

SAME_EVERYWHERE = ("torch", "numpy", "ray", "pydantic", "safetensors")
"""Packages that numbers, or what travels between machines, depend on."""
GPU_PROBE = "import torch; print(torch.cuda.device_count())"


class Question(Frozen):
    """What a machine is asked about."""

    versions: dict[str, str]
    """`versions` of the machine that asks."""
    storage: str
    """A folder, or the URL of an object store."""
    marker: str
    """What was just written there."""
    corpus: str | None
    """The corpus that trials read from files; None where they read none."""
    corpus_sha256: str | None
    data_dir: str | None
    """Where it lies: a folder, or the URL of an object store."""
    texts: tuple[str, ...]
    """Other texts that trials read."""
    benchmarks: bool
    """Whether trials read the benchmarks of word similarity."""
    benchmarks_dir: str | None
    """Where these two lie."""
    gpus: bool


class Findings(Frozen):
    """What a machine answers."""

    host: str
    versions: dict[str, str]
    storage_problem: str | None
    written_to: str | None
    """Where trials write: the storage, or what stands before an object store; None where there is no such folder."""
    free_bytes: int | None
    """Of that folder."""
    corpus_sha256: str | None
    text_problem: str | None
    """Why something that trials read is not there."""
    gpus: int
    """How many GPUs torch can use there; 0 where that was not asked."""


@cache
def versions() -> dict[str, str]:
    """Of Python, of packages, and of this project by the first digits of a SHA-256 over its files."""
    root, digest = Path(__file__).resolve().parents[2], hashlib.sha256()
    for package in ("orchestrator", "search_spaces", "trainables"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    found = {name: version for name, version in package_versions().items() if name in SAME_EVERYWHERE}
    return {"Python": platform.python_version(), **found, "this project's code": digest.hexdigest()[:12]}


def question(
    options: RunOptions,
    marker: str,
    configs: Sequence[AnyConfig],
    *,
    corpus: CorpusIdentity | None = None,
    measurements: Sequence[str] = (),
) -> Question:
    """What to ask about the machines of a sweep of these trials, in whose storage `marker` lies.

    `corpus` is what its language models read; None where it trains none.
    """
    trains_models = corpus is not None
    if corpus is not None and (corpus.name == NO_TEXT.name or is_built_in(corpus.name)):
        corpus = None
    texts = {config.text for config in configs if isinstance(config, WordPairsConfig)}
    return Question(
        versions=versions(),
        storage=str(options.storage),
        marker=marker,
        corpus=corpus and corpus.name,
        corpus_sha256=corpus and corpus.sha256,
        data_dir=_as_typed(options.runtime.data_dir, options),
        texts=tuple(sorted(texts)),
        benchmarks=bool(texts) or WORD_SIMILARITY in measurements,
        benchmarks_dir=_as_typed(options.runtime.benchmarks_dir, options),
        gpus=options.gpus_per_trial > 0 and trains_models,
    )


def _as_typed(folder: Path | None, options: RunOptions) -> str | None:
    """A data folder, or the URL of the object store behind it."""
    if options.data is not None and folder == options.data.driver:
        return options.data.bucket.url
    return None if folder is None else str(folder)


def look(asked: str) -> str:
    """Answer a `Question` about this machine with `Findings`, both as JSON; fetches texts where they are missing."""
    about = Question.model_validate_json(asked)
    digest, problem = _texts(about)
    storage = storage_at(about.storage)
    folder, free = _free_bytes(storage)
    return Findings(
        host=socket.gethostname(),
        versions=versions(),
        storage_problem=storage.problem(about.marker),
        written_to=folder,
        free_bytes=free,
        corpus_sha256=digest,
        text_problem=problem,
        gpus=_usable_gpus() if about.gpus else 0,
    ).model_dump_json()


def _free_bytes(storage: Storage) -> tuple[str | None, int | None]:
    """The folder that trials write to, and its free bytes."""
    try:
        return str(storage.work_folder), shutil.disk_usage(storage.work_folder).free
    except (OSError, UserError):
        return None, None


def _texts(about: Question) -> tuple[str | None, str | None]:
    """The SHA-256 of the corpus, and why something to read is not there."""
    digest = None
    try:
        if about.corpus is not None:
            folder = _data_dir(about.data_dir, (about.corpus,))
            ensure(about.corpus, data_dir=folder)
            digest = identity(about.corpus, data_dir=folder).sha256
        if about.benchmarks:
            folder = _data_dir(about.benchmarks_dir, (*about.texts, BENCHMARKS))
            for name in (BENCHMARKS, *about.texts):
                ensure(name, data_dir=folder)
    except UserError as error:
        return digest, str(error)
    return digest, None


def _data_dir(place: str | None, names: tuple[str, ...]) -> Path | None:
    if place is None or not is_url(place):
        return None if place is None else Path(place)
    return DataFolder(Bucket(place), names, driver=Path()).fetch()


def _usable_gpus() -> int:
    """Asked of another process: Ray hides the GPUs from a task that takes none of them."""
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    answer = subprocess.run(
        [sys.executable, "-c", GPU_PROBE], env=environment, capture_output=True, text=True, check=False
    )
    return int(answer.stdout) if answer.returncode == 0 else 0
