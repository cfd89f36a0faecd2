"""What a driver makes of what changes around a sweep, over a real store: trials that others add,
workers that stand."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from orchestrator.cluster.interrupt import Interrupt
from orchestrator.schedule import driver, endings
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.driver import Driver
from orchestrator.schedule.placement import Placement
from orchestrator.schedule.study_work import POLL_S
from orchestrator.store.lease import LeaseKeeper
from orchestrator.store.records import PlannedTrial, StudyKey
from orchestrator.store.store import Store
from orchestrator.worker.messages import EVENTS, Ending, EndingKind, TrialEvent
from tests.orchestrator.schedule.beats import beat_of
from tests.support.notes import Heard
from tests.support.scripted_trials import planned, work_in
from trainables.config import CorpusConfig, SoftmaxConfig, TrialConfig
from trainables.corpora import CorpusIdentity
from trainables.trial_folder.outcome import TrialOutcome

LIMIT_S = 10.0
KEY = StudyKey(study="steered", scale="smoke", corpus="none")
CORPUS = CorpusIdentity(
    name="none", sha256="0" * 64, train_tokens=1, valid_tokens=1, test_tokens=1, vocabulary_size=10
)
MACHINE = {"NodeID": "one", "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 1.0}}


def of_another_text(seed: int) -> PlannedTrial:
    config = TrialConfig(
        seed=seed, corpus=CorpusConfig(name="none", sha256="1" * 64), output_layer=SoftmaxConfig()
    )
    return PlannedTrial.of(config, f"seed={config.seed}")


def test_only_trials_that_came_later_and_that_it_can_run_are_taken_up(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s, machines = [0.0], [MACHINE]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[0])
    monkeypatch.setattr(driver, "nodes", lambda: machines)
    mine, left_to_wait, added = planned(range(3))
    store.register(KEY, [mine, left_to_wait])
    planned_ids = {mine.trial_id, left_to_wait.trial_id}
    heard = Heard()
    work = work_in(
        tmp_path, store, listener=heard, study=KEY, corpus=CORPUS, planned_ids=planned_ids
    )
    dispatcher = Dispatcher([mine], work, "me", slots=1)
    placement = Placement(work.options, CORPUS, {})
    steered = Driver(
        work, dispatcher, placement, Interrupt(), LeaseKeeper(store, "me"), lambda: None
    )

    def look() -> bool:
        clock_s[0] += POLL_S + 1
        steered.look()
        return steered.stopping

    def handed_out() -> list[str]:
        pack = dispatcher.next_pack(f"at {clock_s[0]}")
        return [] if pack is None else [trial.name for trial in pack.trials]

    assert not look()
    assert handed_out() == ["seed=0"]
    store.register(KEY, [mine, left_to_wait, added, of_another_text(3)])
    look()
    assert handed_out() == ["seed=2"]
    machines.clear()
    look()
    look()
    assert heard.notes == ["There is no machine any more that a trial fits on: waiting for one."]
    store.ask_to_stop(KEY)
    assert look()


class GivenUpError(Exception):
    """The driver asks for another Ray."""


def give_up(reason: str) -> NoReturn:
    raise GivenUpError(reason)


def test_a_worker_that_stands_still_is_named_once_and_one_that_cannot_be_ended_is_left_to_another_ray(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heart beats, and nobody can tell more: the process is on a machine that does not
    answer."""
    clock_s = [0.0]
    beat = beat_of("elsewhere", step=7)

    monkeypatch.setattr(time, "monotonic", lambda: clock_s[0])
    monkeypatch.setattr(driver, "nodes", lambda: [MACHINE])
    monkeypatch.setattr(
        driver, "signs", lambda keys: {key: beat.model_dump_json().encode() for key in keys}
    )
    monkeypatch.setattr(driver, "remove_sign", lambda _key: None)
    monkeypatch.setattr(endings, "machine_here", lambda: "here")
    monkeypatch.setattr(driver, "start_again", give_up)
    plan, heard = planned(range(2)), Heard()
    store.register(KEY, plan)
    work = work_in(
        tmp_path, store, {"trial_timeout_s": LIMIT_S}, listener=heard, seconds_per_trial=100.0
    )
    dispatcher = Dispatcher(plan, work, "me", slots=1)
    placement = Placement(work.options, CORPUS, {})
    watching = Driver(
        work, dispatcher, placement, Interrupt(), LeaseKeeper(store, "me"), lambda: None
    )

    def looks(count: int) -> list[str]:
        ended = []
        for _ in range(count):
            clock_s[0] += POLL_S + 0.1
            ended += watching.look()
        return ended

    for key in "ab":
        assert watching.next_pack(key) is not None
        watching.began(key)
    pack = dispatcher._flights["a"].pack
    watching.events("a", EVENTS.dump_json((TrialEvent(trial_id=pack.trials[0].trial_id),)).decode())
    assert looks(10) == ["a", "b"]
    watching.ended("a", Ending(EndingKind.PROCESS_DIED))
    (note,) = heard.notes
    assert re.fullmatch(
        r"seed=0: it stood still for 1\d s .*epoch 3, step 7, my_layer.py, line 3.*checkpoint.",
        note,
    )
    assert not watching.stopping
    with pytest.raises(GivenUpError, match="cannot be ended"):
        looks(100)
        watching.raise_error()


def test_a_ray_that_starts_no_worker_is_given_up(
    monkeypatch: pytest.MonkeyPatch, store: Store, tmp_path: Path
) -> None:
    clock_s = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[0])
    monkeypatch.setattr(driver, "nodes", lambda: [MACHINE])
    monkeypatch.setattr(driver, "start_again", give_up)
    plan = planned(range(2))
    store.register(KEY, plan)
    work = work_in(tmp_path, store, seconds_per_trial=100.0)
    dispatcher = Dispatcher(plan, work, "me", slots=1)
    placement = Placement(work.options, CORPUS, {})
    watching = Driver(
        work, dispatcher, placement, Interrupt(), LeaseKeeper(store, "me"), lambda: None
    )
    assert watching.next_pack("a") is not None
    for _ in range(int(driver.START_S / POLL_S)):
        clock_s[0] += POLL_S + 0.1
        watching.look()
        assert not watching.stopping
    clock_s[0] += POLL_S + 0.1
    watching.look()
    with pytest.raises(GivenUpError, match="has started no worker for 300 s"):
        watching.raise_error()


def on_a_busy_cluster(
    monkeypatch: pytest.MonkeyPatch,
    store: Store,
    folder: Path,
    plan: list[PlannedTrial],
    heard: Heard,
) -> tuple[Driver, Callable[[int], list[str]]]:
    """A driver of these trials on a cluster of one machine with one core; and what has it look so
    often, as time passes, and gives the packs that it wants ended."""
    clock_s = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[0])
    monkeypatch.setattr(driver, "nodes", lambda: [MACHINE])
    monkeypatch.setattr(driver, "signs", lambda _keys: {})
    monkeypatch.setattr(driver, "remove_sign", lambda _key: None)
    store.register(KEY, plan)
    options = {"address": "10.0.0.1:6379", "trial_timeout_s": 1e6}
    work = work_in(folder, store, options, listener=heard, seconds_per_trial=100.0)
    dispatcher = Dispatcher(plan, work, "me", slots=1)
    placement = Placement(work.options, CORPUS, {"one": {"CPU": 1.0}})
    waiting = Driver(
        work, dispatcher, placement, Interrupt(), LeaseKeeper(store, "me"), lambda: None
    )

    def looks(times: int) -> list[str]:
        ended = []
        for _ in range(times):
            clock_s[0] += POLL_S + 0.1
            ended += waiting.look()
        return ended

    return waiting, looks


def tell(
    waiting: Driver, key: str, trial: PlannedTrial, outcome: TrialOutcome | None = None
) -> None:
    waiting.events(
        key, EVENTS.dump_json((TrialEvent(trial_id=trial.trial_id, outcome=outcome),)).decode()
    )


def test_what_needs_a_machine_of_its_own_is_left_to_a_later_run_where_others_have_a_part_of_every_one(
    monkeypatch: pytest.MonkeyPatch, store: Store, tmp_path: Path
) -> None:
    """Two trials ran out of memory. The first one gets its machine, the second one waits as long as
    that lasts, and then for one that somebody else has a core of."""
    plan, heard = planned(range(2)), Heard()
    waiting, looks = on_a_busy_cluster(monkeypatch, store, tmp_path, plan, heard)
    long = int(driver.ALONE_S / POLL_S) + 2
    for key, trial in zip("ab", plan, strict=True):
        assert waiting.next_pack(key) is not None
        tell(waiting, key, trial)
        waiting.ended(key, Ending(EndingKind.OUT_OF_MEMORY))
    alone = [waiting.next_pack(key) for key in "cd"]
    assert [parcel and parcel.place.whole for parcel in alone] == [{"CPU": 1.0}] * 2
    waiting.began("c")
    assert looks(long) == [], "its worker starts"
    tell(waiting, "c", plan[0])
    assert looks(long) == []
    tell(waiting, "c", plan[0], TrialOutcome(trial_id=plan[0].trial_id, state="done"))
    waiting.ended("c")
    assert looks(long) == ["d"]
    waiting.ended("d")
    assert waiting.next_pack("e") is None
    assert (waiting.finished, waiting.stopping) == (True, False)
    assert [row.state for row in store.trials(KEY)] == ["done", "planned"]
    assert heard.notes[2:] == [
        "For 10 min no machine was free of others, as what ran out of memory needs it."
    ]
    assert heard.stopped_names == ["seed=1"]


def test_what_waited_long_for_its_first_start_waits_as_long_again_for_a_machine_of_its_own(
    monkeypatch: pytest.MonkeyPatch, store: Store, tmp_path: Path
) -> None:
    plan, heard = planned(range(1)), Heard()
    waiting, looks = on_a_busy_cluster(monkeypatch, store, tmp_path, plan, heard)
    long = int(driver.ALONE_S / POLL_S) + 2
    assert waiting.next_pack("a") is not None
    assert looks(long) == []
    # It starts and runs out of memory between two looks.
    waiting.began("a")
    tell(waiting, "a", plan[0])
    waiting.ended("a", Ending(EndingKind.OUT_OF_MEMORY))
    alone = waiting.next_pack("b")
    assert alone is not None and alone.place.whole == {"CPU": 1.0}
    assert looks(3) == []
    assert looks(long) == ["b"]
