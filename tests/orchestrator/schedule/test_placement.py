"""What packs ask of machines, and what no machine can take any more."""

from __future__ import annotations

from pathlib import Path

from orchestrator.cluster.run_options import RunOptions
from orchestrator.forecast import estimate
from orchestrator.schedule.placement import STEP_BYTES, Placement
from orchestrator.storage.storage import FolderStorage
from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from trainables.config import CorpusConfig, MosConfig, SoftmaxConfig
from trainables.corpora import PUBLISHED_CORPORA

PTB = PUBLISHED_CORPORA["ptb"]
TEXT = CorpusConfig(name="ptb", sha256=PTB.sha256)
SOFTMAX, MOS = awd_lstm(TEXT, SoftmaxConfig()), awd_lstm(TEXT, MosConfig())


def test_what_no_machine_can_take_any_more_is_seen_and_asks_for_less_next_time(
    tmp_path: Path,
) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path))
    large, small = {"CPU": 8.0, "memory": 1e12}, {"CPU": 8.0, "memory": 1e6}
    without_cores = {"CPU": 0.0, "memory": 1e13}
    placement = Placement(options, PTB, {"a": large, "b": small, "head": without_cores})
    place = placement.place([MOS])
    assert (placement.slots, place.memory_bytes > 10**6, placement.has(place)) == (16, True, True)
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


def test_a_pack_that_has_to_be_alone_asks_for_all_of_the_machine_with_the_most_memory(
    tmp_path: Path,
) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path), gpus_per_trial=0.25)
    machines = {
        name: {"CPU": cores, "GPU": 1.0, "memory": 1e9 * cores}
        for name, cores in (("a", 4.0), ("b", 8.0))
    }
    placement = Placement(options, None, machines)
    place = placement.place([SOFTMAX], alone=True)
    assert (place.memory_bytes, place.whole, placement.has(place)) == (
        8 * 10**9,
        {"CPU": 8.0, "GPU": 1.0},
        True,
    )
    placement.update({"a": machines["a"]})
    assert not placement.has(place)
    assert placement.place([SOFTMAX], alone=True).whole == {"CPU": 4.0, "GPU": 1.0}
    assert placement.place([SOFTMAX]).whole == {}


def test_a_pack_asks_for_the_memory_of_its_largest_trial(tmp_path: Path) -> None:
    options = RunOptions(storage=FolderStorage(tmp_path), gpus_per_trial=0.25)
    placement = Placement(options, PTB, {"a": {"CPU": 1.0, "GPU": 1.0, "memory": 1e12}})
    quick = apply_scale(SCALES["quick"], SOFTMAX)
    quick_bytes, mos_bytes, both = (
        placement.place(pack).memory_bytes for pack in ([quick], [MOS], [quick, MOS])
    )
    assert STEP_BYTES < quick_bytes < mos_bytes == both
    assert 0 <= mos_bytes - estimate(MOS, PTB).memory_gb * 1e9 < STEP_BYTES
