from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from orchestrator.schedule import dispatcher
from orchestrator.store import Store
from orchestrator.worker import Ending, EndingKind
from tests.orchestrator.schedule.numbered_trials import (
    DEATH,
    IDS,
    PLAN,
    Searches,
    Sweep,
    states,
)
from trainables.errors import UserError
from trainables.trial_folder import TrialOutcome


def test_packs_are_claimed_when_handed_out(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path)
    assert sweep.pack("a") == [0, 1, 2]
    assert states(store) == ["running"] * 3 + ["planned"] * 3
    sweep.report("a", 0, at=1)
    sweep.close()
    assert states(store) == ["done"] + ["planned"] * 5


def test_other_drivers_trials_are_awaited(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "POLL_S", 0.0)
    sweep = Sweep(store, tmp_path)
    assert store.claim(IDS[:2], owner="another", lease_s=600) == dict.fromkeys(IDS[:2], 1)
    assert [sweep.run(key) for key in "ab"] == [[2], [3, 4, 5]]
    assert (sweep.pack("c"), sweep.finished) == ([], False)
    store.record(TrialOutcome(trial_id=IDS[0], state="done"), run_id=1)
    store.release("another", [IDS[1]])
    assert sweep.run("d") == [1]
    assert sweep.finished
    assert states(store) == ["done"] * 6


def test_stopped_trials_are_returned(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path)
    assert sweep.pack("a") == [0, 1, 2]
    sweep.report("a", 0, at=1)
    sweep.stop([IDS[1], IDS[4]])
    assert (sweep.give_up(), sweep.give_up()) == (["a"], [])
    sweep.end_pack("a", DEATH)
    assert [sweep.run(key) for key in "bc"] == [[2], [3, 5]]
    assert sweep.finished
    assert states(store) == ["done", "planned", "done", "done", "planned", "done"]
    assert sweep.listener.stopped_names == ["seed=1", "seed=4"]


def test_stopped_trial_gets_no_retry(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, 1)
    sweep.die("a", at=0)
    assert states(store)[0] == "running"
    sweep.stop(IDS[:1])
    assert sweep.pack("b") == []
    assert (states(store)[0], sweep.claimed_trials) == ("planned", [])


def test_stopped_waiting_pack_is_dropped(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, 2)
    assert sweep.pack("a") == [0, 1]
    sweep.stop(IDS[:1])
    assert sweep.give_up() == []
    sweep.stop(IDS[1:2])
    assert sweep.give_up() == ["a"]
    sweep.end_pack("a")
    assert sweep.pack("b") == []
    assert (sweep.finished, states(store)[:2]) == (True, ["planned"] * 2)


def test_pack_count_follows_machines(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, seconds_per_trial=100.0)
    sweep.resize(1)
    assert [sweep.pack(key) for key in "abc"] == [[0], [1], []]
    sweep.resize(2)
    assert sweep.pack("c") == [2]


def test_user_may_limit_packs(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, options={"max_concurrent": 1})
    assert [sweep.pack(key) for key in "ab"] == [[0, 1, 2], []]
    assert not sweep.finished


def test_oversized_pack_is_returned(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, 3)
    refusal = "The machine third (10.0.0.3) has torch 2.0."
    for key in "abcde":
        assert sweep.pack(key) == [0, 1, 2]
        sweep.end_pack(key, Ending(EndingKind.MACHINE_UNFIT, refusal))
    assert sweep.pack("f") == [0, 1, 2]
    assert (sweep.give_up(["f"]), sweep.give_up(["f"])) == (["f"], [])
    sweep.end_pack("f")
    assert sweep.pack("g") == [0, 1, 2]
    sweep.report("g", at=0)
    assert sweep.give_up(["g"]) == [], "the pack has a machine"


def test_early_error_leaves_no_claim(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a claim were left behind, this process would renew it until the process ends."""

    def lost(*_: object) -> NoReturn:
        raise UserError("the connection was lost")

    monkeypatch.setattr(Searches, "stop_above", lost)
    searched = Sweep(store, tmp_path, 3, source=Searches())
    with pytest.raises(UserError, match="was lost"):
        searched.pack("a")
    assert searched.claimed_trials == PLAN[:1]
    searched.close()
    assert states(store) == ["planned"] * 6
