from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cluster import RunOptions
from orchestrator.forecast import estimate
from orchestrator.schedule.placement import STEP_BYTES, Placement
from orchestrator.storage import FolderStorage
from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from trainables.config import CorpusConfig, MosConfig, SoftmaxConfig
from trainables.corpora import PUBLISHED_CORPORA

PTB = PUBLISHED_CORPORA["ptb"]
TEXT = CorpusConfig(name="ptb", sha256=PTB.sha256)
SOFTMAX, MOS = awd_lstm(TEXT, SoftmaxConfig()), awd_lstm(TEXT, MosConfig())
LARGE, SMALL = {"CPU": 8.0, "memory": 1e12}, {"CPU": 8.0, "memory": 1e6}
WITHOUT_CORES = {"CPU": 0.0, "memory": 1e13}


@pytest.fixture
def options(tmp_path: Path) -> RunOptions:
    return RunOptions(storage=FolderStorage(tmp_path))


def test_request_shrinks_with_the_cluster(options: RunOptions) -> None:
    placement = Placement(options, PTB, {"a": LARGE, "b": SMALL, "head": WITHOUT_CORES})
    request = placement.request([MOS])
    assert (placement.slots, request.memory_bytes > 10**6, placement.fits(request)) == (
        16,
        True,
        True,
    )
    placement.update({"b": SMALL, "head": WITHOUT_CORES})
    assert not placement.fits(request)
    assert placement.request([MOS]).memory_bytes == 10**6
    assert placement.fits(placement.request([MOS]))
    placement.update({"head": WITHOUT_CORES})
    assert placement.slots is None
    assert placement.fits(request), "the large machine may return"


def test_unfit_machine_gets_nothing(options: RunOptions) -> None:
    placement = Placement(options, PTB, {"a": LARGE, "b": SMALL})
    placement.update({"a": LARGE, "b": SMALL}, unfit=["a"])
    request = placement.request([MOS])
    assert (placement.slots, request.excluded_machines, request.memory_bytes) == (8, ("a",), 10**6)


def test_bad_machine_is_the_last_resort(options: RunOptions) -> None:
    placement = Placement(options, PTB, {"a": LARGE, "b": SMALL, "head": WITHOUT_CORES})
    earlier_request = placement.request([MOS])
    placement.update({"a": LARGE, "b": SMALL, "head": WITHOUT_CORES}, bad=["b"])
    request = placement.request([MOS])
    assert (placement.slots, request.excluded_machines) == (8, ("b",))
    assert placement.fits(request) and not placement.fits(earlier_request)
    placement.update({"b": SMALL, "head": WITHOUT_CORES}, bad=["b"])
    request = placement.request([MOS])
    assert (placement.slots, request.excluded_machines) == (8, ())
    placement.update({"a": LARGE, "b": SMALL}, unfit=["a"], bad=["b"])
    assert (placement.slots, placement.excluded) == (8, {"a"}), "an unfit machine is never used"


def test_single_pack_requests_most_memory(options: RunOptions) -> None:
    placement = Placement(options, None, {"a": LARGE, "b": SMALL})
    assert placement.request([SOFTMAX], alone=True).memory_bytes == LARGE["memory"]
    assert placement.request([SOFTMAX]).memory_bytes == 0


def test_pack_requests_largest_trials_memory(options: RunOptions) -> None:
    placement = Placement(options, PTB, {"a": {"CPU": 1.0, "memory": 1e12}})
    quick = apply_scale(SCALES["quick"], SOFTMAX)
    quick_bytes, mos_bytes, pair_bytes = (
        placement.request(pack).memory_bytes for pack in ([quick], [MOS], [quick, MOS])
    )
    assert STEP_BYTES < quick_bytes < mos_bytes == pair_bytes
    assert 0 <= mos_bytes - estimate(MOS, PTB).memory_gb * 1e9 < STEP_BYTES
