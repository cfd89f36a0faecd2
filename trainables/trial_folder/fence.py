"""The fence of a trial's folder: a file that names the worker which may write there.

A lock is not enough: a host that is cut off from the others does not see it, and keeps training.
Hosts that share a network file system may not share locks at all. So a worker renews its fence, and
other hosts wait until the fence is old.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from trainables.config import Frozen
from trainables.errors import UserError
from trainables.pulse import repeated
from trainables.trial_folder.files import DamagedFileError, open_file, read_file, write_file

LOCK, FENCE = "lock", "worker"
LEASE_S, RENEW_S = 60.0, 10.0
"""Age at which another host may take a fence, and time between two renewals."""
MAX_LOSSES = 5
"""A trial fails after this number of lost workers in a row without a new checkpoint."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


class SupersededError(Exception):
    """Another worker has taken over the trial; this worker's later work is discarded."""


class BusyError(SupersededError):
    """A worker without a driver has the trial."""


class Holder(Frozen):
    """Content of a fence."""

    token: str = ""
    machine: str = ""
    worker: str = ""
    """Name of a worker without a driver; empty if a driver decides who runs the trial."""
    losses: int = 0
    """Workers that were lost since the last new checkpoint."""
    checkpoint: str = ""
    """Newest checkpoint at the start."""


class Fence:
    """The fence in `folder`, as one process sees it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / FENCE
        self._token, self._pid = "", 0

    def holder(self) -> Holder | None:
        """Return the worker that has the fence, which may be dead. None if there is no fence."""
        try:
            return Holder.model_validate_json(read_file(self._path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValidationError, DamagedFileError):  # another worker is writing it
            return Holder()

    def is_renewed(self) -> bool:
        """Return whether the holder has renewed the fence lately."""
        now_s = time.time()
        with suppress(OSError):  # a read-only folder
            now_s = self._file_time()
        with suppress(OSError, DamagedFileError), open_file(self._path) as file:
            # An open file's time is up to date, even if the file system caches attributes.
            return now_s - os.fstat(file.fileno()).st_mtime < LEASE_S
        return False

    def take(self, worker: str, checkpoint: str) -> None:
        """Take the fence of a locked folder: the right to write until another worker takes it.

        `worker` is as in `Holder`. Raises BusyError if a worker without a driver is at work, or is
        the caller and a driver's worker is at work. Raises UserError after too many losses.
        """
        holder, losses = self.holder(), 0
        if holder is not None and (worker or holder.worker):
            # The lock is ours, so a holder on this machine is dead.
            if holder.machine != this_machine() and self.is_renewed():
                raise BusyError(f"a worker on another machine runs the trial in {self._folder}")
            losses = 1 if holder.checkpoint != checkpoint else holder.losses + 1
            if losses >= MAX_LOSSES:
                self.drop()
                raise UserError(f"{losses} workers in a row were lost while they ran the trial")
        self._token, self._pid = secrets.token_hex(16), os.getpid()
        content = Holder(
            token=self._token,
            machine=this_machine(),
            worker=worker,
            losses=losses,
            checkpoint=checkpoint,
        ).model_dump_json()
        if worker:
            self._replace(holder, content)
        else:
            write_file(self._path, content.encode())

    def _file_time(self) -> float:
        # Times of one file server can be compared, and those of two hosts cannot.
        os.utime(self._folder / LOCK)
        return (self._folder / LOCK).stat().st_mtime

    def _replace(self, holder: Holder | None, content: str) -> None:
        # Of several hosts that see the same old fence, one creates `turn`, and the others give up.
        # If it dies before it has replaced the fence, the next period has another `turn`.
        period = int(self._file_time() // LEASE_S)
        turn = self._path.with_name(f".{FENCE}.{holder.token if holder else ''}.{period}.tmp")
        try:
            if holder is None:
                with self._path.open("x") as file:
                    file.write(content)
                return
            turn.touch(exist_ok=False)
            if self.holder() != holder:
                raise FileExistsError
            write_file(self._path, content.encode())
        except FileExistsError as error:
            raise BusyError(f"another worker has just taken {self._folder}") from error
        turn.unlink()

    def check(self) -> None:
        """Raise SupersededError if this worker took the fence and no longer has it."""
        if not self._token:
            return
        if not self._folder.is_dir():
            raise SupersededError(f"the folder {self._folder} was removed while the trial ran")
        # A process that an output layer forked from this one has the token but not the right.
        holder = self.holder()
        if os.getpid() != self._pid or holder is None or holder.token != self._token:
            raise SupersededError(f"another worker has taken over the trial in {self._folder}")

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Renew the fence until the context ends; then drop it."""

        def renew() -> None:
            with suppress(OSError, SupersededError):
                self.check()
                os.utime(self._path)

        try:
            with repeated(renew, RENEW_S):
                yield
        finally:
            with suppress(OSError, SupersededError):
                self.check()
                self.drop()

    def drop(self) -> None:
        """Remove the fence, even if another worker has it."""
        self._path.unlink(missing_ok=True)


@cache
def this_machine() -> str:
    """Return the name of this host and its boot: processes with this name share locks."""
    boot = ""
    with suppress(OSError):
        boot = BOOT.read_text().strip()[:8]
    return f"{socket.gethostname()}:{boot}"
