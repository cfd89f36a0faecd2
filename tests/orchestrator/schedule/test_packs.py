"""Packs: every trial in exactly one, in order, of one shape, of a sensible size."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.schedule.packs import pack, pack_size, shapes
from orchestrator.store.records import PlannedTrial
from trainables.config import CorpusConfig, GssConfig, LanguageModelConfig, SoftmaxConfig, TrialConfig

CORPUS = CorpusConfig(name="none", sha256="0" * 64)


def trial(seed: int, width: int) -> PlannedTrial:
    config = {"seed": seed, "model": {"embedding_width": width}}
    return PlannedTrial(trial_id=f"{seed}", name=f"{seed}", config=config)


plans = st.lists(st.sampled_from([8, 16, 32]), max_size=60).map(
    lambda widths: [trial(seed, width) for seed, width in enumerate(widths)]
)


@given(plan=plans, slots=st.integers(1, 9), seconds=st.floats(1e-4, 1e5))
def test_every_trial_is_in_exactly_one_pack_of_its_shapes_and_order_is_kept(
    plan: list[PlannedTrial], slots: int, seconds: float
) -> None:
    packs = pack(plan, slots=slots, seconds_per_trial=seconds)
    assert Counter(trial.trial_id for part in packs for trial in part.trials) == Counter(t.trial_id for t in plan)
    for part in packs:
        positions = [int(trial.trial_id) for trial in part.trials]
        assert positions == sorted(positions)
        assert len({trial.config["model"]["embedding_width"] for trial in part.trials}) == 1
    firsts = [int(part.trials[0].trial_id) for part in packs]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize(
    ("trials", "slots", "seconds", "size"),
    [
        (72, 2, 16.0, 1),  # the quick grid: one by one
        (1000, 2, 0.001, 100),  # nothing to do: as large as packs get
        (72, 2, 2.5, 4),  # 10 s of work
        (72, 8, 2.0, 3),  # at least four packs for each of eight slots
        (50, 2, 0.1, 10),  # 5 s in all: never cut below a second
        (3, 1, 1e6, 1),
    ],
)
def test_packs_last_ten_seconds_unless_slots_would_run_dry(trials: int, slots: int, seconds: float, size: int) -> None:
    assert pack_size(trials, slots=slots, seconds_per_trial=seconds) == size


def test_c_and_k_and_the_seed_change_no_shape_and_the_layer_and_widths_do() -> None:
    def key(config: TrialConfig) -> str:
        return shapes(config.model_dump(mode="json"))

    gss = TrialConfig(seed=1, corpus=CORPUS, output_layer=GssConfig(c=0.5, k=2.0))
    same = TrialConfig(seed=2, corpus=CORPUS, output_layer=GssConfig(c=-1.0, k=3.0))
    softmax = TrialConfig(seed=1, corpus=CORPUS, output_layer=SoftmaxConfig())
    wider = gss.model_copy(update={"model": LanguageModelConfig(hidden_width=7)})
    assert key(gss) == key(same)
    assert len({key(gss), key(softmax), key(wider)}) == 3
