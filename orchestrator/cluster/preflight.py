"""Checks that a machine can run the trials, before any trial starts.

`find_faults` runs on each machine as a Ray task.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage import storage_at
from trainables.config import (
    WORD_SIMILARITY,
    AnyConfig,
    Frozen,
    LanguageTrialConfig,
    WordPairsConfig,
    is_built_in,
)
from trainables.corpora import NO_TEXT, CorpusIdentity, ensure, identity
from trainables.corpora import WORD_SIMILARITY as BENCHMARKS
from trainables.errors import UserError, last_line
from trainables.runtime import GpuProbe
from trainables.trial_folder import package_versions

SHARED_PACKAGES = ("torch", "numpy", "ray", "pydantic", "safetensors")
"""Packages that affect results or the messages between machines."""
MIN_FREE_BYTES = 10**9
GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
GPU_PROBE = ("-m", "trainables.gpu_probe")
MIN_CAPABILITY = (8, 0)
"""Minimum compute capability for bf16 and TF32."""
PROBE_S = 120.0


class Text(Frozen):
    """A corpus or benchmark that every machine must have."""

    name: str
    folder: Path | None
    sha256: str | None = None
    """Hash of the driver's copy; None if its content is fixed."""


class Question(Frozen):
    """Requirements of the trials, sent to each machine to check."""

    versions: dict[str, str]
    storage: str
    marker: str
    texts: tuple[Text, ...]
    gpus: bool
    precisions: tuple[str, ...] = ()


@cache
def versions() -> dict[str, str]:
    """Return versions of Python, packages and this project (a hash of its files)."""
    root, digest = Path(__file__).resolve().parents[2], hashlib.sha256()
    for package in ("orchestrator", "search_spaces", "trainables"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    packages = {
        name: version for name, version in package_versions().items() if name in SHARED_PACKAGES
    }
    return {
        "Python": platform.python_version(),
        **packages,
        "this project's code": digest.hexdigest()[:12],
    }


def cluster_question(
    options: RunOptions,
    marker: str,
    configs: Sequence[AnyConfig],
    *,
    corpus: CorpusIdentity | None = None,
    measurements: Sequence[str] = (),
) -> Question:
    """Return the requirements of these trials.

    `marker` names a test file in the storage. `corpus` is the language models' corpus, if any.
    """
    texts = []
    if corpus is not None and corpus.name != NO_TEXT.name and not is_built_in(corpus.name):
        folder = options.runtime.data_dir
        texts.append(Text(name=corpus.name, folder=folder, sha256=corpus.sha256))
    names = {config.text for config in configs if isinstance(config, WordPairsConfig)}
    if names or WORD_SIMILARITY in measurements:
        folder = options.runtime.benchmarks_dir
        texts += [Text(name=name, folder=folder) for name in sorted(names | {BENCHMARKS})]
    return Question(
        versions=versions(),
        storage=str(options.storage),
        marker=marker,
        texts=tuple(texts),
        gpus=options.gpus_per_trial > 0,
        precisions=precisions_of(configs),
    )


def find_faults(text: str, address: str, ray_gpus: float) -> list[str]:
    """Check this machine, and return a sentence with the fix for each fault.

    Downloads missing corpora and benchmarks. `text` is a `Question` as JSON. `address` and
    `ray_gpus` are this machine's address and number of GPUs in Ray.
    """
    question = Question.model_validate_json(text)
    clauses = (
        _version_fault(question.versions),
        _storage_fault(question),
        *map(_text_fault, question.texts),
        question.gpus and ray_gpus and _gpu_fault(ray_gpus, question.precisions, all_gpus=True),
    )
    host = socket.gethostname()
    return [f"The machine {host} ({address}) {clause}." for clause in clauses if clause]


def _version_fault(driver_versions: dict[str, str]) -> str | None:
    packages = [
        package
        for package, version in driver_versions.items()
        if versions().get(package) != version
    ]
    if not packages:
        return None
    machine_text, driver_text = (
        ", ".join(f"{package} {machine.get(package, 'missing')}" for package in packages)
        for machine in (versions(), driver_versions)
    )
    return (
        f"has {machine_text}, but the driver has {driver_text}: install the same versions on every "
        "machine"
    )


def _storage_fault(question: Question) -> str | None:
    storage = storage_at(question.storage)
    problem = storage.problem(question.marker)
    if problem is not None:
        return f"does not see the storage: {problem.rstrip('.')}"
    try:
        # Trials write to the storage, or to a local folder in front of an object store.
        folder = storage.work_folder
        free_bytes = shutil.disk_usage(folder).free
    except (OSError, UserError):
        return None
    if free_bytes >= MIN_FREE_BYTES:
        return None
    return (
        f"has {free_bytes / 1e9:.1f} GB free in {folder}, but checkpoints need at least "
        f"{MIN_FREE_BYTES / 1e9:g} GB: free space there"
    )


def _text_fault(text: Text) -> str | None:
    try:
        ensure(text.name, data_dir=text.folder)
        if text.sha256 in (None, identity(text.name, data_dir=text.folder).sha256):
            return None
    except UserError as error:
        return f"has no text for the trials: {str(error).rstrip('.')}"
    return f"has a different text {text.name} than the driver: copy the driver's folder"


def _gpu_fault(gpu_count: float, precisions: Collection[str], *, all_gpus: bool) -> str | None:
    gpus = probe_gpus(all_gpus=all_gpus)
    tensor_precisions = sorted({*precisions} - {"float32"})
    if gpus.usable < gpu_count:
        fix = f"the installed torch {gpus.torch} has no CUDA support: install a build for CUDA"
        if gpus.cuda is not None:
            fix = (
                f"check with nvidia-smi that the GPU driver sees a GPU and can run CUDA {gpus.cuda}"
            )
        fix = gpus.faults[0] if gpus.faults else fix
        return f"has {gpus.usable} GPUs that torch can use, but {gpu_count:g} are requested: {fix}"
    if tensor_precisions and gpus.capability is not None and gpus.capability < MIN_CAPABILITY:
        return (
            f"has a GPU of compute capability {'.'.join(map(str, gpus.capability))}, but "
            f"{tensor_precisions[0]} needs 8.0: use --set training.precision=float32"
        )
    return None


def precisions_of(configs: Iterable[AnyConfig]) -> tuple[str, ...]:
    """Return the training precisions of the language models."""
    return tuple(
        sorted(
            {
                config.training.precision
                for config in configs
                if isinstance(config, LanguageTrialConfig)
            }
        )
    )


def check_torch_gpu(configs: Iterable[AnyConfig]) -> str | None:
    """Raise UserError if torch cannot train on a GPU here; return a note if Triton is unusable."""
    problem = _gpu_fault(1, precisions_of(configs), all_gpus=False)
    if problem is not None:
        raise UserError(
            f"A trial needs a GPU, but this machine {problem}. Or train on CPUs with "
            "--gpus-per-trial 0."
        )
    triton = probe_gpus(all_gpus=False).triton
    return triton and f"This machine {triton}."


@cache
def probe_gpus(*, all_gpus: bool) -> GpuProbe:
    """Test this machine's GPUs in another process, so the driver imports no torch.

    `all_gpus` includes GPUs that CUDA_VISIBLE_DEVICES hides, as in a Ray task without GPUs.
    """
    environment = {
        name: value for name, value in os.environ.items() if not (all_gpus and name == GPU_VARIABLE)
    }
    try:
        # In a new session, so that Ctrl-C reaches the driver only. Otherwise the probe's end would
        # look like torch's fault.
        answer = subprocess.run(
            [sys.executable, *GPU_PROBE],
            cwd=Path(__file__).resolve().parents[2],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PROBE_S,
            start_new_session=True,
            check=True,
        )
    except subprocess.TimeoutExpired:
        reason = f"no answer within {PROBE_S:g} s"
    except subprocess.CalledProcessError as error:
        reason = last_line(error.stderr)
    else:
        return GpuProbe.model_validate_json(answer.stdout)
    fault = f"torch cannot be used ({reason}): install torch"
    return GpuProbe(usable=0, torch="", cuda=None, faults=(fault,))
