from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.schedule import run_trials, trials_run
from orchestrator.store import PlannedTrial, Store
from orchestrator.worker import Ending, EndingKind, TrialEvent
from orchestrator.worker.messages import ORDERLY_END
from tests.orchestrator.schedule.numbered_trials import (
    DEATH,
    IDS,
    KEY,
    PLAN,
    Searches,
    Sweep,
    done,
    started,
    states,
)
from tests.support.notes import RecordingListener
from tests.support.scripted_trials import work_in
from tests.support.smoke_trials import smoke_trial
from trainables.trial_folder import Epoch, TrialOutcome


@pytest.fixture
def sweep(store: Store, tmp_path: Path) -> Sweep:
    return Sweep(store, tmp_path, slots=1, trials_at_once=8)


def hand_out(sweep: Sweep, key: str) -> list[int]:
    numbers = sweep.pack(key)
    sweep.process_events(key, [started(number) for number in numbers])
    return numbers


def test_pack_is_halved_after_a_death(sweep: Sweep, store: Store) -> None:
    """Trial 2 kills any process that runs it."""
    sizes = []
    for key in map(str, range(20)):
        if sweep.finished:
            break
        numbers = hand_out(sweep, key)
        sizes.append(len(numbers))
        if 2 not in numbers:
            sweep.process_events(key, [done(number) for number in numbers])
        sweep.end_pack(key, DEATH if 2 in numbers else ORDERLY_END)
    assert sweep.finished
    assert states(store) == ["done", "done", "failed", "done", "done", "done"]
    assert max(sizes) == 6 and sizes.count(1) >= 2
    assert {attempt.cause for attempt in store.attempts(IDS[2])[:-1]} == {DEATH.cause}
    assert store.trials(KEY)[2].cause == f"{DEATH.cause} (in each of 2 attempts)"


def test_stopped_trial_leaves_others_running(sweep: Sweep, store: Store) -> None:
    assert len(hand_out(sweep, "a")) == 6
    sweep.process_events("a", [done(0)])
    sweep.stop([IDS[1]])
    assert sweep.give_up() == ["a"]
    sweep.end_pack("a", DEATH)
    assert sweep.run("b") == [2, 3, 4, 5] and sweep.finished
    assert sweep.listener.stopped_names == ["seed=1"]
    assert states(store) == ["done", "planned", *["done"] * 4]


def test_dead_stopped_trial_is_not_retried(sweep: Sweep, store: Store) -> None:
    hand_out(sweep, "a")
    sweep.stop([IDS[1]])
    sweep.end_pack("a", DEATH)
    assert sorted(sweep.run("b") + sweep.run("c")) == [0, 2, 3, 4, 5]
    assert sweep.finished and states(store)[1] == "planned"


def test_lost_machine_halves_nothing(sweep: Sweep) -> None:
    assert len(hand_out(sweep, "a")) == 6
    sweep.end_pack("a", Ending(EndingKind.MACHINE_LEFT))
    assert len(hand_out(sweep, "b")) == 6


@pytest.mark.parametrize(("limit", "sizes"), [(8, [3]), (2, [2, 1]), (1, [1, 1, 1])])
def test_searched_trials_are_judged_separately(
    limit: int, sizes: list[int], store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path, trials=0, slots=1, trials_at_once=limit, source=Searches())
    for number, size in enumerate(sizes):
        pack = sweep.next_pack(str(number))
        assert pack is not None and (len(pack.trials), pack.at_once) == (size, min(limit, 3))
        numbers = [PLAN.index(trial) for trial in pack.trials]
        assert pack.stop_above == {IDS[n]: {1: float(n)} for n in numbers}
        assert sweep.next_pack("another") is None, "no tuned trial is ready for another worker"
        pruned = [TrialOutcome(trial_id=IDS[n], state="pruned", cause="poor") for n in numbers]
        ends = [TrialEvent(trial_id=outcome.trial_id, outcome=outcome) for outcome in pruned]
        sweep.process_events(str(number), [*map(started, numbers), *ends])
        sweep.end_pack(str(number))
    assert states(store)[:3] == ["pruned"] * 3


@pytest.mark.usefixtures("one_ray")
def test_ray_stop_costs_no_mate(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials_run, "slots_of", lambda *_: 1)
    stopped, mate = (smoke_trial(seed=seed, **{"training.epochs": 5000}) for seed in (1, 2))
    plan = [PlannedTrial.of(stopped, "stopped"), PlannedTrial.of(mate, "mate")]
    store.register(KEY, plan)

    class Stops(RecordingListener):
        def epoch(self, trial_id: str, metrics: Epoch) -> None:
            if trial_id == stopped.trial_id and metrics.epoch == 1:
                store.ask_to_stop(trial_id)

    listener = Stops()
    work = work_in(tmp_path, store, trials_at_once=2, listener=listener, study=KEY)
    run_trials(plan, work)
    assert listener.stopped_names == ["stopped"]
    assert sorted(listener.starts) == ["mate", "mate", "stopped"]
    assert [row.state for row in store.trials(KEY)] == ["planned", "done"]
