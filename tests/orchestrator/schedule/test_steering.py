"""Which trials that others add to a study a running sweep takes up, over a real store."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.claims import POLL_S, Claims
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.packs import Pack
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.steering import Steering
from orchestrator.schedule.study_work import StudyWork
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.records import PlannedTrial, RunRecord, StudyKey
from tests.support.notes import Notes
from tests.support.scripted_trials import planned
from trainables.config import CorpusConfig, SoftmaxConfig, TrialConfig
from trainables.corpora import CorpusIdentity

KEY = StudyKey(study="steered", scale="smoke", corpus="none")
CORPUS = CorpusIdentity(name="none", sha256="0" * 64, train_tokens=1, valid_tokens=1, test_tokens=1, vocabulary_size=10)


def of_another_text(seed: int) -> PlannedTrial:
    config = TrialConfig(seed=seed, corpus=CorpusConfig(name="none", sha256="1" * 64), output_layer=SoftmaxConfig())
    return PlannedTrial(trial_id=config.trial_id, name=f"seed={seed}", config=config.model_dump(mode="json"))


def test_only_trials_that_came_later_and_that_it_can_run_are_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[0])
    mine, left_to_wait, added = planned([0]), planned([1]), planned([2])
    options = RunOptions(storage=FolderStorage(tmp_path))
    known_ids = {trial.trial_id for trial in [*mine, *left_to_wait]}
    work = StudyWork(study=KEY, seconds_per_trial=60, corpus=CORPUS, known_ids=known_ids)
    heard, pool = Notes(), [(1, {"10.0.0.1"})]
    with open_store(f"sqlite:///{tmp_path}/results.db") as store:
        store.register(KEY, [*mine, *left_to_wait])
        record = RunRecord(code_version="-", packages={}, host="-", device="-", corpus_sha256="0" * 64)
        run_id = store.begin_run(record)
        dispatcher = Dispatcher(
            mine,
            recorder=Recorder(store, options, run_id),
            claims=Claims(store, "me"),
            options=options,
            work=work,
            listener=heard,
            slots=1,
        )
        steering = Steering(
            dispatcher,
            heard,
            store=store,
            run_id=run_id,
            work=work,
            pool=lambda: pool[0],
            layer_files=(),
        )
        assert not steering.look()
        assert handed_out(dispatcher) == ["seed=0"]
        store.register(KEY, [*mine, *left_to_wait, *added, of_another_text(3)])
        clock_s[0] += POLL_S + 1
        steering.look()
        assert handed_out(dispatcher) == ["seed=2"]
        pool[0] = (None, set())  # type: ignore[assignment]  # no machine fits
        for _ in range(2):
            clock_s[0] += POLL_S + 1
            steering.look()
        assert heard.notes == ["There is no machine any more that a trial fits on: waiting for one."]
        store.ask_to_stop(KEY)
        clock_s[0] += POLL_S + 1
        assert steering.look()


def handed_out(dispatcher: Dispatcher) -> list[str]:
    """The names of all trials that can be had now."""
    found: list[Pack] = []
    while (pack := dispatcher.next_pack(f"{time.time_ns()}")) is not None:
        found.append(pack)
    return [trial.name for pack in found for trial in pack.trials]
