"""Checkpoints: one file holds everything that the next step depends on, written whole or not at
all.

Format: safetensors (numbers only, nothing is unpickled), with the non-tensor state as JSON in its
header, and there the SHA-256 of the whole file as it is with 64 zeros in place of these digits. The
last two are kept, so that a machine that dies while writing, or a disk that fills up, still leaves
a good one."""

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
    unreadable,
    write_file,
)
from trainables.trial_folder.folder import TrialFolder

KEPT = 2
UNKNOWN = "0" * 64
"""What stands for the checksum while it is computed."""
CHUNK = 2**20


def save_tensors(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write tensors and JSON state as one safetensors file, atomically."""
    _write_sealed(path, _serialised(tensors, state))


def _serialised(tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> bytes:
    """The file, without its checksum."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # One entry: of several, the file would have them in any order.
    return save(
        contiguous, metadata={"state": json.dumps({**state, "sha256": UNKNOWN}, allow_nan=False)}
    )


def _write_sealed(path: Path, content: bytes) -> None:
    start = 8 + int.from_bytes(content[:8], "little")
    header, data = content[:start], memoryview(content)[start:]
    checksum = hashlib.sha256(content).hexdigest()
    write_file(path, header.replace(_entry(UNKNOWN), _entry(checksum), 1), data)


def load_tensors(path: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote. Raises OSError, and DamagedFileError if the file is not
    whole, has changed since or is not one of ours."""
    open_file(path).close()
    try:
        with safe_open(path, framework="pt", device=device) as file:
            metadata = file.metadata()
            state = json.loads(metadata["state"])
            stated = state.pop("sha256")
            if len(metadata) > 1 or _checksum(path, str(stated)) != stated:
                raise DamagedFileError(f"{path} is not what was written, by its checksum")
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
        raise DamagedFileError(
            f"{path} is not a checkpoint of this program, or not whole"
        ) from error


def _entry(checksum: str) -> bytes:
    return json.dumps(f'"sha256": "{checksum}"')[1:-1].encode()


def _checksum(path: Path, stated: str) -> str:
    """Of a file with a whole header, in which `stated` stands for its checksum."""
    with open_file(path) as file:
        size = file.read(8)
        header = file.read(int.from_bytes(size, "little"))
        checksum = hashlib.sha256(size + header.replace(_entry(stated), _entry(UNKNOWN), 1))
        while chunk := file.read(CHUNK):
            checksum.update(chunk)
    return checksum.hexdigest()


class Checkpoints:
    """The checkpoints of one trial in its folder. A thread of the process writes those of all its
    trials."""

    _writer: ClassVar = ThreadPoolExecutor(1)
    _latest: ClassVar[Future[None] | None] = None

    def __init__(self, folder: TrialFolder) -> None:
        self.folder = folder
        self._writing: Future[None] | None = None
        self.seconds = 0.0
        """From the start of the last save until it was on disk."""

    @staticmethod
    def busy() -> bool:
        """Whether a checkpoint of any trial is being written."""
        latest = Checkpoints._latest
        return latest is not None and not latest.done()

    def save(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Write the checkpoint of this step and drop all but the last two.

        Raises SupersededError, with nothing written, where another worker has taken the trial over.
        """
        self.begin(step, tensors, state)
        self.wait()

    def begin(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Copy the numbers, and write them in a thread. Raises the error of the previous write."""
        self.wait()
        self.folder.check_fence()
        started = time.monotonic()
        content = _serialised(tensors, {**state, "trial_id": self.folder.trial_id})
        self._writing = Checkpoints._latest = self._writer.submit(
            self._write, step, content, started
        )

    def wait(self) -> None:
        """Wait until the checkpoint is on disk. Raises OSError or SupersededError if it could not
        be written."""
        writing, self._writing = self._writing, None
        try:
            if writing is not None:
                writing.result()
        except OSError:
            self.folder.check_fence()  # whoever took the trial over may have removed the folder
            raise

    def _write(self, step: int, content: bytes, started: float) -> None:
        self.folder.check_fence()
        _write_sealed(self.folder.checkpoint(step), content)
        for old in self.folder.checkpoints()[:-KEPT]:
            remove(old)
        self.seconds = time.monotonic() - started

    def latest(self, device: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The newest checkpoint that is as it was written, or None; `folder.note` is told of
        others.

        Raises UserError where this user may not read one, and OSError where the disk fails.
        """
        for path in reversed(self.folder.checkpoints()):
            try:
                tensors, state = load_tensors(path, device)
                if state.get("trial_id") != self.folder.trial_id:
                    raise DamagedFileError(f"{path} is a checkpoint of another trial")
            except PermissionError as error:
                raise unreadable(path, error) from error
            except (DamagedFileError, FileNotFoundError) as error:
                # Or it would count among the last two.
                with suppress(OSError):
                    set_aside(path)
                self.folder.note(
                    f"{first_line(error)}: it goes on from the checkpoint before, or from the start"
                )
                continue
            return tensors, state
        return None
