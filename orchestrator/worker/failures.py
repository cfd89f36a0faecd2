"""What a trial's trouble means: for the trial, for the process, and for the sweep."""

from __future__ import annotations

import errno
import sys

from orchestrator.storage import DISK_TROUBLES, BucketError, Storage
from trainables.errors import KEPT, UserError
from trainables.runtime import Runtime
from trainables.trial_folder import TrialFolder, UnreadableFileError


class BrokenProcessError(Exception):
    """This process can run no further trial; the driver hands the rest of the pack to another
    one."""


class MemoryShortageError(BrokenProcessError):
    """The trial that it was at asked for memory that there was not."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class HaltError(BrokenProcessError):
    """No process can: see `TrialEvent.halt`."""


def cause_of(
    error: BaseException, folder: TrialFolder | None, storage: Storage, runtime: Runtime
) -> str:
    """Why the trial failed, told in its log; `folder` is its folder here, None where that could not
    be had.

    Raises HaltError if the disk takes nothing more, or the storage fails or is gone, which is no
    trial's failure. And MemoryShortageError, since alone, in a process of its own, the trial may
    have enough."""
    trouble = DISK_TROUBLES.get(error.errno or 0) if isinstance(error, OSError) else None
    if trouble is not None:
        raise HaltError(
            f"The disk of {storage.work_folder} {trouble} and type the same command again; {KEPT}"
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
        cause = folder.failure_cause(error, runtime.layer_files)
    if asks_for_memory(error):
        raise MemoryShortageError(cause) from error
    return cause


def asks_for_memory(error: BaseException) -> bool:
    """Whether the error, or the one behind it, says that there is too little memory, of the machine
    or of its GPU."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        # torch's own, for a GPU, and what it raises for the machine.
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
        or (error.__cause__ is not None and asks_for_memory(error.__cause__))
    )


def gpu_is_lost(runtime: Runtime) -> bool:
    """True after an error that leaves the process' CUDA context unusable (running out of memory
    does not)."""
    if "torch" not in sys.modules:
        return False
    from trainables.device import wait

    try:
        wait(runtime.device)
    except RuntimeError:
        return True
    return False
