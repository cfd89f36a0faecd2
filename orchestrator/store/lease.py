"""Who runs a trial: a driver's name, the lease it renews while it lives, and how to tell that it is
dead."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from orchestrator.store.claims import TAKEN_OVER
from orchestrator.store.store import Store
from trainables.errors import GO_ON, UserError

LEASE_S = 60.0
"""After so long without renewal a trial of a driver on another machine is taken over."""
RENEWALS_PER_LEASE = 3


def this_owner() -> str:
    """This process as "host:kernel:pid:start": no other process ever has the same name."""
    pid = os.getpid()
    return f"{socket.gethostname()}:{_kernel()}:{pid}:{_start_ticks(pid)}"


def dead_owners(owners: Iterable[str]) -> list[str]:
    """Those owners that were processes of this machine and no longer exist.

    Of owners elsewhere, in another container or before the last boot, this machine cannot tell;
    their leases run out."""
    here = [socket.gethostname(), _kernel()]
    processes = ((owner, owner.rsplit(":", 3)) for owner in owners)
    return [
        owner
        for owner, parts in processes
        if len(parts) == 4
        and parts[:2] == here
        and parts[2].isdecimal()
        and _start_ticks(int(parts[2])) != parts[3]
    ]


def expire_dead_owners(store: Store) -> None:
    """Make planned again what drivers of this machine were running that no longer exist."""
    for owner in dead_owners(store.owners()):
        store.release(owner, cause=TAKEN_OVER)


def _kernel() -> str:
    """This boot and this process id namespace: a process id means something only within both."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
    return f"{boot_id[:8]}-{Path('/proc/self/ns/pid').stat().st_ino}"


def _start_ticks(pid: int) -> str:
    """Return when a process started, in clock ticks since boot; "" if there is none, or a zombie.

    The fields of its `stat` are those of proc(5). Raises OSError if this user may not look."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    state, *fields = text.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]


def _since_boot_s() -> float:
    """Seconds since boot, those counted in which the machine slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseKeeper:
    """Context in which a thread renews the owner's lease. `check`, on the main thread, raises what
    went wrong."""

    def __init__(self, store: Store, owner: str, lease_s: float = LEASE_S) -> None:
        self._store, self._owner, self._lease_s = store, owner, lease_s
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._renewed_s = _since_boot_s()
        self._lapsed = False
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def check(self, held: int) -> None:
        """Raise the error for which the lease ran out, if one did: a store that takes no lease
        takes no result.

        Raises UserError where this process stood still for longer than its lease (a laptop that
        slept) and owns fewer trials by now than the `held` ones it believes to: another driver runs
        those, or has ended them."""
        if self._error is not None:
            raise self._error
        if not self._lapsed and _since_boot_s() - self._renewed_s <= self._lease_s:
            return
        lost = held - self._renew()
        self._lapsed = False
        if lost > 0:
            raise UserError(
                f"This command stood still for more than {self._lease_s:g} s, and {lost} of its "
                f"trials were taken over by another one: {GO_ON}"
            )

    def _keep(self) -> None:
        while not self._ended.wait(self._lease_s / RENEWALS_PER_LEASE):
            try:
                self._renew()
            except Exception as error:
                # What fails once may succeed while the lease still has time to run.
                if (
                    not isinstance(error, UserError)
                    or _since_boot_s() - self._renewed_s > self._lease_s
                ):
                    self._error = error  # raised again on the main thread, by check
                    return

    def _renew(self) -> int:
        start_s = _since_boot_s()
        owned = self._store.renew(self._owner, self._lease_s)
        if _since_boot_s() - self._renewed_s > self._lease_s:
            self._lapsed = True
        self._renewed_s = start_s
        return owned
