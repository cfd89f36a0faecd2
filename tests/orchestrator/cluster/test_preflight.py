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
from orchestrator.cluster.preflight import Question, check_torch_gpu, cluster_question, look, versions
from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage
from tests.support.small_disk import change, small_disk
from trainables.config import WordPairsConfig
from trainables.corpora import identity
from trainables.errors import UserError
from trainables.runtime import Runtime


@pytest.fixture
def in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Question:
    """A question whose answer is that nothing is amiss, on a machine with two GPUs."""
    monkeypatch.setattr(preflight, "probe_gpus", lambda: (2, "2.13.0", "13.0"))
    (tmp_path / "marker").touch()
    corpus = tmp_path / "text"
    corpus.mkdir()
    for split in ("train", "valid", "test"):
        (corpus / f"{split}.txt").write_text("a b\n")
    options = RunOptions(storage=FolderStorage(tmp_path), runtime=Runtime(data_dir=tmp_path), gpus_per_trial=1)
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
        ({"versions": {**versions(), "torch": "2.0.1"}}, ", where the driver has torch 2.0.1: install the same"),
        ({"versions": {**versions(), "this project's code": "0"}}, "where the driver has this project's code 0"),
        ({"marker": "another"}, "does not see the storage: "),
        ({"corpus": "no-such"}, "has not got what trials read: "),
        ({"corpus_sha256": "2" * 64}, "has another text as the corpus text than the driver"),
        ({"texts": ("ptb",), "benchmarks": True, "benchmarks_dir": "/dev/null"}, "has not got what trials read: "),
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
    assert f"has 0.5 GB free in {in_order.storage}, and checkpoints need at least 1: free space there." in disk
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
        options, "marker", [WordPairsConfig(seed=0, text="ptb")], measurements=("word_similarity@1",)
    )
    assert (pairs.corpus, pairs.texts, pairs.benchmarks) == (None, ("ptb",), True)
    nothing = cluster_question(options, "marker", [])
    assert (nothing.texts, nothing.benchmarks) == ((), False)


def test_a_machine_that_joins_late_is_refused_for_gpus_that_torch_cannot_use(
    in_order: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = LateMachines(in_order.model_dump_json(), others=frozenset({"first"}))
    for machine, gpus, refused in (("late", 3.0, True), ("later", 2.0, False), ("first", 3.0, False)):
        node = {"NodeID": machine, "NodeManagerAddress": "10.0.0.2", "Resources": {"GPU": gpus}}
        context = SimpleNamespace(get_node_id=lambda machine=machine: machine)
        monkeypatch.setattr(machines, "nodes", lambda node=node: [node | {"NodeID": "another"}, node])
        monkeypatch.setattr(ray, "get_runtime_context", lambda context=context: context)
        with pytest.raises(UnfitMachineError, match="3 GPUs for Ray and 2 that") if refused else nullcontext():
            late.refuse_unfit()


def test_a_torch_that_cannot_use_gpus_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for probe, sentence in (
        ((0, "2.13.0+cpu", None), r"the installed torch 2.13.0\+cpu has no CUDA support: install a build of torch"),
        ((0, "2.13.0", "13.0"), r"torch 2.13.0 finds none .* new enough for CUDA 13.0; or train on CPUs"),
    ):
        monkeypatch.setattr(preflight, "probe_gpus", lambda probe=probe: probe)
        with pytest.raises(UserError, match=f"A trial asks for a GPU, and {sentence}"):
            check_torch_gpu()


def test_torch_is_probed_in_another_process() -> None:
    usable, version, _ = preflight.probe_gpus()
    assert version == importlib.metadata.version("torch")
    assert usable == 0 or Path("/dev/nvidiactl").exists()


def test_a_probe_is_spared_ctrl_c_and_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "GPU_PROBE", "import json, os; print(json.dumps([os.getpgid(0), '', None]))")
    assert preflight.probe_gpus()[0] != os.getpgid(0)
    monkeypatch.setattr(preflight, "GPU_PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(preflight, "PROBE_S", 0.1)
    with pytest.raises(UserError, match=r"torch cannot be used \(no answer within 0.1 s\)"):
        check_torch_gpu()
