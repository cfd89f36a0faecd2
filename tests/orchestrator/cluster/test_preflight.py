"""What is said of a machine that could not run a sweep's trials: one sentence a fault."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray

from orchestrator.cluster.machine_faults import faults
from orchestrator.cluster.preflight import Findings, Question, look, question, versions
from orchestrator.cluster.run_options import RunOptions
from orchestrator.plan.estimates import estimate
from orchestrator.schedule import tune
from orchestrator.schedule.placement import STEP_BYTES, Placement
from orchestrator.schedule.tune import LateMachines, UnfitMachineError
from orchestrator.storage.storage import FolderStorage
from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from tests.support.small_disk import change, small_disk
from trainables.config import CorpusConfig, MosConfig, SoftmaxConfig, WordPairsConfig
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
MEMORY = {"a": 1e9, "b": 1e12}
ASKED = Question(
    versions=versions(),
    storage="/shared",
    marker="marker",
    corpus="ptb",
    corpus_sha256=PTB.sha256,
    data_dir=None,
    texts=(),
    benchmarks=False,
    benchmarks_dir=None,
    gpus=True,
)
SOFTMAX, MOS = (awd_lstm(CONTENT, layer) for layer in (SoftmaxConfig(), MosConfig()))


def answer(**changes: Any) -> Findings:
    sound = Findings(
        host="second",
        versions=versions(),
        storage_problem=None,
        written_to="/shared",
        free_bytes=10**11,
        corpus_sha256=PTB.sha256,
        text_problem=None,
        gpus=2,
    )
    return sound.model_copy(update=changes)


def said(machine: Findings | str, *, gpus: bool = True) -> list[str]:
    return faults(ASKED.model_copy(update={"gpus": gpus}), {"10.0.0.2": machine}, {"10.0.0.2": 2.0})


def test_a_machine_in_order_has_no_fault() -> None:
    assert said(answer()) == []
    assert said(answer(gpus=0), gpus=False) == []


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        ("No module named 'orchestrator'", "cannot run this project (No module named 'orchestrator')"),
        (answer(versions={**versions(), "torch": "2.0.1"}), "has torch 2.0.1, where the driver has torch "),
        (
            answer(versions={**versions(), "this project's code": "0"}),
            "has this project's code 0, where the driver",
        ),
        (answer(storage_problem="/shared is another folder"), "does not see the storage: /shared is another folder."),
        (answer(free_bytes=5 * 10**8), "has 0.5 GB free in /shared"),
        (answer(text_problem="there is no network."), "has not got what trials read: there is no network."),
        (answer(corpus_sha256="2" * 64), "has another text as the corpus ptb"),
        (answer(gpus=1), "has 2 GPUs for Ray and 1 that torch can use"),
    ],
)
def test_each_fault_is_one_sentence_with_the_machine_and_the_cure(machine: Findings | str, sentence: str) -> None:
    (fault,) = said(machine)
    assert sentence in fault
    assert "10.0.0.2" in fault
    assert ":" in fault
    assert fault.endswith(".")


def test_a_machine_that_joins_late_is_refused_for_gpus_that_torch_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    late = LateMachines(ASKED, asked=frozenset({"asked before"}))
    node = {"NodeID": "late", "NodeManagerAddress": "10.0.0.2", "Resources": {"CPU": 8.0, "GPU": 2.0}}
    monkeypatch.setattr(tune, "nodes", lambda: [node | {"NodeID": "asked before"}, node])
    for machine, usable, refused in (("late", 0, True), ("late", 2, False), ("asked before", 0, False)):
        context = SimpleNamespace(get_node_id=lambda machine=machine: machine)
        monkeypatch.setattr(ray, "get_runtime_context", lambda context=context: context)
        monkeypatch.setattr(tune, "_this_machine", lambda _, usable=usable: answer(gpus=usable))
        with pytest.raises(UnfitMachineError, match="2 GPUs for Ray and 0 that") if refused else nullcontext():
            late.refuse_unfit()


def test_what_no_machine_can_take_any_more_is_known_and_asks_for_less_next_time(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path))
    large, small = {"CPU": 8.0, "memory": 1e12}, {"CPU": 8.0, "memory": 1e6}
    without_cores = {"CPU": 0.0, "memory": 1e13}
    placement = Placement(options, PTB, {"a": large, "b": small, "head": without_cores})
    assert (placement.slots, placement.place([MOS]).memory_bytes > 10**6) == (16, True)
    place = placement.place([MOS])
    assert placement.has(place)
    placement.update({"b": small, "head": without_cores})
    assert not placement.has(place)
    assert placement.place([MOS]).memory_bytes == 10**6
    assert placement.has(placement.place([MOS]))
    placement.update({"head": without_cores})
    assert placement.slots is None
    assert placement.has(place), "it may come back"
    placement.update({"a": large, "b": small})
    placement.keep_off("a")
    placement.update({"a": large, "b": small})
    assert placement.slots == 8
    assert (placement.place([MOS]).not_on, placement.place([MOS]).memory_bytes) == (("a",), 10**6)


def test_this_machine_looks_at_itself(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path), runtime=Runtime(data_dir=tmp_path))
    asked = question(options, "marker", [], corpus=PTB)
    assert (asked.corpus, asked.gpus, asked.benchmarks) == ("ptb", False, False)
    asked = asked.model_copy(update={"corpus": "no-such"})
    found = Findings.model_validate_json(look(asked.model_dump_json()))
    assert found.versions == versions()
    assert found.free_bytes is not None
    assert found.corpus_sha256 is None
    assert found.text_problem is not None
    assert found.storage_problem is not None
    (tmp_path / "marker").touch()
    assert Findings.model_validate_json(look(asked.model_dump_json())).storage_problem is None
    assert [path.name for path in tmp_path.iterdir()] == ["marker"]


def test_a_storage_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path / "disk"))
    with small_disk(tmp_path / "disk", kib=1024) as disk:
        (disk / "marker").touch()
        change(disk, "ro")
        found = Findings.model_validate_json(look(question(options, "marker", []).model_dump_json()))
    assert "cannot be written to there (Read-only file system)" in str(found.storage_problem)


def test_everything_that_trials_read_is_asked_for(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path), runtime=Runtime(benchmarks_dir=tmp_path))
    (tmp_path / "marker").touch()
    asked = question(options, "marker", [WordPairsConfig(seed=0, text="ptb")], measurements=("word_similarity@1",))
    assert (asked.corpus, asked.texts, asked.benchmarks) == (None, ("ptb",), True)
    assert question(options, "marker", []).texts == ()
    of_it = asked.model_copy(update={"benchmarks_dir": str(tmp_path / "none" / "such")})
    (tmp_path / "none").write_text("a file where a folder would be")
    assert str(tmp_path / "none") in str(Findings.model_validate_json(look(of_it.model_dump_json())).text_problem)
    without = of_it.model_copy(update={"benchmarks": False, "texts": ()})
    assert Findings.model_validate_json(look(without.model_dump_json())).text_problem is None


def test_a_pack_asks_for_the_memory_of_its_largest_trial_and_never_for_more_than_there_is(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path), gpus_per_trial=0.25)
    quick = apply_scale(SCALES["quick"], SOFTMAX)
    large = Placement(options, PTB, {name: {"CPU": 1.0, "GPU": 1.0, "memory": size} for name, size in MEMORY.items()})
    quick_bytes, mos_bytes, both = (large.place(configs).memory_bytes for configs in ([quick], [MOS], [quick, MOS]))
    assert STEP_BYTES < quick_bytes < mos_bytes == both
    assert 0 <= mos_bytes - estimate(MOS, PTB).memory_gb * 1e9 < STEP_BYTES
    little = Placement(options, PTB, {"a": {"CPU": 1.0, "GPU": 1.0, "memory": 1e6}})
    assert little.place([MOS]).memory_bytes == 10**6
