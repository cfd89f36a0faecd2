"""Decide whether an error affects one trial, its process or the whole sweep."""

from __future__ import annotations

import errno
import sys

from orchestrator.storage import DISK_TROUBLES, BucketError, Storage
from orchestrator.worker.messages import Ending, EndingKind
from trainables.errors import KEPT, UserError
from trainables.runtime import Runtime
from trainables.trial_folder import TrialFolder, UnreadableFileError


class BrokenProcessError(Exception):
    """This process can run no further trial; another process gets the rest of the pack."""


class MemoryShortageError(BrokenProcessError):
    """The trial ran out of memory."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.ending = Ending(EndingKind.OUT_OF_MEMORY, f"{EndingKind.OUT_OF_MEMORY} ({reason})")


class HaltError(BrokenProcessError):
    """A problem prevents every trial from running, so the sweep must stop."""


def cause_of(
    error: BaseException, folder: TrialFolder | None, storage: Storage, runtime: Runtime
) -> str:
    """Return why the trial failed, and log the cause in `folder`, if given.

    Raises HaltError if the disk or storage fails, and MemoryShortageError if memory ran out.
    """
    trouble = DISK_TROUBLES.get(error.errno or 0) if isinstance(error, OSError) else None
    if trouble is not None:
        raise HaltError(
            f"The disk of {storage.work_folder} {trouble} and run the same command again; {KEPT}"
        ) from error
    if folder is None:
        if isinstance(error, BucketError):
            raise HaltError(f"{error}; {KEPT}") from error
        if isinstance(error, UserError):
            raise HaltError(str(error).rstrip(".")) from error
        return f"{type(error).__name__}: {error}"
    if isinstance(error, UnreadableFileError):
        raise HaltError(f"{storage.in_words_of_user(str(error), folder)}; {KEPT}") from error
    if isinstance(error, UserError):
        cause = storage.in_words_of_user(str(error), folder)
        folder.log(f"failed: {cause}")
    else:
        cause = folder.failure_cause(error, runtime.code)
    if asks_for_memory(error):
        raise MemoryShortageError(cause) from error
    return cause


def asks_for_memory(error: BaseException) -> bool:
    """Return whether host or GPU memory ran out, as the error or its cause shows."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        # torch's errors, for a GPU and for the host.
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
        or (error.__cause__ is not None and asks_for_memory(error.__cause__))
    )


def gpu_is_lost(runtime: Runtime) -> bool:
    """Return whether the CUDA context is unusable; running out of memory leaves it usable."""
    if "torch" not in sys.modules:
        return False
    from trainables.device import wait

    try:
        wait(runtime.device)
    except RuntimeError:
        return True
    return False
