"""Names and leases of processes that own trials, and detection of dead owners."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from orchestrator.store.claims import TAKEN_OVER
from orchestrator.store.store import Store
from trainables.errors import GO_ON, UserError
from trainables.pulse import repeated
from trainables.trial_folder import this_machine

LEASE_S = 60.0
"""Seconds without renewal after which another driver may take over a trial."""
RENEWALS_PER_LEASE = 3


def this_owner() -> str:
    """Return this process's name as an owner, "host:kernel:pid:start", which is never reused."""
    pid = os.getpid()
    return f"{_kernel()}:{pid}:{_start(pid)}"


def dead_owners(owners: Iterable[str]) -> list[str]:
    """Return the owners whose process ran on this host and no longer exists.

    Owners on another host, in another container or from before a reboot cannot be checked; their
    leases run out.
    """
    processes = ((owner, owner.rsplit(":", 2)) for owner in owners)
    return [
        owner
        for owner, (kernel, *process) in processes
        if kernel == _kernel() and process[0].isdecimal() and _start(int(process[0])) != process[1]
    ]


def expire_dead_owners(store: Store) -> None:
    """Release the running trials of drivers that died on this host."""
    for owner in dead_owners(store.owners()):
        store.release(owner, cause=TAKEN_OVER)


def _kernel() -> str:
    # A process id is unique only within one boot and one process-id namespace.
    with suppress(FileNotFoundError):
        return f"{this_machine()}-{Path('/proc/self/ns/pid').stat().st_ino}"
    return this_machine()  # without /proc, a start is a date


def _start(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        text = Path(f"/proc/{pid}/stat").read_text()
        state, *fields = text.rpartition(")")[2].split()
        return "" if state == "Z" else fields[18]
    with suppress(psutil.Error):
        return str(psutil.Process(pid).create_time())
    return ""


def _since_boot_s() -> float:
    # Unlike `time.monotonic`, these clocks of Linux and macOS include the host's sleep.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaseKeeper:
    """Context manager with a thread that renews an owner's leases."""

    def __init__(self, store: Store, owner: str, lease_s: float = LEASE_S) -> None:
        self._store, self._owner, self._lease_s = store, owner, lease_s
        self._error: Exception | None = None
        self._renewed_s = _since_boot_s()
        self._has_lapsed = False
        self._renewals = repeated(self._keep, lease_s / RENEWALS_PER_LEASE)

    def __enter__(self) -> Self:
        self._renewals.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        self._renewals.__exit__(None, None, None)

    def check(self, claim_count: int) -> None:
        """Raise an error if the store would no longer accept this owner's results.

        Raises the renewing thread's error, if any. Raises UserError if this process was suspended
        (a laptop slept) and another driver took over some of the `claim_count` trials.
        """
        if self._error is not None:
            raise self._error
        if not self._has_lapsed and _since_boot_s() - self._renewed_s <= self._lease_s:
            return
        lost_count = claim_count - self._renew()
        self._has_lapsed = False
        if lost_count > 0:
            raise UserError(
                f"This command was suspended for more than {self._lease_s:g} s. Another command "
                f"took over {lost_count} of its trials: {GO_ON}"
            )

    def _keep(self) -> None:
        try:
            self._renew()
        except Exception as error:
            # A failed renewal may succeed later while the lease lasts.
            if (
                not isinstance(error, UserError)
                or _since_boot_s() - self._renewed_s > self._lease_s
            ):
                self._error = error  # raised on the main thread, by `check`

    def _renew(self) -> int:
        start_s = _since_boot_s()
        owned_count = self._store.renew(self._owner, self._lease_s)
        if _since_boot_s() - self._renewed_s > self._lease_s:
            self._has_lapsed = True
        self._renewed_s = start_s
        return owned_count
