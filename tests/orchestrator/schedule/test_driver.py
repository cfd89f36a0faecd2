"""Which trials that others add to a study a running sweep takes up, over a real store."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orchestrator.cluster.interrupt import Interrupt
from orchestrator.schedule import driver
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.driver import Driver
from orchestrator.schedule.placement import Placement
from orchestrator.schedule.study_work import POLL_S
from orchestrator.store.lease import LeaseKeeper
from orchestrator.store.records import PlannedTrial, StudyKey
from orchestrator.store.store import Store
from tests.support.notes import Heard
from tests.support.scripted_trials import planned, work_in
from trainables.config import CorpusConfig, SoftmaxConfig, TrialConfig
from trainables.corpora import CorpusIdentity

KEY = StudyKey(study="steered", scale="smoke", corpus="none")
CORPUS = CorpusIdentity(name="none", sha256="0" * 64, train_tokens=1, valid_tokens=1, test_tokens=1, vocabulary_size=10)
MACHINE = {"NodeID": "one", "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 1.0}}


def of_another_text(seed: int) -> PlannedTrial:
    config = TrialConfig(seed=seed, corpus=CorpusConfig(name="none", sha256="1" * 64), output_layer=SoftmaxConfig())
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
    work = work_in(tmp_path, store, listener=heard, study=KEY, corpus=CORPUS, planned_ids=planned_ids)
    dispatcher = Dispatcher([mine], work, "me", slots=1)
    placement = Placement(work.options, CORPUS, {})
    steered = Driver(work, dispatcher, placement, Interrupt(), LeaseKeeper(store, "me"), lambda: None)

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
