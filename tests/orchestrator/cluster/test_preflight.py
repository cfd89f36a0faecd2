"""What is said of a machine that could not run a sweep's trials: one sentence a fault."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray

from orchestrator.cluster import machines, preflight
from orchestrator.cluster.machines import LateMachines, UnfitMachineError
from orchestrator.cluster.preflight import (
    Question,
    check_torch_gpu,
    cluster_question,
    look,
    versions,
)
from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage
from tests.support import tiny_trial as tiny
from tests.support.small_disk import change, small_disk
from trainables.config import WordPairsConfig
from trainables.corpora import identity
from trainables.errors import UserError
from trainables.runtime import GpuProbe, Runtime

TWO_GPUS = GpuProbe(usable=2, torch="2.13.0", cuda="13.0", capability=(9, 0))


@pytest.fixture
def in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Question:
    """A question whose answer is that nothing is amiss, on a machine with two GPUs."""
    monkeypatch.setattr(preflight, "probe_gpus", lambda **_: TWO_GPUS)
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
    return look(question.model_dump_json(), "10.0.0.2", ray_gpus)


def test_a_machine_in_order_has_no_fault(in_order: Question) -> None:
    assert (in_order.corpus, in_order.gpus, in_order.benchmarks) == ("text", True, False)
    assert faults(in_order) == []
    assert faults(in_order.model_copy(update={"gpus": False}), ray_gpus=3) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"versions": {**versions(), "torch": "2.0.1"}},
            ", where the driver has torch 2.0.1: install the same",
        ),
        (
            {"versions": {**versions(), "this project's code": "0"}},
            "where the driver has this project's code 0",
        ),
        ({"marker": "another"}, "does not see the storage: "),
        ({"corpus": "no-such"}, "has not got what trials read: "),
        ({"corpus_sha256": "2" * 64}, "has another text as the corpus text than the driver"),
        (
            {"texts": ("ptb",), "benchmarks": True, "benchmarks_dir": "/dev/null"},
            "has not got what trials read: ",
        ),
    ],
)
def test_each_fault_is_one_sentence_with_the_machine_and_the_cure(
    in_order: Question, changes: dict[str, Any], sentence: str
) -> None:
    (fault,) = faults(in_order.model_copy(update=changes))
    assert sentence in fault
    assert "(10.0.0.2) " in fault
    assert ":" in fault
    assert fault.endswith(".")


def test_gpus_and_a_disk_that_would_not_do_are_told_with_both_numbers(
    in_order: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 10**8))
    disk, gpus = faults(in_order, ray_gpus=3)
    assert (
        f"has 0.5 GB free in {in_order.storage}, and checkpoints need at least 1: free space there."
        in disk
    )
    assert "has 3 GPUs for Ray and 2 that torch can use" in gpus


def test_a_storage_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path / "disk"))
    with small_disk(tmp_path / "disk", kib=1024) as disk:
        (disk / "marker").touch()
        change(disk, "ro")
        (fault,) = faults(cluster_question(options, "marker", []))
    assert "cannot be written to there (Read-only file system)" in fault


def test_everything_that_trials_read_is_in_question(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path), runtime=Runtime(benchmarks_dir=tmp_path))
    pairs = cluster_question(
        options,
        "marker",
        [WordPairsConfig(seed=0, text="ptb")],
        measurements=("word_similarity@1",),
    )
    assert (pairs.corpus, pairs.texts, pairs.benchmarks) == (None, ("ptb",), True)
    nothing = cluster_question(options, "marker", [])
    assert (nothing.texts, nothing.benchmarks) == ((), False)


def test_a_machine_that_joins_late_is_refused_for_gpus_that_torch_cannot_use(
    in_order: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = LateMachines(in_order.model_dump_json(), others=frozenset({"first"}))
    for machine, gpus, refused in (
        ("late", 3.0, True),
        ("later", 2.0, False),
        ("first", 3.0, False),
    ):
        node = {"NodeID": machine, "NodeManagerAddress": "10.0.0.2", "Resources": {"GPU": gpus}}
        context = SimpleNamespace(get_node_id=lambda machine=machine: machine)
        monkeypatch.setattr(
            machines, "nodes", lambda node=node: [node | {"NodeID": "another"}, node]
        )
        monkeypatch.setattr(ray, "get_runtime_context", lambda context=context: context)
        with (
            pytest.raises(UnfitMachineError, match="3 GPUs for Ray and 2 that")
            if refused
            else nullcontext()
        ):
            late.refuse_unfit()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"usable": 0, "torch": "2.13.0+cpu", "cuda": None},
            "the installed torch 2.13.0+cpu has no CUDA support: ",
        ),
        (
            {"usable": 0},
            "torch 2.13.0 finds none that it can use: see that nvidia-smi lists it and that the "
            "driver is ",
        ),
        (
            {"usable": 0, "faults": ("it has no code: install another",)},
            "it has no code: install another; or train ",
        ),
        (
            {"capability": (7, 0)},
            "this machine has a GPU of compute capability 7.0, and bf16 needs 8.0: use --set ",
        ),
    ],
)
def test_a_torch_that_cannot_use_gpus_is_told(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setattr(preflight, "probe_gpus", lambda **_: TWO_GPUS.model_copy(update=changes))
    bf16 = tiny.trial(precision="bf16")
    with pytest.raises(UserError) as raised:
        check_torch_gpu([bf16])
    assert f"A trial asks for a GPU, and {sentence}" in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "precision", "sentence"),
    [
        (
            {"usable": 1, "faults": ("x has no code: install y",)},
            "float32",
            " 1 that torch can use: x has no code: ",
        ),
        ({"faults": ("a third one has no code: install y",)}, "float32", None),
        (
            {"capability": (7, 0)},
            "bf16",
            "has a GPU of compute capability 7.0, and bf16 needs 8.0: use --set training",
        ),
        ({"capability": (7, 0)}, "float32", None),
        ({}, "tf32", None),
    ],
)
def test_a_gpu_that_trials_would_fail_on_is_told(
    in_order: Question,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    precision: str,
    sentence: str | None,
) -> None:
    monkeypatch.setattr(preflight, "probe_gpus", lambda **_: TWO_GPUS.model_copy(update=changes))
    found = faults(in_order.model_copy(update={"precisions": (precision,)}))
    assert len(found) == (sentence is not None)
    assert all(str(sentence) in fault for fault in found)


def test_torch_is_probed_in_another_process() -> None:
    found = preflight.probe_gpus()
    assert found.torch == importlib.metadata.version("torch")
    assert found.usable == 0 or Path("/dev/nvidiactl").exists()


def test_a_probe_is_spared_ctrl_c_and_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    program = 'import os; print(\'{"usable": %d, "torch": "", "cuda": null}\' % os.getpgid(0))'
    monkeypatch.setattr(preflight, "GPU_PROBE", ("-c", program))
    preflight.probe_gpus.cache_clear()
    assert preflight.probe_gpus().usable != os.getpgid(0)
    preflight.probe_gpus.cache_clear()
    monkeypatch.setattr(preflight, "GPU_PROBE", ("-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(preflight, "PROBE_S", 0.1)
    with pytest.raises(UserError, match=r"torch cannot be used \(no answer within 0.1 s\)"):
        check_torch_gpu([])


def test_a_machine_without_triton_is_noted_and_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "probe_gpus", lambda **_: TWO_GPUS)
    assert check_torch_gpu([]) is None
    slow = TWO_GPUS.model_copy(update={"triton": "trains without Triton's kernels"})
    monkeypatch.setattr(preflight, "probe_gpus", lambda **_: slow)
    assert check_torch_gpu([]) == "This machine trains without Triton's kernels."
