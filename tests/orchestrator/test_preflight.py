"""What is said of a machine that could not run a sweep's trials: one sentence a fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator import preflight
from orchestrator.estimates import estimate
from orchestrator.execution import ScheduleOptions
from orchestrator.packs import Pack
from orchestrator.placement import STEP_BYTES, MemoryNeeds, gpu_gb_of
from orchestrator.preflight import Findings, faults, look, question, smallest_gpus, versions
from orchestrator.store.records import PlannedTrial
from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from trainables.any_config import AnyConfig
from trainables.config import CorpusConfig, MosConfig, SoftmaxConfig
from trainables.corpora import CorpusIdentity
from trainables.runtime import Runtime

PTB = CorpusIdentity(
    name="ptb",
    sha256="1" * 64,
    train_tokens=929_589,
    valid_tokens=73_760,
    test_tokens=82_430,
    vocabulary_size=10_000,
)
CONTENT = CorpusConfig(name="ptb", sha256="1" * 64)
SOFTMAX, MOS = (awd_lstm(CONTENT, layer) for layer in (SoftmaxConfig(), MosConfig()))


def answer(**changes: Any) -> Findings:
    sound = Findings(
        host="second",
        versions=versions(),
        storage_problem=None,
        free_bytes=10**11,
        corpus_sha256=PTB.sha256,
        corpus_problem=None,
        gpu_gb=(16.0, 80.0),
    )
    return sound.model_copy(update=changes)


def plan_of(config: AnyConfig) -> PlannedTrial:
    return PlannedTrial(trial_id=config.trial_id, name="", config=config.model_dump(mode="json"))


def said(machine: Findings | str, gpu_gb: float | None = 10.0) -> list[str]:
    return faults({"10.0.0.2": machine}, {"10.0.0.2": 2.0}, Path("/shared"), PTB, gpu_gb)


def test_a_machine_in_order_has_no_fault() -> None:
    assert said(answer()) == []
    assert said(answer(gpu_gb=()), gpu_gb=None) == []


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        ("No module named 'orchestrator'", "cannot run this project (No module named 'orchestrator')"),
        (answer(versions={**versions(), "torch": "2.0.1"}), "has torch 2.0.1, where this one has torch "),
        (answer(versions={**versions(), "this project's code": "0"}), "has this project's code 0, where this one has"),
        (answer(storage_problem="/shared is another folder"), "does not see the storage: /shared is another folder."),
        (answer(free_bytes=5 * 10**8), "has 0.5 GB free in /shared"),
        (answer(corpus_problem="there is no network."), "has not got the corpus: there is no network."),
        (answer(corpus_sha256="2" * 64), "has another text as the corpus ptb"),
        (answer(gpu_gb=(80.0,)), "has 2 GPUs for Ray and 1 that torch can use"),
        (answer(gpu_gb=(6.0, 80.0)), "need 10.0 GB of a whole one, and the largest, of 10.0.0.2, has 6.0 GB"),
    ],
)
def test_each_fault_is_one_sentence_with_the_machine_and_the_cure(machine: Findings | str, sentence: str) -> None:
    (fault,) = said(machine)
    assert sentence in fault
    assert "10.0.0.2" in fault
    assert ":" in fault
    assert fault.endswith(".")


def test_gpus_of_several_sizes_are_no_fault_as_long_as_one_machine_has_large_ones() -> None:
    machines = {
        "10.0.0.2": answer(gpu_gb=(6.0, 80.0)),
        "10.0.0.3": answer(gpu_gb=(16.0,)),
        "10.0.0.4": answer(gpu_gb=()),
    }
    counted = {"10.0.0.2": 2.0, "10.0.0.3": 1.0}
    assert faults(machines, counted, Path("/shared"), PTB, 16.0) == []
    assert len(faults(machines, counted, Path("/shared"), PTB, 16.1)) == 1
    assert smallest_gpus(machines, counted) == {"10.0.0.2": 6.0, "10.0.0.3": 16.0}


def test_a_trial_is_kept_off_gpus_that_are_too_small_and_else_tried_on_the_largest(tmp_path: Path) -> None:
    options = ScheduleOptions(
        storage=tmp_path, runtime=Runtime(), measurements=(), seconds_per_trial=1, corpus=PTB, gpus_per_trial=0.5
    )
    quick = apply_scale(SCALES["quick"], SOFTMAX)
    little, much = (2 * estimate(config, PTB).gpu_memory_gb for config in (quick, MOS))
    sizes = {"small": little, "middle": (little + much) / 2, "large": much}
    machines = {
        "small": {"CPU": 8.0, "GPU": 1.0},
        "middle": {"CPU": 8.0, "GPU": 2.0},
        "large": {"CPU": 8.0, "GPU": 1.0},
    }
    needs = MemoryNeeds(options, machines, sizes)
    assert needs.too_small([quick]) == []
    assert needs.too_small([quick, MOS]) == ["middle", "small"]
    packs = [Pack((planned,)) for planned in map(plan_of, (quick, MOS))]
    assert [needs.barred(pack) for pack in packs] == [0, 6]
    assert MemoryNeeds(options, machines, {"small": 1.0, "middle": 2.0}).too_small([MOS]) == ["small"]
    assert MemoryNeeds(options, machines, {"large": 1.0}).too_small([MOS]) == []


def test_this_machine_looks_at_itself(tmp_path: Path) -> None:
    options = ScheduleOptions(
        storage=tmp_path, runtime=Runtime(data_dir=tmp_path), measurements=(), seconds_per_trial=1, corpus=PTB
    )
    asked = question(options, "marker", gpus=False)
    found = Findings.model_validate_json(look(asked.model_dump_json().replace('"ptb"', '"no-such-corpus"')))
    assert found.versions == preflight.versions()
    assert found.storage_problem is not None
    (tmp_path / "marker").touch()
    assert Findings.model_validate_json(look(asked.model_dump_json())).storage_problem is None
    assert found.free_bytes is not None
    assert found.corpus_sha256 is None
    assert found.corpus_problem is not None


def test_a_pack_asks_for_the_memory_of_its_largest_trial_and_never_for_more_than_there_is(tmp_path: Path) -> None:
    options = ScheduleOptions(
        storage=tmp_path, runtime=Runtime(), measurements=(), seconds_per_trial=1, corpus=PTB, gpus_per_trial=0.25
    )
    quick = apply_scale(SCALES["quick"], SOFTMAX)
    large = MemoryNeeds(options, {"a": {"memory": 1e9}, "b": {"memory": 1e12}}, {})
    assert STEP_BYTES < large.of([quick]) < large.of([MOS]) == large.of([quick, MOS])
    assert 0 <= large.of([MOS]) - estimate(MOS, PTB).memory_gb * 1e9 < STEP_BYTES
    assert MemoryNeeds(options, {"a": {"memory": 1e6}}, {}).of([MOS]) == 10**6


def test_a_share_of_a_gpu_is_all_that_a_trial_gets(tmp_path: Path) -> None:
    options = ScheduleOptions(
        storage=tmp_path, runtime=Runtime(), measurements=(), seconds_per_trial=1, corpus=PTB, gpus_per_trial=0.25
    )
    trials = list(map(plan_of, (SOFTMAX, MOS)))
    softmax, mos = (estimate(config, PTB).gpu_memory_gb for config in (SOFTMAX, MOS))
    assert gpu_gb_of(trials, options) == pytest.approx(4 * max(softmax, mos))
    assert gpu_gb_of(trials, replace(options, gpus_per_trial=0)) is None
