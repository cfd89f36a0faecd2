from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainables.errors import UserError
from trainables.trial_folder import fence as fence_file
from trainables.trial_folder.fence import (
    FENCE,
    LEASE_S,
    LOCK,
    MAX_LOSSES,
    BusyError,
    Fence,
    SupersededError,
)

ROUNDS, WAIT_S = 20, 60.0
RACE = f"""
import multiprocessing, os, sys
from pathlib import Path
from trainables.trial_folder import fence as fence_file

def take(number):
    fence_file.this_machine = lambda: f"host{{number}}:boot"
    for index in range({ROUNDS}):
        fence = fence_file.Fence(Path(sys.argv[1]) / str(index))
        barrier.wait()
        try:
            fence.take(f"process {{number}}", "")
            is_winner = True
        except fence_file.BusyError:
            is_winner = False
        barrier.wait()
        if is_winner:
            fence.check()
            os.write(1, f"{{index}} ".encode())

forks = multiprocessing.get_context("fork")
barrier = forks.Barrier(20, timeout={WAIT_S})
processes = [forks.Process(target=take, args=(number,)) for number in range(20)]
for process in processes:
    process.start()
for process in processes:
    process.join()
"""
"""Twenty processes, each on its own machine, take the fences of folders at the same moment."""


def fence_of(folder: Path, machine: str, monkeypatch: pytest.MonkeyPatch) -> Fence:
    """Return a fence as another machine sees it, from now on."""
    (folder / LOCK).touch()
    monkeypatch.setattr(fence_file, "this_machine", lambda: machine)
    return Fence(folder)


def age(folder: Path, seconds: float) -> None:
    past_s = time.time() - seconds
    os.utime(folder / FENCE, (past_s, past_s))


def test_one_of_many_machines_wins(tmp_path: Path) -> None:
    """Without locks; every second folder has the old fence of a lost machine."""
    for index in range(ROUNDS):
        folder = tmp_path / str(index)
        folder.mkdir()
        (folder / LOCK).touch()
        if index % 2:
            Fence(folder).take("lost", "")
            age(folder, 2 * LEASE_S)
    ended = subprocess.run(
        [sys.executable, "-c", RACE, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(map(int, ended.stdout.split())) == list(range(ROUNDS))


def test_renewed_fence_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fence_of(tmp_path, "one", monkeypatch)
    first.take("job 1 on one", "")
    age(tmp_path, LEASE_S - 5)
    second = fence_of(tmp_path, "two", monkeypatch)
    for worker in ("job 2 on two", ""):
        with pytest.raises(BusyError, match="another machine"):
            second.take(worker, "")
    first.check()


def test_fence_is_renewed_while_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence_file, "RENEW_S", 0.05)
    fence = fence_of(tmp_path, "one", monkeypatch)
    fence.take("job 1 on one", "")
    age(tmp_path, 2 * LEASE_S)
    assert not fence.is_renewed()
    with fence.renewed():
        deadline_s = time.monotonic() + WAIT_S
        while not fence.is_renewed():
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    assert fence.holder() is None


def test_old_fence_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fence_of(tmp_path, "one", monkeypatch)
    first.take("job 1 on one", "")
    age(tmp_path, LEASE_S + 5)
    second = fence_of(tmp_path, "two", monkeypatch)
    second.take("job 2 on two", "")
    with pytest.raises(SupersededError):
        first.check()
    second.check()
    assert sorted(path.name for path in tmp_path.iterdir()) == [LOCK, FENCE]


def test_dead_worker_of_this_machine_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller has the lock, so the holder on the same machine is dead."""
    fence_of(tmp_path, "one", monkeypatch).take("job 1 on one", "")
    later = Fence(tmp_path)
    later.take("job 2 on one", "")
    later.check()


def test_slow_machine_respects_newer_fence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines see the same old fence; the second acts after the first has replaced it."""
    fence_of(tmp_path, "lost", monkeypatch).take("job 1 on lost", "")
    age(tmp_path, 2 * LEASE_S)
    first, second = Fence(tmp_path), fence_of(tmp_path, "two", monkeypatch)

    def look() -> bool:
        answer = Fence(tmp_path).is_renewed()
        first.take("job 2 on two", "")
        return answer

    monkeypatch.setattr(second, "is_renewed", look)
    with pytest.raises(BusyError):
        second.take("job 3 on three", "")
    first.check()


def test_times_come_from_the_file_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a machine may differ from that of the server which renews fences."""
    fence_of(tmp_path, "one", monkeypatch).take("job 1 on one", "")
    second = fence_of(tmp_path, "two", monkeypatch)
    monkeypatch.setattr(fence_file.time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    with pytest.raises(BusyError):
        second.take("job 2 on two", "")


def test_losses_end_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fence_of(tmp_path, "one", monkeypatch)
    for losses in range(MAX_LOSSES):
        fence = Fence(tmp_path)
        fence.take("job 1 on one", "checkpoint-1")
        holder = fence.holder()
        assert holder is not None and holder.losses == losses
    with pytest.raises(UserError, match=f"{MAX_LOSSES} workers in a row"):
        Fence(tmp_path).take("job 1 on one", "checkpoint-1")
    assert Fence(tmp_path).holder() is None
    Fence(tmp_path).take("job 1 on one", "checkpoint-1")


def test_new_checkpoint_resets_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fence_of(tmp_path, "one", monkeypatch)
    for number in range(3 * MAX_LOSSES):
        fence = Fence(tmp_path)
        fence.take("job 1 on one", f"checkpoint-{number // 3}")
        holder = fence.holder()
        assert holder is not None
        # The first loss after a new checkpoint counts.
        assert holder.losses == (number % 3 + 1 if number >= 3 else number)


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b'{"token": 3}', b"0123456789abcdef" * 2])
def test_unreadable_fence_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """A fence is empty for a moment, may be damaged, or be 32 digits of an older version."""
    fence = fence_of(tmp_path, "one", monkeypatch)
    (tmp_path / FENCE).write_bytes(content)
    with pytest.raises(BusyError):
        fence.take("job 1 on one", "")
    with pytest.raises(SupersededError):
        superseded = Fence(tmp_path)
        superseded.take("", "")
        (tmp_path / FENCE).write_bytes(content)
        superseded.check()
    age(tmp_path, LEASE_S + 5)
    fence.take("job 1 on one", "")
    fence.check()


def test_driver_replaces_any_drivers_fence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store decides between drivers, so their fences need no lease."""
    first = fence_of(tmp_path, "one", monkeypatch)
    first.take("", "")
    second = fence_of(tmp_path, "two", monkeypatch)
    second.take("", "")
    with pytest.raises(SupersededError):
        first.check()
    with pytest.raises(BusyError):
        fence_of(tmp_path, "three", monkeypatch).take("job 1 on three", "")
