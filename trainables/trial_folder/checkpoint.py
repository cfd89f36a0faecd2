"""Checkpoints: one file with everything that the next step depends on, written atomically.

The safetensors header holds the rest of the state as JSON, with the file's SHA-256 (computed with
64 zeros in place of its digits). The last two checkpoints are kept, so that a crash or a full disk
while writing leaves a good one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from trainables.errors import first_line
from trainables.trial_folder.files import (
    DamagedFileError,
    open_file,
    remove,
    set_aside,
    unreadable_error,
    write_file,
)
from trainables.trial_folder.folder import TrialFolder

Snapshot = tuple[dict[str, Tensor], dict[str, Any]]
"""A training state: tensors by name, and JSON data."""
CHECKPOINTS_KEPT = 2
MAX_SHARE = 0.05
"""Maximum share of a trial's time for checkpoints."""
BLANK = "0" * 64
CHUNK = 2**20


def save_tensors(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write tensors and JSON state as one safetensors file, atomically."""
    _write_sealed(path, _serialised(tensors, state))


def _serialised(tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> bytes:
    return save(
        {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
        # One entry, because the file may order several in any way.
        metadata={"state": json.dumps({**state, "sha256": BLANK}, allow_nan=False)},
    )


def _write_sealed(path: Path, content: bytes) -> None:
    start = 8 + int.from_bytes(content[:8], "little")
    header, data = content[:start], memoryview(content)[start:]
    checksum = hashlib.sha256(content).hexdigest()
    write_file(path, header.replace(_entry(BLANK), _entry(checksum), 1), data)


def load_tensors(path: Path, device: str = "cpu") -> Snapshot:
    """Return the tensors and state that `save_tensors` wrote.

    Raises OSError, and DamagedFileError if the file is not a complete checkpoint.
    """
    open_file(path).close()
    try:
        with safe_open(path, framework="pt", device=device) as file:
            metadata = file.metadata()
            state = json.loads(metadata["state"])
            expected = state.pop("sha256")
            if len(metadata) > 1 or _checksum(path, str(expected)) != expected:
                raise DamagedFileError(f"{path} does not match its checksum")
            # Cloned: memory mapped at odd addresses can change the last bit of a vectorised sum.
            return {name: file.get_tensor(name).clone() for name in file.keys()}, state  # noqa: SIM118
    except (
        SafetensorError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise DamagedFileError(f"{path} is not a checkpoint, or is incomplete") from error


def _entry(checksum: str) -> bytes:
    return json.dumps(f'"sha256": "{checksum}"')[1:-1].encode()


def _checksum(path: Path, expected: str) -> str:
    with open_file(path) as file:
        size = file.read(8)
        header = file.read(int.from_bytes(size, "little"))
        checksum = hashlib.sha256(size + header.replace(_entry(expected), _entry(BLANK), 1))
        while chunk := file.read(CHUNK):
            checksum.update(chunk)
    return checksum.hexdigest()


class Checkpoints:
    """The checkpoints of one trial. One thread per process writes the checkpoints of all trials."""

    _writer: ClassVar = ThreadPoolExecutor(1)
    _latest: ClassVar[Future[None] | None] = None

    def __init__(self, folder: TrialFolder) -> None:
        self.folder = folder
        self._pending_write: Future[None] | None = None
        self._seconds = 0.0
        """Duration of the last save, in seconds."""
        self._saved_at = time.monotonic()

    def due(self, every_s: float, together: int = 1) -> bool:
        """Return whether to save, so that a killed process loses at most `every_s` seconds of work.

        Checkpoints are rarer if they would take over 5% of the time, and not written two at a time.
        `together`: number of trials that wait for each other's checkpoints.
        """
        interval_s = max(every_s, self._seconds * together / MAX_SHARE)
        latest = Checkpoints._latest
        is_busy = latest is not None and not latest.done()
        return not every_s or (not is_busy and time.monotonic() - self._saved_at >= interval_s)

    def save(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Write this step's checkpoint and delete all but the last two.

        Raises SupersededError, with nothing written, if another worker has the trial.
        """
        self.begin(step, tensors, state)
        self.wait()

    def begin(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Copy the tensors and write them in a thread. Raises the error of the previous write."""
        self.wait()
        self.folder.check_fence()
        start_time = time.monotonic()
        content = _serialised(tensors, {**state, "trial_id": self.folder.trial_id})
        self._pending_write = Checkpoints._latest = self._writer.submit(
            self._write, step, content, start_time
        )
        self._saved_at = time.monotonic()

    def wait(self) -> None:
        """Wait until the checkpoint is on disk. Raises OSError or SupersededError on failure."""
        pending_write, self._pending_write = self._pending_write, None
        try:
            if pending_write is not None:
                pending_write.result()
        except OSError:
            self.folder.check_fence()  # the next worker may have removed the folder
            raise

    def _write(self, step: int, content: bytes, start_time: float) -> None:
        self.folder.check_fence()
        _write_sealed(self.folder.checkpoint(step), content)
        for path in self.folder.checkpoints()[:-CHECKPOINTS_KEPT]:
            remove(path)
        self._seconds = time.monotonic() - start_time

    def latest(self, device: str) -> Snapshot | None:
        """Return the newest undamaged checkpoint, or None; report damaged ones to `folder.note`.

        Raises UserError if this user may not read a checkpoint, OSError if the disk fails.
        """
        for path in reversed(self.folder.checkpoints()):
            try:
                tensors, state = load_tensors(path, device)
                if state.get("trial_id") != self.folder.trial_id:
                    raise DamagedFileError(f"{path} is a checkpoint of another trial")
            except PermissionError as error:
                raise unreadable_error(path, error) from error
            except (DamagedFileError, FileNotFoundError) as error:
                # Otherwise it would count as one of the last two.
                with suppress(OSError):
                    set_aside(path)
                self.folder.note(
                    f"{first_line(error)}: resuming from an earlier checkpoint, or from the start"
                )
                continue
            return tensors, state
        return None
