from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from orchestrator.cluster import Interrupt
from orchestrator.schedule import driver
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.driver import Driver
from orchestrator.schedule.placement import Placement
from orchestrator.schedule.study_work import POLL_S
from orchestrator.store import LeaseKeeper, PlannedTrial, Store, StudyKey
from orchestrator.worker import EVENTS, Ending, EndingKind, Parcel, TrialEvent
from tests.orchestrator.schedule.beats import beat_of
from tests.support.notes import RecordingListener
from tests.support.scripted_trials import planned, work_in
from trainables.trial_folder import TrialOutcome

LIMIT_S = 10.0
KEY = StudyKey(study="steered", scale="smoke", corpus="none")
MACHINE = {"NodeID": "one", "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 1.0}}


class GivenUpError(Exception):
    pass


def give_up(reason: str) -> NoReturn:
    raise GivenUpError(reason)


class SteeredDriver:
    """A driver on a one-core machine, with a clock that advances only in `poll`."""

    def __init__(
        self, patch: pytest.MonkeyPatch, store: Store, folder: Path, plan: Sequence[PlannedTrial],
        options: dict[str, Any] | None = None, **changes: Any,
    ) -> None:  # fmt: skip
        self.now_s, self.machines, self.listener = 1000.0, [MACHINE], RecordingListener()
        patch.setattr(time, "monotonic", lambda: self.now_s)
        patch.setattr(driver, "nodes", lambda: self.machines)
        patch.setattr(driver, "signs", lambda _keys: {})
        patch.setattr(driver, "remove_sign", lambda _key: None)
        patch.setattr(driver, "start_again", give_up)
        fields = {"listener": self.listener, "seconds_per_trial": 100.0} | changes
        work = work_in(folder, store, options, **fields)
        self.dispatcher = Dispatcher(plan, work, "me", slots=1)
        placement = Placement(work.options, None, {"one": {"CPU": 1.0}})
        keeper = LeaseKeeper(store, "me")
        self.driver = Driver(work, self.dispatcher, placement, Interrupt(), keeper, lambda: None)

    def poll(self, times: int) -> list[str]:
        ended = []
        for _ in range(times):
            self.now_s += POLL_S + 0.1
            ended += self.driver.poll()
        return ended

    def hand_out(self, key: str) -> Parcel:
        parcel = self.driver.next_pack(key)
        assert parcel is not None
        return parcel

    def report(self, key: str, trial: PlannedTrial, outcome: TrialOutcome | None = None) -> None:
        event = TrialEvent(trial_id=trial.trial_id, outcome=outcome)
        self.driver.process_events(key, EVENTS.dump_json((event,)).decode(), "one")


def test_driver_waits_for_machines(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(range(1))
    store.register(KEY, plan)
    steered = SteeredDriver(monkeypatch, store, tmp_path, plan, study=KEY)
    steered.machines.clear()
    steered.poll(2)
    (note,) = steered.listener.notes
    assert "no machine" in note
    assert not steered.driver.stopping
    store.ask_to_stop(KEY)
    steered.poll(1)
    assert steered.driver.stopping


def test_refused_machine_is_named_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(range(1))
    store.register(KEY, plan)
    steered = SteeredDriver(monkeypatch, store, tmp_path, plan)
    steered.machines.append({**MACHINE, "NodeID": "two"})
    for key in "ab":
        steered.hand_out(key)
        steered.driver.end_pack(key, Ending(EndingKind.MACHINE_UNFIT, "two has torch 2.0.", "two"))
    assert [note for note in steered.listener.notes if "torch" in note] == ["two has torch 2.0."]
    assert steered.hand_out("c").request.excluded_machines == ("two",)


def test_unkillable_worker_needs_new_ray(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker hangs on a machine that does not answer, so nothing can end the worker."""
    plan = planned(range(2))
    store.register(KEY, plan)
    steered = SteeredDriver(monkeypatch, store, tmp_path, plan, {"trial_timeout_s": LIMIT_S})
    beat = beat_of("elsewhere", step=7).model_dump_json().encode()
    monkeypatch.setattr(driver, "signs", lambda keys: dict.fromkeys(keys, beat))
    monkeypatch.setattr(driver, "machine_here", lambda: "here")
    for key in "ab":
        steered.hand_out(key)
        steered.driver.start_pack(key)
    (trial,) = steered.dispatcher._flights["a"].pack.trials
    steered.report("a", trial)
    assert steered.poll(10) == ["a", "b"]
    steered.driver.end_pack("a", Ending(EndingKind.PROCESS_DIED))
    (note,) = steered.listener.notes
    assert re.match(r"seed=0: it stalled for 1\d s .*epoch 3, step 7, my_layer.py", note)
    assert not steered.driver.stopping
    with pytest.raises(GivenUpError, match="cannot be ended"):
        steered.poll(100)
        steered.driver.raise_error()


def test_ray_without_workers_is_abandoned(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(range(2))
    store.register(KEY, plan)
    steered = SteeredDriver(monkeypatch, store, tmp_path, plan)
    steered.hand_out("a")
    steered.poll(int(driver.START_S / POLL_S))
    assert not steered.driver.stopping
    steered.poll(1)
    with pytest.raises(GivenUpError, match="has started no worker for 300 s"):
        steered.driver.raise_error()
