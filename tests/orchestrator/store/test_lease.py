"""Who is alive: told from real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from orchestrator.command.results import status
from orchestrator.store.lease import LeaseKeeper, dead_owners, this_owner
from orchestrator.store.opening import open_store
from orchestrator.store.records import StudyKey
from orchestrator.store.store import Store
from tests.support.scripted_trials import planned
from trainables.errors import UserError

KEY = StudyKey(study="held", scale="smoke", corpus="none")


def owner_of_a_process_that_ended() -> str:
    program = "from orchestrator.store.lease import this_owner; print(this_owner())"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_of_all_owners_only_ended_processes_of_this_machine_are_dead() -> None:
    dead, alive = owner_of_a_process_that_ended(), this_owner()
    elsewhere = "another-host:" + dead.split(":", 1)[1]
    host, kernel, pid, start = alive.rsplit(":", 3)
    recycled = f"{host}:{kernel}:{pid}:{int(start) - 1}"
    before_the_boot = f"{host}:00000000-1:{pid}:1"
    owners = [dead, alive, elsewhere, recycled, before_the_boot, "a name of some other form"]
    assert dead_owners(owners) == [dead, recycled]


def test_status_counts_nothing_as_running_that_a_killed_command_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"sqlite:///{tmp_path}/results.db"
    plan = planned([1, 2])
    with open_store(address) as store:
        store.register(KEY, plan)
        for trial, owner in zip(plan, (owner_of_a_process_that_ended(), this_owner()), strict=True):
            store.claim([trial.trial_id], owner=owner, lease_s=60)
    status("held", store=address, form="json")
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["running"], line["planned"]) == (1, 1)


def test_the_keeper_renews_its_owners_lease_while_it_lives_and_no_longer(tmp_path: Path) -> None:
    plan = planned([1])
    with open_store(f"sqlite:///{tmp_path}/results.db") as store:
        store.register(KEY, plan)
        store.claim([plan[0].trial_id], owner="me", lease_s=0.3)
        first = lease_until(store)
        with LeaseKeeper(store, "me", lease_s=0.3) as keeper:
            deadline_s = time.monotonic() + 20
            while lease_until(store) <= first and time.monotonic() < deadline_s:
                time.sleep(0.05)
            keeper.check(1)
        last = lease_until(store)
        assert last > first
        time.sleep(0.4)
        assert lease_until(store) == last


def lease_until(store: Store) -> datetime:
    """Of the one trial of the study."""
    moment = store.trials(KEY)[0].lease_until
    assert moment is not None
    return moment


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
            keeper.check(1)


STANDS_STILL = """
import sys, time
from orchestrator.store.lease import LeaseKeeper
from orchestrator.store.opening import open_store
from tests.support.scripted_trials import planned

url, lease_s = sys.argv[1], 1.0
ids = [trial.trial_id for trial in planned([1, 2])]
with open_store(url) as store:
    store.claim(ids, owner="me", lease_s=lease_s)
    with LeaseKeeper(store, "me", lease_s=lease_s) as keeper:
        print("holding", flush=True)
        sys.stdin.readline()
        for _ in range(20):
            keeper.check(2)
            time.sleep(0.05)
        print("goes on", flush=True)
"""


@pytest.mark.parametrize("taken", [0, 1])
def test_a_driver_that_stood_still_goes_on_unless_its_trials_were_taken_over(tmp_path: Path, taken: int) -> None:
    plan, url = planned([1, 2]), f"sqlite:///{tmp_path}/results.db"
    ids = [trial.trial_id for trial in plan]
    with open_store(url) as store:
        store.register(KEY, plan)
        command = [sys.executable, "-c", STANDS_STILL, url]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as driver:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "holding\n"
            os.kill(driver.pid, signal.SIGSTOP)
            time.sleep(1.5)
            assert store.claim(ids[:taken], owner="another", lease_s=60) == ids[:taken]
            os.kill(driver.pid, signal.SIGCONT)
            output, errors = driver.communicate("\n", timeout=30)
        assert ("goes on" in output) == (taken == 0)
        assert ("1 of its trials were taken over by another one" in errors) == (taken == 1)
        assert [row.owner for row in store.trials(KEY)] == ["another"] * taken + ["me"] * (2 - taken)
