"""The dispatcher, without Ray, over a real store: who runs what, and who is blamed when a worker dies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule import claims
from orchestrator.schedule.claims import Claims
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.packs import Pack
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.study_work import StudyWork
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.records import PlannedTrial, RunRecord, StudyKey
from orchestrator.store.store import Store
from orchestrator.watch.listener import Listener
from orchestrator.worker.messages import Ending, EndingKind, TrialEvent
from tests.support import scripted_measurements as later
from tests.support.scripted_trials import planned
from trainables.errors import UserError
from trainables.trial_folder.folder import TrialFolder, trial_directory
from trainables.trial_folder.outcome import TrialOutcome

PLAN = planned(range(6))
DEATH = Ending(EndingKind.PROCESS_DIED, "its process died")
KEY = StudyKey(study="handed out", scale="smoke", corpus="none")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/results.db") as opened:
        opened.register(KEY, PLAN)
        yield opened


class Heard(Listener):
    """A listener that remembers."""

    def __init__(self) -> None:
        self.finished_ids: list[str] = []
        self.notes: list[str] = []
        self.stopped_names: list[str] = []
        self.added_counts: list[int] = []

    def stopped(self, trial_id: str, name: str) -> None:
        assert trial_id in {trial.trial_id for trial in PLAN}
        self.stopped_names.append(name)

    def added(self, count: int) -> None:
        self.added_counts.append(count)

    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        assert outcome.state == "done"
        self.finished_ids.append(trial_id)

    def note(self, text: str) -> None:
        self.notes.append(text)


class Searches:
    """A source that has no trial of its own, and whose store is lost when it is asked for thresholds."""

    def more(self, busy: Collection[str]) -> Sequence[PlannedTrial]:
        del busy
        return []

    def is_searched(self, trial: PlannedTrial) -> bool:
        return trial in PLAN

    def stop_above(self, trial: PlannedTrial) -> Mapping[int, float]:
        raise UserError(f"the connection was lost at {trial.name}")


def dispatcher(
    store: Store,
    storage: Path,
    plan: list[PlannedTrial] = PLAN,
    listener: Listener | None = None,
    work: StudyWork | None = None,
    **changes: Any,
) -> Dispatcher:
    """With packs of three trials on two slots."""
    options = RunOptions(storage=FolderStorage(storage), **changes)
    run = store.begin_run(RunRecord(code_version="-", packages={}, host="-", device="cpu", corpus_sha256="0" * 64))
    return Dispatcher(
        plan,
        recorder=Recorder(store, options, run),
        claims=Claims(store, "me"),
        options=options,
        work=work or StudyWork(seconds_per_trial=1 / 3),
        listener=listener or Listener(),
        slots=2,
    )


def names(pack: Pack | None) -> list[str]:
    return [] if pack is None else [trial.name.removeprefix("seed=") for trial in pack.trials]


def started(number: int) -> TrialEvent:
    return TrialEvent(trial_id=PLAN[number].trial_id)


def done(number: int) -> TrialEvent:
    trial_id = PLAN[number].trial_id
    return TrialEvent(trial_id=trial_id, outcome=TrialOutcome(trial_id=trial_id, state="done"))


def states(store: Store) -> list[str]:
    return [row.state for row in store.trials(KEY)]


def test_packs_are_claimed_as_they_are_handed_out_and_given_back_at_the_end(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path)
    assert names(sweep.next_pack("a")) == ["0", "1", "2"]
    assert states(store) == ["running"] * 3 + ["planned"] * 3
    sweep.events("a", [started(0), done(0), started(1)])
    sweep.close()
    assert states(store) == ["done"] + ["planned"] * 5


def test_a_death_costs_the_running_trial_an_attempt_and_its_mates_nothing(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path)
    sweep.next_pack("a")
    sweep.events("a", [started(0), done(0), started(1)])
    sweep.ended("a", DEATH)
    handed_out = []
    for key in "bcd":
        pack = sweep.next_pack(key)
        handed_out.append(names(pack))
        assert pack is not None
        for trial in pack.trials:
            number = int(trial.name.removeprefix("seed="))
            sweep.events(key, [started(number)] if number == 1 else [started(number), done(number)])
        sweep.ended(key, DEATH if handed_out[-1] == ["1"] else None)
    assert handed_out == [["2"], ["3", "4", "5"], ["1"]]
    assert sweep.finished
    assert states(store) == ["done", "failed"] + ["done"] * 4
    assert [row.attempt for row in store.trials(KEY)] == [1, 2, 1, 1, 1, 1]
    assert store.trials(KEY)[1].cause == "its process died (in each of 2 attempts)"


def test_a_result_that_was_durable_before_the_death_counts(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path)
    sweep.next_pack("a")
    sweep.events("a", [started(0)])
    folder = trial_directory(tmp_path, PLAN[0].trial_id)
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(TrialOutcome(trial_id=PLAN[0].trial_id, state="done").model_dump_json())
    sweep.ended("a", DEATH)
    assert states(store)[0] == "done"


def test_workers_that_never_start_a_trial_end_the_sweep_and_blame_no_trial(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path)
    for key in "ab":
        assert names(sweep.next_pack(key)) == ["0", "1", "2"]
        sweep.ended(key, Ending(EndingKind.ERROR, "No module named 'trainables'"))
    sweep.next_pack("c")
    with pytest.raises(UserError, match="No module named 'trainables'"):
        sweep.ended("c", Ending(EndingKind.ERROR, "No module named 'trainables'"))
    sweep.close()
    assert states(store) == ["planned"] * 6


def test_a_worker_that_raises_in_a_trial_again_and_again_ends_as_that_trials_failure(
    store: Store, tmp_path: Path
) -> None:
    sweep = dispatcher(store, tmp_path, PLAN[:1])
    for key in "ab":
        assert names(sweep.next_pack(key)) == ["0"]
        sweep.events(key, [started(0)])
        sweep.ended(key, Ending(EndingKind.ERROR, "ValueError: a bug"))
    assert sweep.finished
    assert states(store)[0] == "failed"


def test_trials_of_another_living_driver_are_waited_for_and_taken_over_when_given_back(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "POLL_S", 0.0)
    ids = [trial.trial_id for trial in PLAN]
    assert store.claim(ids[:2], owner="another", lease_s=600) == ids[:2]
    sweep = dispatcher(store, tmp_path)
    assert names(sweep.next_pack("a")) == ["2"]
    assert names(sweep.next_pack("b")) == ["3", "4", "5"]
    for key, numbers in (("a", [2]), ("b", [3, 4, 5])):
        sweep.events(key, [event for number in numbers for event in (started(number), done(number))])
        sweep.ended(key, None)
    assert sweep.next_pack("c") is None
    assert not sweep.finished
    store.record(TrialOutcome(trial_id=ids[0], state="done"), run_id=1, spectrum=None)
    store.release([ids[1]], owner="another")
    assert names(sweep.next_pack("d")) == ["1"]
    sweep.events("d", [started(1), done(1)])
    sweep.ended("d", None)
    assert sweep.finished
    assert states(store) == ["done"] * 6


def test_trials_that_another_driver_ended_meanwhile_are_told_and_not_waited_for(store: Store, tmp_path: Path) -> None:
    heard = Heard()
    ids = [trial.trial_id for trial in PLAN]
    sweep = dispatcher(store, tmp_path, listener=heard)
    store.record(TrialOutcome(trial_id=ids[0], state="done"), run_id=1, spectrum=None)
    assert names(sweep.next_pack("a")) == ["1", "2"]
    assert (heard.finished_ids, heard.notes) == ([ids[0]], [])
    store.claim(ids[3:4], owner="another", lease_s=600)
    assert names(sweep.next_pack("b")) == ["4", "5"]
    assert heard.notes == ["1 trial is run by another driver: waiting for them at the end."]


def test_a_full_disk_ends_the_sweep_blames_no_trial_and_keeps_what_was_done(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path)
    sweep.next_pack("a")
    full = TrialEvent(trial_id=PLAN[1].trial_id, halt="The disk is full: free space there")
    with pytest.raises(UserError, match="The disk is full: free space there; what was done is kept"):
        sweep.events("a", [started(0), done(0), started(1), full])
    sweep.close()
    assert states(store) == ["done"] + ["planned"] * 5


def test_no_more_packs_are_out_than_the_user_allows(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path, max_concurrent=1)
    assert names(sweep.next_pack("a")) == ["0", "1", "2"]
    assert sweep.next_pack("b") is None
    assert not sweep.finished


def test_machines_that_leave_cost_a_trial_no_attempt_until_it_has_lost_five(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path, PLAN[:1])
    for key in "abcde":
        assert names(sweep.next_pack(key)) == ["0"]
        sweep.events(key, [started(0)])
        sweep.ended(key, Ending(EndingKind.MACHINE_LEFT))
    assert states(store)[0] == "failed"
    assert store.trials(KEY)[0].cause == f"{EndingKind.MACHINE_LEFT} (in each of 5 attempts)"


def test_a_death_costs_no_attempt_once_its_machine_is_seen_to_have_left(store: Store, tmp_path: Path) -> None:
    """Two deaths of a process are all that a trial may have."""
    sweep = dispatcher(store, tmp_path, PLAN[:1])
    for key, there in (("a", {"10.0.0.2"}), ("b", {"10.0.0.3"}), ("c", {"10.0.0.2", "10.0.0.3"})):
        assert names(sweep.next_pack(key)) == ["0"]
        sweep.events(key, [started(0)])
        sweep.ended(key, replace(DEATH, machine="10.0.0.3" if key == "a" else "10.0.0.2"))
        sweep.machines_left(there)
    assert names(sweep.next_pack("d")) == ["0"]
    sweep.events("d", [started(0)])
    sweep.ended("d", replace(DEATH, machine="10.0.0.2"))
    assert store.trials(KEY)[0].cause == "its process died (in each of 2 attempts)"


def test_machines_that_leave_before_a_trial_starts_do_not_end_the_sweep(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path, PLAN[:1])
    for key in "abcd":
        assert names(sweep.next_pack(key)) == ["0"]
        sweep.ended(key, Ending(EndingKind.MACHINE_LEFT))
    assert names(sweep.next_pack("e")) == ["0"]


def test_a_trial_that_is_to_stop_is_given_back_and_its_mates_go_on(store: Store, tmp_path: Path) -> None:
    heard = Heard()
    sweep = dispatcher(store, tmp_path, listener=heard)
    assert names(sweep.next_pack("a")) == ["0", "1", "2"]
    sweep.events("a", [started(0), done(0), started(1)])
    sweep.stop([PLAN[1].trial_id, PLAN[4].trial_id])
    assert (sweep.give_up(), sweep.give_up()) == (["a"], [])
    sweep.ended("a", DEATH)
    assert names(sweep.next_pack("b")) == ["2"]
    assert names(sweep.next_pack("c")) == ["3", "5"]
    for key, numbers in (("b", [2]), ("c", [3, 5])):
        sweep.events(key, [event for number in numbers for event in (started(number), done(number))])
        sweep.ended(key, None)
    assert sweep.finished
    assert states(store) == ["done", "planned", "done", "done", "planned", "done"]
    assert heard.stopped_names == ["seed=1", "seed=4"]


def test_trials_that_are_added_run_once(store: Store, tmp_path: Path) -> None:
    heard = Heard()
    sweep = dispatcher(store, tmp_path, PLAN[:2], listener=heard)
    sweep.add(PLAN[:4])
    sweep.add(PLAN[:4])
    assert heard.added_counts == [2]
    assert [names(sweep.next_pack(key)) for key in "ab"] == [["0", "1"], ["2", "3"]]


def test_the_number_of_packs_follows_the_machines(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path, PLAN[:4])
    sweep.resize(1)
    assert [names(sweep.next_pack(key)) for key in "ab"] == [["0", "1", "2"], ["3"]]
    sweep.add(PLAN)
    assert sweep.next_pack("c") is None
    sweep.resize(2)
    assert names(sweep.next_pack("c")) == ["4", "5"]


def test_a_trial_that_brings_machines_down_fails_however_its_deaths_are_seen(store: Store, tmp_path: Path) -> None:
    """The death of the process first, that of the machine a moment later."""
    sweep = dispatcher(store, tmp_path, PLAN[:1])
    for number in range(6):
        assert names(sweep.next_pack(f"{number}")) == ["0"]
        sweep.events(f"{number}", [started(0)])
        sweep.ended(f"{number}", replace(DEATH, machine=f"10.0.0.{number}"))
        sweep.machines_left({"10.0.1.1"})
        if states(store)[0] == "failed":
            break
    assert number == 5, "the sixth start is the last"
    assert store.trials(KEY)[0].cause == f"{EndingKind.MACHINE_LEFT} (in each of 5 attempts)"


def test_a_trial_that_is_to_stop_while_it_waits_for_another_attempt_is_given_back(store: Store, tmp_path: Path) -> None:
    sweep = dispatcher(store, tmp_path, PLAN[:1])
    assert names(sweep.next_pack("a")) == ["0"]
    sweep.events("a", [started(0)])
    sweep.ended("a", DEATH)
    assert states(store)[0] == "running"
    sweep.stop([PLAN[0].trial_id])
    assert sweep.next_pack("b") is None
    assert states(store)[0] == "planned"
    assert sweep.claimed == []


def test_a_pack_that_a_machine_refuses_or_that_fits_nowhere_goes_back_and_is_no_failure(
    store: Store, tmp_path: Path
) -> None:
    heard = Heard()
    sweep = dispatcher(store, tmp_path, PLAN[:3], listener=heard)
    for number in range(5):
        assert names(sweep.next_pack(f"{number}")) == ["0", "1", "2"]
        sweep.ended(f"{number}", Ending(EndingKind.MACHINE_UNFIT, "The machine third (10.0.0.3) has torch 2.0."))
    assert heard.notes == ["The machine third (10.0.0.3) has torch 2.0."]
    for number in range(5, 10):
        assert names(sweep.next_pack(f"{number}")) == ["0", "1", "2"]
        assert (sweep.give_up([f"{number}"]), sweep.give_up([f"{number}"])) == ([f"{number}"], [])
        sweep.ended(f"{number}", None)
    assert names(sweep.next_pack("a")) == ["0", "1", "2"]
    sweep.events("a", [started(0)])
    assert sweep.give_up(["a"]) == [], "it has a machine"


def test_an_error_between_the_claim_and_the_hand_out_leaves_no_trial_claimed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease of a claim that leaked would be renewed as long as this process lives."""
    searched = dispatcher(store, tmp_path, work=StudyWork(seconds_per_trial=1, source=Searches()))
    with pytest.raises(UserError, match="the connection was lost"):
        searched.next_pack("a")
    assert [trial.name for trial in searched.claimed] == ["seed=0"]
    searched.close()
    assert states(store) == ["planned"] * 6

    def lost(_claims: Claims, _trial_ids: Collection[str]) -> list[TrialOutcome]:
        raise UserError("the connection was lost")

    store.claim([PLAN[0].trial_id], owner="another", lease_s=600)
    monkeypatch.setattr(Claims, "ended", lost)
    shared = dispatcher(store, tmp_path)
    with pytest.raises(UserError, match="the connection was lost"):
        shared.next_pack("a")
    assert [trial.name for trial in shared.claimed] == ["seed=1", "seed=2"]
    shared.close()
    assert states(store) == ["running"] + ["planned"] * 5


def measuring(store: Store, storage: Path) -> Dispatcher:
    """Of two done trials that lack two measurements; a trial has one attempt."""
    later.store_done(store, PLAN[:2], storage)
    work = StudyWork(seconds_per_trial=1, lacking=store.lacking(later.KEY, later.NAMES))
    return dispatcher(store, storage, PLAN[:2], work=work, max_attempts=1)


def write_measurements(storage: Path, number: int, names: Sequence[str]) -> None:
    trial_id = PLAN[number].trial_id
    for name in names:
        folder = TrialFolder(trial_directory(storage, trial_id), trial_id)
        folder.write_measurement(name, ({name.partition("@")[0]: number}, None))


def test_a_death_after_the_last_measurement_was_written_is_no_failure(store: Store, tmp_path: Path) -> None:
    sweep = measuring(store, tmp_path)
    for number, names_written in enumerate((later.NAMES, later.NAMES[:1])):
        assert names(sweep.next_pack("a")) == [str(number)]
        sweep.events("a", [started(number)])
        write_measurements(tmp_path, number, names_written)
        sweep.ended("a", DEATH)
    assert sweep.finished
    assert sweep.not_measured == {PLAN[1].trial_id: "its process died"}
    assert store.lacking(later.KEY, later.NAMES) == {PLAN[1].trial_id: ["second@1"]}


def test_a_driver_that_does_not_know_what_another_has_measured_takes_the_files(store: Store, tmp_path: Path) -> None:
    """Both planned before either began: the second one's workers find the files and write none."""
    drivers = [measuring(store, tmp_path), measuring(store, tmp_path)]
    for round_number, sweep in enumerate(drivers):
        for number in range(2):
            pack = sweep.next_pack("a")
            assert pack is not None
            assert (names(pack), pack.lacking) == ([str(number)], later.NAMES)
            if round_number == 0:
                write_measurements(tmp_path, number, later.NAMES)
            sweep.events("a", [started(number), done(number)])
            sweep.ended("a", None)
        assert (sweep.finished, sweep.not_measured, sweep.claimed) == (True, {}, [])
        assert [row["metrics"] for row in store.results(later.KEY)] == [{"first": n, "second": n} for n in range(2)]
    assert states(store)[:2] == ["done"] * 2
