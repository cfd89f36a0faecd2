from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.schedule.packs import pack, pack_size
from orchestrator.store import PlannedTrial
from tests.orchestrator.schedule.numbered_trials import IDS, PLAN
from tests.support.store_rows import plan
from trainables.config import (
    GssConfig,
    MonotoneNnConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TrialConfig,
)


@given(trials=st.integers(0, 60), slots=st.integers(1, 9), seconds=st.floats(1e-4, 1e5))
def test_every_trial_has_one_pack(trials: int, slots: int, seconds: float) -> None:
    packs = pack(plan(trials), slots=slots, seconds_per_trial=seconds)
    assert all(part.trials for part in packs)
    assert [trial for part in packs for trial in part.trials] == plan(trials)


@pytest.mark.parametrize(
    ("trials", "slots", "seconds", "size"),
    [
        (72, 2, 16.0, 1),  # the quick grid runs trials one by one
        (1000, 2, 0.001, 100),  # packs have maximum size if nothing needs time
        (72, 2, 2.5, 4),  # a pack holds 10 s of work
        (72, 8, 2.0, 3),  # at least four packs for each of eight slots
        (50, 2, 0.1, 10),  # 5 s in all: a pack never has less than a second
        (3, 1, 1e6, 1),
        (50, 1, float("inf"), 1),
    ],
)
def test_packs_last_ten_seconds(trials: int, slots: int, seconds: float, size: int) -> None:
    assert pack_size(trials, slots=slots, seconds_per_trial=seconds) == size


def layers(*outputs: OutputLayerConfig, width: int) -> list[PlannedTrial]:
    config = TrialConfig.model_validate(PLAN[0].config)
    model = config.model.model_copy(update={"embedding_width": width, "context_width": width})
    configs = [
        config.model_copy(update={"output_layer": output, "model": model}) for output in outputs
    ]
    return [PlannedTrial.of(layer, layer.output_layer.name) for layer in configs]


def test_similar_trials_share_a_pack() -> None:
    wide = layers(SoftmaxConfig(), GssConfig(c=1, k=2), MosConfig(), MonotoneNnConfig(), width=400)
    narrow = layers(SoftmaxConfig(), GssConfig(c=1, k=2), width=200)
    packs = pack([*wide, *narrow], slots=1, seconds_per_trial=100.0, at_once=lambda _: 16)
    names = [([trial.name for trial in part.trials], part.at_once) for part in packs]
    assert names == [(["softmax", "gss", "mos"], 3), (["softmax", "gss"], 2), (["monotone_nn"], 1)]


def test_every_slot_gets_trials() -> None:
    packs = pack(PLAN, slots=3, seconds_per_trial=100.0, at_once=lambda _: 16)
    assert [(len(part.trials), part.at_once) for part in packs] == [(2, 2)] * 3
    packs = pack(
        PLAN, slots=1, seconds_per_trial=100.0, at_once=lambda key: 1 + 3 * (key != IDS[0])
    )
    assert [len(part.trials) for part in packs] == [4, 1, 1]
    assert packs[-1].trials == (PLAN[0],)
