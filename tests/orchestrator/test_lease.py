"""Who is alive: told from real processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.lease import LeaseKeeper, dead_owners, this_owner
from orchestrator.store.opening import open_store
from orchestrator.store.records import StudyKey
from tests.orchestrator.scripted_trials import planned
from trainables.errors import UserError


def owner_of_a_process_that_ended() -> str:
    program = "from orchestrator.lease import this_owner; print(this_owner())"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_of_all_owners_only_ended_processes_of_this_machine_are_dead() -> None:
    dead, alive = owner_of_a_process_that_ended(), this_owner()
    elsewhere = "another-host:" + dead.split(":", 1)[1]
    host, kernel, pid, start = alive.rsplit(":", 3)
    recycled = f"{host}:{kernel}:{pid}:{int(start) - 1}"
    before_the_boot = f"{host}:00000000-1:{pid}:1"
    owners = [dead, alive, elsewhere, recycled, before_the_boot, "a name of some other form"]
    assert dead_owners(owners) == [dead, recycled]


def test_the_keeper_holds_trials_past_their_lease_and_only_while_it_lives(tmp_path: Path) -> None:
    plan = planned([1])
    ids = [plan[0].trial_id]
    with open_store(f"sqlite:///{tmp_path}/results.db") as store:
        store.register(StudyKey(study="held", scale="smoke", corpus="none"), plan)
        store.claim(ids, owner="me", lease_s=0.6)
        with LeaseKeeper(store, "me", lease_s=0.6) as keeper:
            time.sleep(1.2)
            keeper.check()
            assert store.claim(ids, owner="another", lease_s=60) == []
        time.sleep(0.8)
        assert store.claim(ids, owner="another", lease_s=60) == ids


def test_a_store_that_takes_no_renewal_is_an_error_of_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> int:
        raise UserError("The disk is full.")

    with open_store(f"sqlite:///{tmp_path}/results.db") as store:
        monkeypatch.setattr(type(store), "renew", full_disk)
        with LeaseKeeper(store, "me", lease_s=0.1) as keeper:
            time.sleep(0.3)
        with pytest.raises(UserError, match="The disk is full"):
            keeper.check()
