from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.schedule import trial_table
from orchestrator.store import Store
from orchestrator.worker import Ending, EndingKind, TrialEvent
from tests.orchestrator.schedule.numbered_trials import (
    DEATH,
    IDS,
    KEY,
    NO_MEMORY,
    PLAN,
    Sweep,
    done,
    folder_of,
    started,
    states,
)
from tests.support import scripted_measurements as later
from trainables.errors import UserError
from trainables.trial_folder import EpochMetrics, TrialOutcome


def test_damage_report_names_the_trial(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path)
    sweep.pack("a")
    sweep.process_events(
        "a", [started(0), TrialEvent(trial_id=IDS[0], note="it is damaged"), done(0)]
    )
    assert sweep.listener.notes == [f"{PLAN[0].name}: it is damaged."]
    assert states(store)[0] == "done"


def test_death_costs_only_running_trial(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path)
    sweep.pack("a")
    sweep.report("a", 0, at=1)
    sweep.end_pack("a", DEATH)
    assert [sweep.run(key) for key in "bc"] == [[2], [3, 4, 5]]
    sweep.die("d", at=1)
    assert sweep.finished
    assert states(store) == ["done", "failed"] + ["done"] * 4
    assert [row.attempt for row in store.trials(KEY)] == [1, 2, 1, 1, 1, 1]
    assert store.trials(KEY)[1].cause == "its process died (in each of 2 attempts)"


def test_out_of_memory_retries_alone(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path)
    assert [sweep.pack(key) for key in "ab"] == [[0, 1, 2], [3, 4, 5]]
    sweep.report("a", at=0)
    sweep.end_pack("a", NO_MEMORY)
    assert "alone" in sweep.listener.notes[0]
    assert sweep.pack("c") == [1, 2]
    assert sweep.pack("d") == [], "others are out"
    sweep.report("c", 1, 2)
    sweep.end_pack("c")
    sweep.report("b", 3, 4, 5)
    sweep.end_pack("b")
    assert sweep.pack("e") == [0]
    assert sweep._flights["e"].pack.alone
    sweep.report("e", at=0)
    sweep.end_pack("e", NO_MEMORY)
    assert sweep.finished
    assert states(store) == ["failed"] + ["done"] * 5
    assert "even alone" in str(store.trials(KEY)[0].cause)


def report_without_spectrum(sweep: Sweep, key: str, number: int) -> None:
    metrics = {"spectrum@1": {"press_rank": 1}}
    outcome = TrialOutcome(trial_id=IDS[number], state="done", measurements=metrics)
    sweep.process_events(key, [started(number), TrialEvent(trial_id=IDS[number], outcome=outcome)])


def test_damaged_result_costs_an_attempt(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, 2, seconds_per_trial=0.1)
    assert sweep.pack("a") == [0, 1]
    report_without_spectrum(sweep, "a", 0)
    assert states(store)[0] == "running"
    sweep.report("a", 1)
    sweep.end_pack("a")
    assert "it runs again" in sweep.listener.notes[0]
    assert sweep.pack("b") == [0]
    report_without_spectrum(sweep, "b", 0)
    sweep.end_pack("b")
    assert sweep.finished
    assert states(store)[:2] == ["failed", "done"]
    assert [row.attempt for row in store.trials(KEY)[:2]] == [2, 1]
    assert "spectrum.npy is missing (in each of 2" in str(store.trials(KEY)[0].cause)


def test_new_driver_owns_claimed_trials(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_table, "LEASE_S", -1.0)
    sweep = Sweep(store, tmp_path, options={"max_attempts": 1})
    sweep.pack("a")
    sweep.report("a", at=0)
    assert store.claim(IDS[:3], owner="another", lease_s=600) == dict.fromkeys(IDS[:3], 2)
    epoch = EpochMetrics(
        epoch=1, tokens=1, train_loss=9.0, valid_loss=9.0, averaging=False, seconds=1.0
    )
    diverged = TrialOutcome(trial_id=IDS[1], state="diverged", cause="the loss is not finite")
    sweep.process_events("a", [TrialEvent(trial_id=IDS[0], epoch=epoch), done(0), started(1)])
    sweep.process_events("a", [TrialEvent(trial_id=IDS[1], outcome=diverged), started(2)])
    sweep.end_pack("a", DEATH)
    assert states(store)[:3] == ["done", "running", "running"]
    assert [row.owner for row in store.trials(KEY)[:3]] == [None, "another", "another"]
    assert store.epochs(IDS[0]) == []
    assert (list(sweep.listener.outcomes), sweep.finished) == ([IDS[0]], False)


def test_machine_loss_costs_no_attempt(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, 1)
    for key, machine, there in (("a", "3", {"2"}), ("b", "2", {"3"}), ("c", "2", {"2", "3"})):
        sweep.die(key, at=0, ending=replace(DEATH, machine=machine))
        sweep.attempts.recount_losses(there)
    sweep.die("d", at=0, ending=replace(DEATH, machine="2"))
    assert store.trials(KEY)[0].cause == "its process died (in each of 2 attempts)"


def test_machine_killing_trial_fails(store: Store, tmp_path: Path) -> None:
    """The driver sees the process die before it sees the machine fail."""
    sweep = Sweep(store, tmp_path, 1)
    for machine in "012345":
        assert states(store)[0] != "failed", "the sixth start is the last"
        sweep.die(machine, at=0, ending=replace(DEATH, machine=machine))
        sweep.attempts.recount_losses({"another"})
    assert store.trials(KEY)[0].cause == f"{EndingKind.MACHINE_LEFT} (in each of 5 attempts)"


@pytest.mark.parametrize(
    ("kind", "starts", "fix"),
    [
        (EndingKind.LOW_MEMORY, 20, "memory on that machine"),
        (EndingKind.PROCESS_DIED, 3, "the same Ray token"),
        (EndingKind.ERROR, 3, "the same Ray token"),
        (EndingKind.MACHINE_LEFT, 30, None),
    ],
)
def test_missing_workers_end_the_sweep(
    store: Store, tmp_path: Path, kind: EndingKind, starts: int, fix: str | None
) -> None:
    """Low memory allows more starts, because another program may free its memory."""
    sweep = Sweep(store, tmp_path, 1)
    for number in range(starts - 1):
        assert sweep.pack(str(number)) == [0]
        sweep.end_pack(str(number), Ending(kind))
    assert sweep.pack("last") == [0]
    if fix is not None:
        with pytest.raises(UserError, match=fix):
            sweep.end_pack("last", Ending(kind))
    sweep.close()
    assert states(store)[0] == "planned", "no trial is blamed"


def measuring(store: Store, storage: Path) -> Sweep:
    later.store_done(store, PLAN[:3], storage)
    unmeasured = store.unmeasured(later.KEY, later.NAMES)
    options = {"max_attempts": 1, "max_failures": 1}  # a failed measurement is no failed trial
    return Sweep(store, storage, 3, unmeasured=unmeasured, options=options)


def write_measurements(storage: Path, number: int, names: Sequence[str]) -> None:
    for name in names:
        folder = folder_of(storage, number)
        folder.write_measurement(name, ({name.partition("@")[0]: number}, None))


def test_failed_measurement_costs_no_result(store: Store, tmp_path: Path) -> None:
    sweep = measuring(store, tmp_path)
    for number, names_written in enumerate((later.NAMES, later.NAMES[:1])):
        assert sweep.pack("a") == [number]
        sweep.report("a", at=number)
        write_measurements(tmp_path, number, names_written)
        sweep.end_pack("a", DEATH)
    assert sweep.pack("b") == [2]
    failed = TrialOutcome(trial_id=IDS[2], state="failed", cause="the weights are on strike")
    sweep.process_events("b", [started(2), TrialEvent(trial_id=IDS[2], outcome=failed)])
    sweep.end_pack("b")
    assert sweep.finished
    assert sweep.measurement_failures == {IDS[1]: "its process died", IDS[2]: failed.cause}
    unmeasured = {IDS[1]: ["second@1"], IDS[2]: [*later.NAMES]}
    assert store.unmeasured(later.KEY, later.NAMES) == unmeasured
    assert states(store)[:3] == ["done"] * 3


def test_other_drivers_measurements_are_read(store: Store, tmp_path: Path) -> None:
    """Both drivers plan the same measurements.

    The second driver's workers find the files that the first driver's workers wrote.
    """
    drivers = [measuring(store, tmp_path), measuring(store, tmp_path)]
    for sweep in drivers:
        for number in range(3):
            if sweep is drivers[0]:
                write_measurements(tmp_path, number, later.NAMES)
            assert sweep.run("a") == [number]
        assert (sweep.finished, sweep.measurement_failures, sweep.claimed_trials) == (True, {}, [])
        metrics = [row["metrics"] for row in store.results(later.KEY)]
        assert metrics == [{"first": number, "second": number} for number in range(3)]
