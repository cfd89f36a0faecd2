from __future__ import annotations

import importlib.metadata
import os
import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.cluster import (
    RunOptions,
    check_torch_gpu,
    cluster_question,
    preflight,
)
from orchestrator.cluster.preflight import Question, Text, find_faults, versions
from orchestrator.storage import FolderStorage
from tests.support import tiny_trial as tiny
from tests.support.small_disk import change, small_disk
from trainables.config import WordPairsConfig
from trainables.corpora import WORD_SIMILARITY, identity
from trainables.errors import UserError
from trainables.runtime import GpuProbe, Runtime

TWO_GPUS = GpuProbe(usable=2, torch="2.13.0", cuda="13.0", capability=(9, 0))


def simulate_gpus(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    gpus = TWO_GPUS.model_copy(update=changes)
    monkeypatch.setattr(preflight, "probe_gpus", lambda **_: gpus)


@pytest.fixture
def sound_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Question:
    simulate_gpus(monkeypatch)
    (tmp_path / "marker").touch()
    corpus = tmp_path / "text"
    corpus.mkdir()
    for split in ("train", "valid", "test"):
        (corpus / f"{split}.txt").write_text("a b\n")
    options = RunOptions(
        storage=FolderStorage(tmp_path), runtime=Runtime(data_dir=tmp_path), gpus_per_trial=1
    )
    return cluster_question(options, "marker", [], corpus=identity("text", data_dir=tmp_path))


def faults(question: Question, ray_gpus: float = 2.0) -> list[str]:
    return find_faults(question.model_dump_json(), "10.0.0.2", ray_gpus)


def test_good_machine_has_no_fault(sound_question: Question) -> None:
    assert faults(sound_question) == []
    assert faults(sound_question.model_copy(update={"gpus": False}), ray_gpus=3) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"versions": {**versions(), "torch": "2.0.1"}},
            ", but the driver has torch 2.0.1: install the same",
        ),
        (
            {"versions": {**versions(), "this project's code": "0"}},
            "but the driver has this project's code 0",
        ),
        ({"marker": "another"}, "does not see the storage: "),
        ({"texts": (Text(name="no-such", folder=None),)}, "has no text for the trials: "),
        (
            {"texts": (Text(name="ptb", folder=Path("/dev/null")),)},
            "has no text for the trials: ",
        ),
    ],
)
def test_each_fault_is_one_sentence(
    sound_question: Question, changes: dict[str, Any], sentence: str
) -> None:
    (fault,) = faults(sound_question.model_copy(update=changes))
    assert sentence in fault
    assert "(10.0.0.2) " in fault
    assert ":" in fault
    assert fault.endswith(".")


def test_different_text_is_reported(sound_question: Question) -> None:
    (text,) = sound_question.texts
    other = text.model_copy(update={"sha256": "2" * 64})
    (fault,) = faults(sound_question.model_copy(update={"texts": (other,)}))
    assert "has a different text" in fault


def test_two_faults_are_two_sentences(
    sound_question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 10**8))
    disk, gpus = faults(sound_question, ray_gpus=3)
    assert "has 0.5 GB free" in disk and "at least 1" in disk
    assert "has 2 GPUs that torch can use, but 3 are" in gpus


def test_read_only_storage_is_named(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path / "disk"))
    with small_disk(tmp_path / "disk", kib=1024) as disk:
        (disk / "marker").touch()
        change(disk, "ro")
        (fault,) = faults(cluster_question(options, "marker", []))
    assert "(Read-only file system)" in fault


def test_preflight_checks_all_inputs(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path), runtime=Runtime(benchmarks_dir=tmp_path))
    pairs = cluster_question(
        options,
        "marker",
        [WordPairsConfig(seed=0, text="ptb")],
        measurements=("word_similarity@1",),
    )
    assert {(text.name, text.folder) for text in pairs.texts} == {
        (name, tmp_path) for name in (WORD_SIMILARITY, "ptb")
    }
    assert cluster_question(options, "marker", []).texts == ()


PROBES = [
    ({}, "tf32", None),
    ({"capability": (7, 0)}, "float32", None),
    ({"capability": (7, 0)}, "bf16", "capability 7.0, but bf16 needs 8.0: use --set"),
    ({"usable": 0}, "float32", "nvidia-smi"),
    ({"usable": 0, "torch": "2.13.0+cpu", "cuda": None}, "float32", "2.13.0.cpu has no CUDA"),
    ({"usable": 0, "faults": ("x has no code: install y",)}, "float32", "x has no code"),
]


@pytest.mark.parametrize(("changes", "precision", "sentence"), PROBES)
def test_unusable_gpu_is_named(
    sound_question: Question, monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any], precision: str, sentence: str | None,
) -> None:  # fmt: skip
    simulate_gpus(monkeypatch, **changes)
    messages = faults(sound_question.model_copy(update={"precisions": (precision,)}))
    assert len(messages) == (sentence is not None)
    trial = tiny.trial(precision=precision)
    refused = pytest.raises(UserError, match=f"A trial needs a GPU, .*{sentence}")
    with refused if sentence else nullcontext():
        check_torch_gpu([trial])


def test_torch_probe_is_another_process() -> None:
    probe = preflight.probe_gpus(all_gpus=False)
    assert probe.torch == importlib.metadata.version("torch")
    assert probe.usable == 0 or Path("/dev/nvidiactl").exists()


def test_probe_ignores_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = preflight.probe_gpus.__wrapped__
    program = 'import os; print(\'{"usable": %d, "torch": "", "cuda": null}\' % os.getpgid(0))'
    monkeypatch.setattr(preflight, "GPU_PROBE", ("-c", program))
    assert probe(all_gpus=False).usable != os.getpgid(0)
    monkeypatch.setattr(preflight, "GPU_PROBE", ("-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(preflight, "PROBE_S", 0.1)
    assert "no answer within 0.1 s" in probe(all_gpus=False).faults[0]


def test_missing_triton_is_only_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate_gpus(monkeypatch)
    assert check_torch_gpu([]) is None
    simulate_gpus(monkeypatch, triton="trains without Triton's kernels")
    assert check_torch_gpu([]) == "This machine trains without Triton's kernels."
