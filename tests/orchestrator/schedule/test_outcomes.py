"""What becomes of trials, without Ray, over a real store: who is blamed for a death, and what
counts as a result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.schedule import dispatcher, trial_table
from orchestrator.store.store import Store
from orchestrator.worker.messages import Ending, EndingKind, TrialEvent
from tests.orchestrator.schedule.numbered_trials import (
    DEATH,
    IDS,
    KEY,
    NO_MEMORY,
    PLAN,
    Sweep,
    done,
    started,
    states,
)
from tests.support import scripted_measurements as later
from trainables.errors import UserError
from trainables.trial_folder.folder import TrialFolder, trial_directory
from trainables.trial_folder.outcome import EpochMetrics, TrialOutcome


@pytest.fixture(autouse=True)
def registered(store: Store) -> None:
    """The plan is in the store."""
    store.register(KEY, PLAN)


def test_what_was_damaged_is_told_with_the_trials_name(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path)
    sweep.pack("a")
    note = "/x/checkpoint-7.safetensors is not what was written"
    sweep.events("a", [started(0), TrialEvent(trial_id=IDS[0], note=note), done(0)])
    assert sweep.heard.notes == [f"{PLAN[0].name}: {note}."]
    assert states(store)[0] == "done"


def test_a_death_costs_the_running_trial_an_attempt_and_its_mates_nothing(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path)
    sweep.pack("a")
    sweep.tell("a", 0, at=1)
    sweep.ended("a", DEATH)
    assert [sweep.run(key) for key in "bc"] == [[2], [3, 4, 5]]
    sweep.die("d", at=1)
    assert sweep.finished
    assert states(store) == ["done", "failed"] + ["done"] * 4
    assert [row.attempt for row in store.trials(KEY)] == [1, 2, 1, 1, 1, 1]
    assert store.trials(KEY)[1].cause == "its process died (in each of 2 attempts)"


def test_what_ran_out_of_memory_is_tried_once_more_when_nothing_else_runs_and_then_fails(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path)
    assert [sweep.pack(key) for key in "ab"] == [[0, 1, 2], [3, 4, 5]]
    sweep.tell("a", at=0)
    sweep.ended("a", NO_MEMORY)
    assert sweep.heard.notes == [
        f"seed=0: {NO_MEMORY.cause}; it goes on from its last checkpoint, alone on its machine."
    ]
    assert sweep.pack("c") == [1, 2]
    assert sweep.pack("d") == [], "others are out"
    sweep.tell("c", 1, 2)
    sweep.ended("c", None)
    sweep.tell("b", at=3)
    sweep.ended("b", NO_MEMORY)
    assert sweep.run("d") == [4, 5]
    assert [sweep.pack(key) for key in "ef"] == [[0], [3]]
    assert all(flight.pack.alone for flight in sweep._flights.values())
    sweep.add(PLAN[:6])
    sweep.tell("e", 0)
    sweep.ended("e", None)
    sweep.tell("f", at=3)
    sweep.ended("f", NO_MEMORY)
    assert sweep.finished
    assert states(store) == ["done", "done", "done", "failed", "done", "done"]
    assert str(store.trials(KEY)[3].cause).startswith(
        f"{NO_MEMORY.cause}, alone on its machine too: train with"
    )


def test_a_trial_that_stands_still_is_tried_again_and_then_fails_with_its_place(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path, 1)
    ending = Ending(
        EndingKind.STOOD_STILL,
        "it stood still for 64 s in epoch 2, step 114 (my_layer.py, line 12)",
    )
    for key in "ab":
        sweep.die(key, at=0, ending=ending)
    last = f"{ending.cause} (in each of 2 attempts)"
    assert store.trials(KEY)[0].cause == last
    attempts = [(attempt.place, attempt.cause) for attempt in store.attempts(IDS[0])]
    assert attempts == [("a machine", ending.cause), ("a machine", last)]


def test_a_result_that_was_durable_before_the_death_counts(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path)
    sweep.pack("a")
    sweep.tell("a", at=0)
    folder = trial_directory(tmp_path, IDS[0])
    folder.mkdir(parents=True)
    TrialFolder(folder, IDS[0]).write_result(TrialOutcome(trial_id=IDS[0], state="done"), None)
    sweep.ended("a", DEATH)
    assert states(store)[0] == "done"


def report_without_spectrum(sweep: Sweep, key: str, number: int) -> None:
    outcome = TrialOutcome(
        trial_id=IDS[number], state="done", measurements={"spectrum@1": {"press_rank": 1}}
    )
    sweep.events(key, [started(number), TrialEvent(trial_id=IDS[number], outcome=outcome)])


def test_a_result_that_is_damaged_before_it_is_recorded_costs_an_attempt_and_its_mates_nothing(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path, 3)
    assert sweep.pack("a") == [0, 1, 2]
    report_without_spectrum(sweep, "a", 0)
    report_without_spectrum(sweep, "a", 1)
    assert states(store) == ["running"] * 3 + ["planned"] * 3
    sweep.tell("a", 2)
    sweep.ended("a", None)
    assert sweep.run("b") == [0]
    assert sweep.pack("c") == [1]
    report_without_spectrum(sweep, "c", 1)
    sweep.ended("c", None)
    assert sweep.finished
    assert states(store)[:3] == ["done", "failed", "done"]
    assert [row.attempt for row in store.trials(KEY)[:3]] == [2, 2, 1]
    cause = f"{trial_directory(tmp_path, IDS[1])}/spectrum.npy is missing"
    assert store.trials(KEY)[1].cause == f"{cause} (in each of 2 attempts)"
    assert sweep.heard.notes[1] == f"seed=1: {cause}; it runs again."


def test_an_end_that_the_store_does_not_take_is_told_as_no_end_of_the_trial(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver has taken the trials over, as this one's leases had run out."""
    monkeypatch.setattr(trial_table, "LEASE_S", -1.0)
    monkeypatch.setattr(dispatcher, "POLL_S", 0.0)
    sweep = Sweep(store, tmp_path, 4, options={"max_attempts": 1}, seconds_per_trial=1 / 4)
    assert sweep.pack("a") == [0, 1, 2, 3]
    assert len(store.claim(IDS[:4], owner="another", lease_s=600)) == 4
    diverged = TrialOutcome(trial_id=IDS[0], state="diverged", cause="the loss is not finite")
    sweep.events(
        "a",
        [
            started(0),
            TrialEvent(trial_id=IDS[0], outcome=diverged),
            started(1),
            done(1),
            started(2),
        ],
    )
    store.record(TrialOutcome(trial_id=IDS[3], state="done"), run_id=1, spectrum=None, attempt=2)
    folder = trial_directory(tmp_path, IDS[3])
    folder.mkdir(parents=True)
    TrialFolder(folder, IDS[3]).write_result(TrialOutcome(trial_id=IDS[3], state="done"), None)
    sweep.ended("a", DEATH)
    assert {PLAN[1].trial_id, PLAN[3].trial_id} == sweep.heard.outcomes.keys()
    assert (sweep.finished, sweep.claimed) == (False, [])
    store.fail(IDS[0], cause="another's", run_id=1, attempt=2)
    store.release("another", [IDS[2]])
    assert sweep.run("b") == [2]
    assert sweep.finished
    assert [sweep.heard.outcomes[trial_id].state for trial_id in IDS[:4]] == [
        "failed",
        "done",
        "done",
        "done",
    ]


def test_workers_that_never_start_a_trial_end_the_sweep_and_blame_no_trial(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path)
    ending = Ending(EndingKind.ERROR, "No module named 'trainables'")
    for key in "ab":
        assert sweep.pack(key) == [0, 1, 2]
        sweep.ended(key, ending)
    sweep.pack("c")
    with pytest.raises(UserError, match="No module named 'trainables'"):
        sweep.ended("c", ending)
    sweep.close()
    assert states(store) == ["planned"] * 6


def test_a_worker_that_raises_in_a_trial_again_and_again_ends_as_that_trials_failure(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path, 1)
    for key in "ab":
        sweep.die(key, at=0, ending=Ending(EndingKind.ERROR, "ValueError: a bug"))
    assert sweep.finished
    assert states(store)[0] == "failed"


def test_a_driver_whose_trials_were_taken_over_says_nothing_of_them_but_what_is_done(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_table, "LEASE_S", -1.0)
    sweep = Sweep(store, tmp_path, options={"max_attempts": 1})
    sweep.pack("a")
    sweep.tell("a", at=0)
    assert store.claim(IDS[:3], owner="another", lease_s=600) == dict.fromkeys(IDS[:3], 2)
    epoch = EpochMetrics(
        epoch=1, tokens=1, train_loss=9.0, valid_loss=9.0, averaging=False, seconds=1.0
    )
    diverged = TrialOutcome(trial_id=IDS[1], state="diverged", cause="the loss is not finite")
    sweep.events("a", [TrialEvent(trial_id=IDS[0], epoch=epoch)])
    sweep.events("a", [done(0), started(1)])
    sweep.events("a", [TrialEvent(trial_id=IDS[1], outcome=diverged), started(2)])
    sweep.ended("a", DEATH)
    assert states(store)[:3] == ["done", "running", "running"]
    assert [row.owner for row in store.trials(KEY)[:3]] == [None, "another", "another"]
    assert store.epochs(IDS[0]) == []


def test_trials_that_another_driver_ended_meanwhile_are_told_and_not_waited_for(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path)
    store.record(TrialOutcome(trial_id=IDS[0], state="done"), run_id=1, spectrum=None)
    assert sweep.pack("a") == [1, 2]
    assert (list(sweep.heard.outcomes), sweep.heard.notes) == ([IDS[0]], [])
    store.claim(IDS[3:4], owner="another", lease_s=600)
    assert sweep.pack("b") == [4, 5]
    assert sweep.heard.notes == ["1 trial is run by another command: waiting for it at the end."]


def test_machines_that_leave_cost_a_trial_no_attempt_until_it_has_lost_five(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path, 1)
    for key in "abcde":
        sweep.die(key, at=0, ending=Ending(EndingKind.MACHINE_LEFT))
    assert store.trials(KEY)[0].cause == f"{EndingKind.MACHINE_LEFT} (in each of 5 attempts)"


def test_a_death_costs_no_attempt_once_its_machine_is_seen_to_have_left(
    store: Store, tmp_path: Path
) -> None:
    """Two deaths of a process are all that a trial may have."""
    sweep = Sweep(store, tmp_path, 1)
    for key, machine, there in (("a", "3", {"2"}), ("b", "2", {"3"}), ("c", "2", {"2", "3"})):
        sweep.die(key, at=0, ending=replace(DEATH, machine=machine))
        sweep.attempts.machines_left(there)
    sweep.die("d", at=0, ending=replace(DEATH, machine="2"))
    assert store.trials(KEY)[0].cause == "its process died (in each of 2 attempts)"


def test_a_trial_that_brings_machines_down_fails_however_its_deaths_are_seen(
    store: Store, tmp_path: Path
) -> None:
    """The death of the process first, that of the machine a moment later."""
    sweep = Sweep(store, tmp_path, 1)
    for machine in "012345":
        assert states(store)[0] != "failed", "the sixth start is the last"
        sweep.die(machine, at=0, ending=replace(DEATH, machine=machine))
        sweep.attempts.machines_left({"another"})
    assert store.trials(KEY)[0].cause == f"{EndingKind.MACHINE_LEFT} (in each of 5 attempts)"


def test_machines_that_leave_before_a_trial_starts_do_not_end_the_sweep(
    store: Store, tmp_path: Path
) -> None:
    sweep = Sweep(store, tmp_path, 1)
    for key in "abcd":
        assert sweep.pack(key) == [0]
        sweep.ended(key, Ending(EndingKind.MACHINE_LEFT))
    assert sweep.pack("e") == [0]


@pytest.mark.parametrize(
    ("kind", "starts", "fix"),
    [
        (
            EndingKind.LOW_MEMORY,
            20,
            "because the machine ran low on memory): free memory on that machine, then",
        ),
        (EndingKind.PROCESS_DIED, 3, "the same Ray token (or RAY_AUTH_MODE=disabled), then run"),
    ],
)
def test_workers_that_never_start_a_trial_end_the_sweep_with_what_to_do(
    store: Store, tmp_path: Path, kind: EndingKind, starts: int, fix: str
) -> None:
    """Memory that another program took may come back."""
    sweep = Sweep(store, tmp_path, 1)
    for number in range(starts - 1):
        assert sweep.pack(str(number)) == [0]
        sweep.ended(str(number), Ending(kind))
    assert sweep.pack("last") == [0]
    with pytest.raises(UserError, match=re.escape(fix)):
        sweep.ended("last", Ending(kind))


def measuring(store: Store, storage: Path) -> Sweep:
    """Of two done trials that lack two measurements; a trial has one attempt."""
    later.store_done(store, PLAN[:2], storage)
    lacking = store.lacking(later.KEY, later.NAMES)
    return Sweep(store, storage, 2, lacking=lacking, options={"max_attempts": 1})


def write_measurements(storage: Path, number: int, names: Sequence[str]) -> None:
    for name in names:
        folder = TrialFolder(trial_directory(storage, IDS[number]), IDS[number])
        folder.write_measurement(name, ({name.partition("@")[0]: number}, None))


def test_a_death_after_the_last_measurement_was_written_is_no_failure(
    store: Store, tmp_path: Path
) -> None:
    sweep = measuring(store, tmp_path)
    for number, names_written in enumerate((later.NAMES, later.NAMES[:1])):
        assert sweep.pack("a") == [number]
        sweep.tell("a", at=number)
        write_measurements(tmp_path, number, names_written)
        sweep.ended("a", DEATH)
    assert sweep.finished
    assert sweep.not_measured == {IDS[1]: "its process died"}
    assert store.lacking(later.KEY, later.NAMES) == {IDS[1]: ["second@1"]}


def test_a_driver_that_does_not_know_what_another_has_measured_takes_the_files(
    store: Store, tmp_path: Path
) -> None:
    """Both planned before either began: the second one's workers find the files and write none."""
    drivers = [measuring(store, tmp_path), measuring(store, tmp_path)]
    for sweep in drivers:
        for number in range(2):
            if sweep is drivers[0]:
                write_measurements(tmp_path, number, later.NAMES)
            assert sweep.run("a") == [number]
        assert (sweep.finished, sweep.not_measured, sweep.claimed) == (True, {}, [])
        assert [row["metrics"] for row in store.results(later.KEY)] == [
            {"first": n, "second": n} for n in range(2)
        ]
    assert states(store)[:2] == ["done"] * 2
