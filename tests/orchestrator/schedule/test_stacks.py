"""Packs of trials that are trained as one: which come together, what a death means for them, and a
run over Ray."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from orchestrator.schedule import trials_run
from orchestrator.schedule.packs import stacked
from orchestrator.schedule.trials_run import run_trials
from orchestrator.store.records import PlannedTrial
from orchestrator.store.store import Store
from orchestrator.worker.messages import Ending, EndingKind, TrialEvent
from tests.orchestrator.schedule.numbered_trials import (
    DEATH,
    IDS,
    KEY,
    PLAN,
    Sweep,
    done,
    started,
    states,
)
from tests.support.notes import Heard
from tests.support.scripted_trials import planned, work_in
from tests.support.smoke_trials import smoke_trial
from trainables.config import (
    GssConfig,
    MonotoneNnConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TrialConfig,
)
from trainables.runtime import Runtime
from trainables.trial.trial_run import run_trial
from trainables.trial_folder import EpochMetrics, TrialOutcome


def layers(*outputs: OutputLayerConfig, width: int = 400) -> list[PlannedTrial]:
    (first,) = planned([1])
    config = TrialConfig.model_validate(first.config)
    model = config.model.model_copy(update={"embedding_width": width, "context_width": width})
    configs = [
        config.model_copy(update={"output_layer": output, "model": model}) for output in outputs
    ]
    return [PlannedTrial.of(each, each.output_layer.name) for each in configs]


def test_what_has_one_shape_comes_together_and_no_slot_stays_empty() -> None:
    wide = layers(SoftmaxConfig(), GssConfig(c=1, k=2), MosConfig(), MonotoneNnConfig())
    narrow = layers(SoftmaxConfig(), GssConfig(c=1, k=2), width=200)
    packs, alone = stacked([*wide, *narrow], lambda _: 16, slots=1)
    assert [[trial.name for trial in pack.trials] for pack in packs] == [
        ["softmax", "gss", "mos"],
        ["softmax", "gss"],
    ]
    assert [trial.name for trial in alone] == ["monotone_nn"]
    packs, _ = stacked(PLAN, lambda _: 16, slots=3)
    assert [(len(pack.trials), pack.stack) for pack in packs] == [(2, 2)] * 3
    packs, alone = stacked(PLAN, lambda trial_id: 1 if trial_id == IDS[0] else 4, slots=1)
    assert ([len(pack.trials) for pack in packs], alone) == ([4, 1], [PLAN[0]])


@pytest.fixture
def registered(store: Store) -> None:
    """The plan is in the store."""
    store.register(KEY, PLAN)


def hand_out(sweep: Sweep, key: str) -> list[int]:
    """The next pack, of which its worker takes up every trial."""
    numbers = sweep.pack(key)
    sweep.events(key, [started(number) for number in numbers])
    return numbers


@pytest.mark.usefixtures("registered")
def test_after_a_death_trials_go_on_in_halves_until_the_one_at_fault_fails_alone(
    store: Store, tmp_path: Path
) -> None:
    """Trial 2 kills whatever process it is in; all others come to their end."""
    sweep = Sweep(store, tmp_path, slots=1, stack=8)
    sizes = []
    for key in map(str, range(20)):
        if sweep.finished:
            break
        numbers = hand_out(sweep, key)
        sizes.append(len(numbers))
        if 2 not in numbers:
            sweep.events(key, [done(number) for number in numbers])
        sweep.ended(key, DEATH if 2 in numbers else None)
    assert sweep.finished
    assert states(store) == ["done", "done", "failed", "done", "done", "done"]
    assert max(sizes) == 6 and sizes.count(1) >= 2
    assert {attempt.cause for attempt in store.attempts(IDS[2])[:-1]} == {DEATH.cause}
    assert store.trials(KEY)[2].cause == f"{DEATH.cause} (in each of 2 attempts)"


@pytest.mark.usefixtures("registered")
def test_one_of_a_stack_is_stopped_and_its_mates_go_on(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, slots=1, stack=8)
    assert len(hand_out(sweep, "a")) == 6
    assert sweep.leaving == {}
    sweep.stop([IDS[1]])
    assert (sweep.leaving, sweep.give_up()) == ({"a": {IDS[1]}}, [])
    sweep.events("a", [TrialEvent(trial_id=IDS[1], left=True)])
    assert sweep.leaving == {}
    assert states(store) == ["running", "planned", *["running"] * 4]
    assert sweep.heard.stopped_names == ["seed=1"]
    sweep.events("a", [done(number) for number in (0, 2, 3)])
    sweep.stop(IDS[4:])
    assert (sweep.leaving, sweep.give_up()) == ({}, ["a"]), "none of them goes on"
    sweep.ended("a", DEATH)
    assert sweep.pack("b") == [] and sweep.finished
    assert states(store) == ["done", "planned", "done", "done", "planned", "planned"]


@pytest.mark.usefixtures("registered")
def test_one_that_dies_before_it_could_leave_is_not_tried_again(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path, slots=1, stack=8)
    hand_out(sweep, "a")
    sweep.stop([IDS[1]])
    sweep.ended("a", DEATH)
    assert sorted(sweep.run("b") + sweep.run("c")) == [0, 2, 3, 4, 5]
    assert sweep.finished and states(store)[1] == "planned"


class Searches:
    """A search that has three trials at a time."""

    def more(self, busy: Collection[str]) -> list[PlannedTrial]:
        return [trial for trial in PLAN[:3] if trial.trial_id not in busy]

    def is_searched(self, trial: PlannedTrial) -> bool:
        return trial in PLAN[:3]

    def stop_above(self, trial: PlannedTrial) -> Mapping[int, float]:
        return {1: float(PLAN.index(trial))}


@pytest.mark.parametrize(("stack", "sizes"), [(8, [3]), (2, [2, 1]), (1, [1, 1, 1])])
@pytest.mark.usefixtures("registered")
def test_what_a_search_hands_out_at_a_time_is_trained_as_one_and_judged_one_by_one(
    stack: int, sizes: list[int], store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path, trials=0, slots=1, stack=stack, source=Searches())
    for number, size in enumerate(sizes):
        pack = sweep.next_pack(str(number))
        assert pack is not None and (len(pack.trials), pack.stack) == (size, min(stack, 3))
        assert pack.stop_above == {
            trial.trial_id: {1: float(PLAN.index(trial))} for trial in pack.trials
        }
        assert sweep.next_pack("another") is None, "no searched trial waits ready for a worker"
        numbers = [PLAN.index(trial) for trial in pack.trials]
        pruned = [TrialOutcome(trial_id=IDS[n], state="pruned", cause="poor") for n in numbers]
        sweep.events(str(number), map(started, numbers))
        sweep.events(
            str(number),
            [TrialEvent(trial_id=outcome.trial_id, outcome=outcome) for outcome in pruned],
        )
        sweep.ended(str(number), None)
    assert states(store)[:3] == ["pruned"] * 3


@pytest.mark.usefixtures("registered")
def test_a_machine_that_leaves_splits_no_stack(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, slots=1, stack=8)
    assert len(hand_out(sweep, "a")) == 6
    sweep.ended("a", Ending(EndingKind.MACHINE_LEFT))
    assert len(hand_out(sweep, "b")) == 6


@pytest.mark.usefixtures("registered")
def test_one_of_a_stack_ends_and_its_mates_are_the_ones_tried_again(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path, slots=1, stack=8)
    hand_out(sweep, "a")
    sweep.events("a", [done(3)])
    sweep.ended("a", DEATH)
    assert states(store)[3] == "done"
    assert sorted(sweep.pack("b") + sweep.pack("c")) == [0, 1, 2, 4, 5]


@pytest.mark.usefixtures("one_ray")
def test_a_run_over_ray_trains_stacks_and_gives_what_trials_give_alone(
    store: Store, tmp_path: Path
) -> None:
    configs = [smoke_trial(seed=seed, **{"training.epochs": 2}) for seed in (1, 2)]
    configs += [config.model_copy(update={"output_layer": SoftmaxConfig()}) for config in configs]
    plan = [
        PlannedTrial.of(config, f"{config.output_layer.name} {config.seed}") for config in configs
    ]
    heard = Heard()
    work = work_in(
        tmp_path, store, stack=4, measurements=("perplexity@1",), listener=heard, study=KEY
    )
    store.register(KEY, plan)
    run_trials(plan, work)
    assert [row.state for row in store.trials(KEY)] == ["done"] * 4
    assert sorted(heard.starts) == sorted(trial.name for trial in plan)
    for config, row in zip(configs, store.results(KEY), strict=True):
        alone = run_trial(config, directory=tmp_path / "alone" / config.trial_id, runtime=Runtime())
        expected = alone.measurements["perplexity@1"]["test_perplexity"]
        assert row["metrics"]["test_perplexity"] == pytest.approx(expected, rel=1e-3)
        assert len(store.epochs(config.trial_id)) == 2
        assert json.loads(
            (
                tmp_path / "trials" / config.trial_id[:2] / config.trial_id / "config.json"
            ).read_text()
        )


@pytest.mark.usefixtures("one_ray")
def test_over_ray_one_of_a_stack_is_stopped_and_its_mate_goes_on_in_the_same_process(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole sweep is stopped once the mate has ended an epoch without it. The machine has one
    slot."""
    monkeypatch.setattr(trials_run, "slots_of", lambda *_: 1)
    stopped, mate = (smoke_trial(seed=seed, **{"training.epochs": 5000}) for seed in (1, 2))
    plan = [PlannedTrial.of(stopped, "stopped"), PlannedTrial.of(mate, "mate")]
    store.register(KEY, plan)
    epochs = list[int]()

    class Stops(Heard):
        def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
            if trial_id == stopped.trial_id and metrics.epoch == 1:
                store.ask_to_stop(trial_id)
            if trial_id == mate.trial_id:
                epochs.append(metrics.epoch)
                if self.stopped_names:
                    store.ask_to_stop(KEY)

    heard = Stops()
    work = work_in(tmp_path, store, stack=2, listener=heard, study=KEY)
    assert run_trials(plan, work).interrupted
    assert heard.stopped_names == ["stopped"] and sorted(heard.starts) == ["mate", "stopped"]
    assert epochs == list(range(1, len(epochs) + 1)) and len(store.attempts(mate.trial_id)) == 1
    assert [row.state for row in store.trials(KEY)] == ["planned"] * 2
