from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.command.status import status
from orchestrator.store import Store, open_store
from orchestrator.store.lease import LeaseKeeper, dead_owners, this_owner
from tests.support.laptop import HIDE_PROC, laptop_without_linux
from tests.support.processes import Process, Report
from tests.support.store_rows import KEY, ids, plan
from trainables.errors import UserError

TRIALS = ids(plan(2))


def report_owner(report: Report) -> None:
    report(this_owner())


@pytest.fixture
def dead(tmp_path: Path) -> str:
    (owner,) = Process(tmp_path, report_owner).end()
    assert isinstance(owner, str)
    return owner


@pytest.fixture
def address(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path}/results.db"
    with open_store(address) as store:
        store.register(KEY, plan(2))
    return address


def test_only_ended_local_processes_are_dead(dead: str) -> None:
    alive = this_owner()
    elsewhere = "another-host:" + dead.split(":", 1)[1]
    host, kernel, pid, start = alive.rsplit(":", 3)
    recycled = f"{host}:{kernel}:{pid}:{int(start) - 1}"
    before_the_boot = f"{host}:00000000-1:{pid}:1"
    owners = [dead, alive, elsewhere, recycled, before_the_boot, "a name of some other form"]
    assert dead_owners(owners) == [dead, recycled]


FORKED = """
import os
from orchestrator.store.lease import dead_owners, this_owner
read_end, write_end = os.pipe()
if (pid := os.fork()) == 0:
    os.write(write_end, this_owner().encode())
    os._exit(0)
child = os.read(read_end, 1000).decode()
os.waitpid(pid, 0)
elsewhere = "another-host:" + child.split(":", 1)[1]
assert child != this_owner()
assert dead_owners([this_owner(), child, elsewhere]) == [child]
"""


def test_dead_owners_are_known_without_proc(tmp_path: Path) -> None:
    environment = laptop_without_linux(tmp_path)
    words = [*HIDE_PROC, sys.executable, "-c", FORKED]
    answer = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def test_status_excludes_killed_commands_trials(
    address: str, dead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(address) as store:
        for trial_id, owner in zip(TRIALS, (dead, this_owner()), strict=True):
            store.claim([trial_id], owner=owner, lease_s=60)
    status("gss_grid", store=address, form="json")
    (line,) = json.loads(capsys.readouterr().out)["studies"]
    assert (line["counts"]["running"], line["counts"]["planned"]) == (1, 1)


def lease_until(store: Store) -> datetime:
    moment = store.trials(KEY)[0].lease_until
    assert moment is not None
    return moment


def test_failing_renewal_fails_the_sweep(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> int:
        raise UserError("The disk is full.")

    with open_store(address) as store:
        monkeypatch.setattr(type(store), "renew", full_disk)
        with LeaseKeeper(store, "me", lease_s=0.1) as keeper:
            time.sleep(0.5)
        with pytest.raises(UserError, match="The disk is full"):
            keeper.check(1)


def test_keeper_renews_the_lease(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = ["once", "twice"]

    def busy(store: Store, *arguments: Any) -> int:
        if failures:
            raise UserError(failures.pop())
        return renew(store, *arguments)

    with open_store(address) as store:
        store.claim(TRIALS, owner="me", lease_s=3)
        first, renew = lease_until(store), type(store).renew
        monkeypatch.setattr(type(store), "renew", busy)
        with LeaseKeeper(store, "me", lease_s=3) as keeper:
            deadline_s = time.monotonic() + 20
            while lease_until(store) <= first and time.monotonic() < deadline_s:
                time.sleep(0.05)
                keeper.check(2)
        last = lease_until(store)
        assert not failures and last > first
        time.sleep(1.2)
        assert lease_until(store) == last


def drive(report: Report, address: str) -> None:
    with open_store(address) as store:
        store.claim(TRIALS, owner="me", lease_s=1)
        with LeaseKeeper(store, "me", lease_s=1) as keeper:
            since_s, still_s = time.monotonic(), 0.0
            report("holding")  # read the clock first: the test suspends this process now
            while still_s < 1:
                time.sleep(0.05)
                still_s, since_s = time.monotonic() - since_s, time.monotonic()
                keeper.check(2)
            time.sleep(0.5)
            keeper.check(2)


@pytest.mark.parametrize("taken", [0, 1])
def test_stalled_driver_continues(address: str, tmp_path: Path, taken: int) -> None:
    driver = Process(tmp_path, drive, address)
    assert driver.receive() == "holding"
    driver.signal(signal.SIGSTOP)
    time.sleep(1.5)
    with open_store(address) as store:
        assert store.claim(TRIALS[:taken], owner="another", lease_s=60) == dict.fromkeys(
            TRIALS[:taken], 2
        )
        driver.signal(signal.SIGCONT)
        driver.end(status=taken)
        assert ("took over 1 of its trials" in driver.errors) == (taken == 1)
        assert [row.owner for row in store.trials(KEY)] == ["another"] * taken + ["me"] * (
            2 - taken
        )
