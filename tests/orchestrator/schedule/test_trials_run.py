"""A sweep over real Ray processes: what goes wrong in one trial stays there, and is named."""

from __future__ import annotations

import itertools
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.schedule import driver
from orchestrator.schedule.trials_run import run_trials
from orchestrator.store.opening import open_store
from orchestrator.store.records import StudyKey, TrialRow
from orchestrator.store.store import Store
from tests.support.notes import Heard
from tests.support.one_ray import start_ray
from tests.support.scripted_trials import (
    BAD_INPUT,
    DIVERGES,
    EXITS,
    KILLED_ONCE,
    LONG,
    RAISES,
    SOUND,
    STANDS,
    log_lines,
    planned,
    work_in,
)
from tests.support.small_disk import change, small_disk
from trainables.errors import UserError

KEY = StudyKey(study="mixed", scale="smoke", corpus="none")
SEEDS = [SOUND, RAISES, SOUND + 1, DIVERGES, EXITS, SOUND + 2, KILLED_ONCE, BAD_INPUT, SOUND + 3]

pytestmark = pytest.mark.usefixtures("one_ray")


class Swept:
    """One sweep over trials that go wrong in every way, and what it left."""

    def __init__(self, folder: Path, store: Store) -> None:
        plan = planned(SEEDS)
        self.folder, self.store, self.heard = folder, store, Heard()
        store.register(KEY, plan)
        self.summary = run_trials(plan, work_in(folder, store, listener=self.heard))
        self.rows: dict[int, TrialRow] = {row.config["seed"]: row for row in store.trials(KEY)}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swept]:
    start_ray()
    folder = tmp_path_factory.mktemp("swept")
    with open_store(f"sqlite:///{folder}/results.db") as store:
        yield Swept(folder, store)


def test_trials_end_as_they_would_alone_and_each_trouble_is_named_with_its_cause(
    swept: Swept,
) -> None:
    states = {seed: row.state for seed, row in swept.rows.items()}
    troubled = {RAISES: "failed", DIVERGES: "diverged", EXITS: "failed", BAD_INPUT: "failed"}
    assert states == dict.fromkeys(SEEDS, "done") | troubled
    assert swept.rows[RAISES].cause == "RuntimeError: the weights are on strike"
    assert swept.rows[BAD_INPUT].cause == "The folder has no train.txt: put one there."
    assert swept.rows[DIVERGES].cause == "The loss is not finite."
    assert "process died" in str(swept.rows[EXITS].cause)
    assert not swept.summary.interrupted


def test_the_traceback_of_a_trial_is_in_its_folder(swept: Swept) -> None:
    trial_id = swept.rows[RAISES].trial_id
    text = (swept.folder / "trials" / trial_id[:2] / trial_id / "error.log").read_text()
    assert "Traceback" in text
    assert "and this line is for the log" in text


def test_only_a_trial_whose_process_died_runs_again_and_goes_on_from_its_checkpoint(
    swept: Swept,
) -> None:
    starts = [line for line in log_lines(swept.folder) if line.startswith("start")]
    twice = [f"start {KILLED_ONCE} 2", f"start {EXITS} 2"]
    assert sorted(starts) == sorted([*(f"start {seed} 0" for seed in SEEDS), *twice])
    assert {seed for seed, row in swept.rows.items() if row.attempt == 2} == {KILLED_ONCE, EXITS}


def test_the_listener_hears_of_every_trial_and_the_store_holds_its_epochs(swept: Swept) -> None:
    assert set(swept.heard.starts) == {f"seed={seed}" for seed in SEEDS}
    assert {trial_id: outcome.state for trial_id, outcome in swept.heard.outcomes.items()} == {
        row.trial_id: row.state for row in swept.rows.values()
    }
    assert [epoch.epoch for epoch in swept.store.epochs(swept.rows[SOUND].trial_id)] == [1, 2, 3, 4]


def test_a_worker_that_stands_still_is_ended_and_the_others_finish(
    store: Store, tmp_path: Path
) -> None:
    plan = planned([STANDS, SOUND])
    store.register(KEY, plan)
    run_trials(plan, work_in(tmp_path, store, {"trial_timeout_s": 10.0, "max_attempts": 1}))
    stands, sound = store.trials(KEY)
    assert (stands.state, sound.state) == ("failed", "done")
    assert re.match(
        r"it stood still for \d+ s \(no thread of its process ran any more; last seen",
        str(stands.cause),
    )


def test_a_store_that_cannot_be_written_ends_the_sweep_with_its_own_error(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> bool:
        raise UserError("The disk is full.")

    plan = planned([SOUND, SOUND + 1])
    store.register(KEY, plan)
    monkeypatch.setattr(store, "record", full_disk)
    with pytest.raises(UserError, match="The disk is full"):
        run_trials(plan, work_in(tmp_path, store))
    assert {row.state for row in store.trials(KEY)} == {"planned"}


def test_a_storage_folder_that_is_removed_ends_the_sweep_and_no_trial_counts_as_failed(
    store: Store, tmp_path: Path
) -> None:
    plan = planned([LONG, LONG + 1])
    store.register(KEY, plan)
    folder = tmp_path / "results"
    folder.mkdir()
    removal = threading.Timer(3.0, shutil.rmtree, [folder])
    removal.start()
    with pytest.raises(
        UserError,
        match=re.escape(f"The storage folder {folder} is gone (No such file or directory)"),
    ):
        run_trials(plan, work_in(folder, store))
    removal.join()
    assert {row.state for row in store.trials(KEY)} == {"planned"}
    assert not folder.exists()


def test_a_full_disk_stops_the_sweep_and_with_room_the_same_command_finishes_it(
    store: Store, tmp_path: Path
) -> None:
    plan = planned(list(range(SOUND, SOUND + 8)))
    ids = [trial.trial_id for trial in plan]
    store.register(KEY, plan)
    with small_disk(tmp_path / "disk", kib=40) as disk:
        message = f"The disk of {disk} is full: free space there and type the same command again"
        with pytest.raises(UserError, match=re.escape(message)):
            run_trials(plan, work_in(disk, store))
        states = Counter(store.states(ids).values())
        assert states["done"] >= 1
        assert states == {"done": states["done"], "planned": 8 - states["done"]}
        change(disk, "size=1m")
        run_trials(
            [trial for trial in plan if store.states(ids)[trial.trial_id] != "done"],
            work_in(disk, store),
        )
        assert Counter(store.states(ids).values()) == {"done": 8}
        ends = [line for line in log_lines(disk) if line.startswith("end")]
        assert sorted(ends) == sorted(f"end {SOUND + number}" for number in range(8))


def test_a_sweep_that_only_waits_for_trials_of_another_does_not_stand_still(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[float] = []
    monkeypatch.setattr(driver, "beat", lambda: beats.append(time.monotonic()))
    plan = planned([SOUND])
    store.register(KEY, plan)
    store.claim([plan[0].trial_id], owner="another", lease_s=600)
    release = threading.Timer(5, store.release, ["another"])
    release.start()
    run_trials(plan, work_in(tmp_path, store))
    release.join()
    assert beats[-1] - beats[0] > 4, "it waited"
    assert max(later - earlier for earlier, later in itertools.pairwise(beats)) < 3


def test_a_sweep_that_only_waits_for_trials_of_another_stops_when_it_is_asked_to(
    store: Store, tmp_path: Path
) -> None:
    plan = planned([SOUND])
    store.register(KEY, plan)
    store.claim([plan[0].trial_id], owner="another", lease_s=600)
    request = threading.Timer(4, store.ask_to_stop, [KEY])
    request.start()
    start_s = time.monotonic()
    assert run_trials(plan, work_in(tmp_path, store, study=KEY)).interrupted
    assert time.monotonic() - start_s < 60
    request.join()
    assert [row.state for row in store.trials(KEY)] == ["running"]
