"""A trial's folder: names, formats and checksums of its files, and who may write them.

The folder holds `config.json`, whose hash is the trial's id, and `log.txt`. While the trial runs,
it also holds a lock, a fence, the last checkpoints, the epochs of a user's own trial, and a
program's output. Later it holds `result.json`, `spectrum.npy`, `kept.safetensors` (weights of the
best validation loss), and `measurement-NAME.json` for each measurement taken later from these
weights. The folder `files` has what a user's own trial wrote.

Every file except the log is complete or absent. Every read verifies a checksum, in the file or in a
JSON file that names it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import traceback
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from numpy import float64
from numpy.typing import NDArray

from trainables.config import WITH_SPECTRUM, AnyConfig, UserCode, read_config
from trainables.errors import UserError, first_line, line_of
from trainables.trial_folder.fence import Fence, this_machine
from trainables.trial_folder.files import (
    DamagedFileError,
    UnreadableFileError,
    append,
    is_locked,
    locked,
    open_file,
    read_file,
    read_record,
    remove,
    sealed,
    set_aside,
    write_file,
)
from trainables.trial_folder.measurement_file import (
    Measured,
    MeasurementFile,
    Metrics,
    Values,
)
from trainables.trial_folder.outcome import Epoch, TrialOutcome, UserEpoch
from trainables.trial_folder.vector import read_vector, write_vector

TRIALS = "trials"
CONFIG, LOG = "config.json", "log.txt"
RESULT, SPECTRUM, KEPT_WEIGHTS = "result.json", "spectrum.npy", "kept.safetensors"
RESULT_FILES = (RESULT, SPECTRUM)
FILE_KINDS = ("results", "weights", "checkpoints", "files")
CHECKPOINT, MEASUREMENT = "checkpoint-", "measurement-"
EPOCHS = f"{CHECKPOINT}epochs.jsonl"
TRIAL_ID = re.compile(r"[0-9a-f]{64}")
Result = tuple[TrialOutcome, NDArray[float64] | None]


class TrialFolder:
    """The folder of one trial at `path`, which need not exist yet."""

    def __init__(
        self, path: Path, trial_id: str, note: Callable[[str], None] = lambda _: None
    ) -> None:
        """`note` receives a sentence about each damaged file."""
        self.path, self.trial_id, self._note = path, trial_id, note
        self.fence = Fence(path)

    @property
    def kept_weights(self) -> Path:
        """File of the weights with the best validation loss."""
        return self.path / KEPT_WEIGHTS

    @property
    def error_log(self) -> Path:
        """File with the traceback of the error that ended the trial."""
        return self.path / "error.log"

    @property
    def log_file(self) -> Path:
        """Log of all attempts, a line per event, times in UTC."""
        return self.path / LOG

    def log(self, text: str) -> None:
        """Append a line to the log file, if it is writable."""
        line = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {text}\n"
        with contextlib.suppress(OSError):
            append(self.log_file, line.encode(errors="replace"))

    def note(self, text: str) -> None:
        """Report a damaged file to the log and to the caller's `note`."""
        self.log(text)
        self._note(text)

    def locked(self, *, wait: bool = True) -> AbstractContextManager[None]:
        """Lock the folder; another process that sees the lock waits.

        Without `wait`, raises BlockingIOError if the folder is locked.
        """
        return locked(self.path, wait=wait)

    def take_over(self, worker: str = "") -> None:
        """Take the fence. For `worker` and the errors see `Fence.take`."""
        self.fence.take(worker, "".join(path.name for path in self.checkpoints()[-1:]))

    def worker(self) -> str:
        """Return the name of the live worker without a driver that has the trial, or ""."""
        holder = self.fence.holder()
        if holder is None or not holder.worker:
            return ""
        is_here = holder.machine == this_machine()
        is_alive = is_locked(self.path) if is_here else self.fence.is_renewed()
        return holder.worker if is_alive else ""

    def in_use(self) -> bool:
        """Return whether a process on this host, or a worker without a driver, has the trial."""
        return is_locked(self.path) or bool(self.worker())

    def write_config(self, config: str) -> None:
        """Write the trial's config as JSON, unless the file exists."""
        path = self.path / CONFIG
        if not os.path.lexists(path):
            write_file(path, config.encode())

    def config(self) -> AnyConfig:
        """Return the trial's config. Raises DamagedFileError if it is missing or another's."""
        path = self.path / CONFIG
        try:
            config = read_config(json.loads(read_file(path)))
        except (OSError, ValueError, RecursionError) as error:
            raise DamagedFileError(f"{path} cannot be read ({first_line(error)})") from error
        if config.trial_id != self.trial_id:
            raise DamagedFileError(f"{path} is the config of another trial")
        return config

    def check_fence(self) -> None:
        """Raise SupersededError if this worker took the fence and no longer has it."""
        self.fence.check()

    def outcome(self) -> TrialOutcome | None:
        """Return the final outcome; None if it is missing, failed, pruned or damaged."""
        try:
            result = self.result()
        except DamagedFileError:
            return None
        return result[0] if result and result[0].state in ("done", "diverged") else None

    def result(self) -> Result | None:
        """Return the outcome with its spectrum; None if it is missing.

        Raises DamagedFileError for files that are truncated, changed or of another trial, and the
        errors of `read_record`.
        """
        path = self.path / RESULT
        outcome = read_record(path, TrialOutcome)
        if outcome is None:
            return None
        if outcome.trial_id != self.trial_id:
            raise DamagedFileError(f"{path} is the result of another trial, {outcome.trial_id}")
        return outcome, self.spectrum(outcome) if outcome.state == "done" else None

    def spectrum(self, outcome: TrialOutcome) -> NDArray[float64] | None:
        """Return an outcome's singular values, if it has any. Raises as `read_vector` does."""
        if not any(name.partition("@")[0] in WITH_SPECTRUM for name in outcome.measurements):
            return None
        return read_vector(self.path / SPECTRUM, outcome.checksums.get(SPECTRUM))

    def check_kept_weights(self) -> None:
        """Raise DamagedFileError if the kept weights do not match the result's checksum."""
        outcome = self.outcome()
        if outcome is not None and outcome.checksums.get(KEPT_WEIGHTS) != self._kept_checksum():
            raise DamagedFileError(f"{self.kept_weights} does not match its checksum")

    def _kept_checksum(self) -> str:
        with open_file(self.kept_weights) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def write_result(
        self, outcome: TrialOutcome, singular_values: NDArray[float64] | None
    ) -> TrialOutcome:
        """Write the outcome after its files; return it with their checksums.

        Raises SupersededError, with nothing written, if another worker has the fence.
        """
        self.check_fence()
        checksums = {}
        if singular_values is not None:
            checksums[SPECTRUM] = write_vector(self.path / SPECTRUM, singular_values)
        if outcome.state == "done" and self.kept_weights.is_file():
            checksums[KEPT_WEIGHTS] = self._kept_checksum()
        outcome = outcome.model_copy(update={"checksums": checksums})
        write_file(self.path / RESULT, sealed(outcome.model_dump_json(indent=1)))
        return outcome

    def set_aside_result(self) -> Path:
        """Rename an unusable result, so that no worker considers the trial finished."""
        return set_aside(self.path / RESULT)

    def forget_result(self) -> None:
        """Remove result and error log, so that the trial runs again or resumes."""
        # The folder itself may be the reason why the trial failed.
        with contextlib.suppress(NotADirectoryError):
            remove(self.path / RESULT)
            remove(self.error_log)

    def epochs(self) -> list[Epoch]:
        """Return the epochs of `write_epochs`, without those that a killed process left cut."""
        epochs: list[Epoch] = []
        with contextlib.suppress(OSError, ValueError):
            for line in (self.path / EPOCHS).read_bytes().splitlines():
                epochs.append(UserEpoch.model_validate_json(line))
        return epochs

    def write_epochs(self, epochs: Iterable[Epoch], *, again: bool) -> None:
        """Append epochs to those of this trial or, if `again`, replace them."""
        content = "".join(f"{epoch.model_dump_json()}\n" for epoch in epochs).encode()
        self.check_fence()
        (write_file if again else append)(self.path / EPOCHS, content)

    def checkpoint(self, step: int) -> Path:
        """Return the checkpoint file of this step."""
        return self.path / f"{CHECKPOINT}{step:012d}.safetensors"

    def checkpoints(self) -> list[Path]:
        """Return the existing checkpoint files, oldest first."""
        return sorted(self.path.glob(f"{CHECKPOINT}*.safetensors"))

    def forget_checkpoints(self) -> None:
        """Remove all checkpoints, also those set aside, and temporary files."""
        for path in [*self.path.glob(f"{CHECKPOINT}*"), *self.path.glob(".*.tmp")]:
            remove(path)

    def write_measurement(self, name: str, measured: tuple[Metrics, Values]) -> None:
        """Write a later measurement durably: first its spectrum, then its metrics."""
        spectrum, metrics_file = self._measurement_files(name)
        metrics, values = measured
        content = MeasurementFile(
            trial_id=self.trial_id,
            name=name,
            metrics=metrics,
            has_spectrum=values is not None,
            spectrum_sha256=None if values is None else write_vector(spectrum, values),
        )
        write_file(metrics_file, sealed(content.model_dump_json(indent=1)))

    def measurement(self, name: str) -> Measured | None:
        """Return a measurement from `write_measurement`, or None if it does not exist.

        Raises DamagedFileError for files that are truncated, changed, unreadable or of another
        trial.
        """
        spectrum, metrics_file = self._measurement_files(name)
        try:
            content = read_record(metrics_file, MeasurementFile)
            if content is None:
                return None
            if (content.trial_id, content.name) != (self.trial_id, name):
                raise DamagedFileError(
                    f"{metrics_file} is another measurement, {content.name} of {content.trial_id}"
                )
            checksum = content.spectrum_sha256
            values = read_vector(spectrum, checksum) if content.has_spectrum else None
        except UnreadableFileError as error:
            raise DamagedFileError(str(error)) from error
        return Measured(content.metrics, values)

    def _measurement_files(self, name: str) -> list[Path]:
        return [self.path / file for file in measurement_files([name])]

    def has_measurement(self, name: str) -> bool:
        """Return whether the later measurement exists; set a damaged one aside."""
        try:
            return self.measurement(name) is not None
        except DamagedFileError as error:
            set_aside(self._measurement_files(name)[1])
            self.note(f"{error}: {name} is measured again")
            return False

    def forget_measurements(self) -> None:
        """Remove all later measurements, because their weights are about to be replaced."""
        for path in self.path.glob(f"{MEASUREMENT}*"):
            remove(path)

    def failure_cause(self, error: BaseException, code: Iterable[UserCode]) -> str:
        """Return the exception in one line, with the user's line; log it with its traceback."""
        # If the log is not writable, the cause still reaches the caller.
        with contextlib.suppress(OSError):
            write_file(
                self.error_log, "".join(traceback.format_exception(error)).encode(errors="replace")
            )
        cause = ": ".join(filter(None, (type(error).__name__, first_line(str(error)))))
        self.log(f"failed: {cause}")
        frames = [
            (frame.filename, frame.lineno or 0)
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        line = line_of(reversed(frames), [file.name for file in code])
        return cause if line is None else f"{cause} ({line})"


def trial_directory(storage: Path, trial_id: str) -> Path:
    """Return a trial's folder below the storage root. Raises UserError for an invalid id."""
    if not TRIAL_ID.fullmatch(trial_id):
        raise UserError(
            f"results store: {trial_id[:80]!r} is not a trial id (64 hexadecimal digits). "
            "The store is damaged or belongs to another program. Name another one with --store."
        )
    return storage / TRIALS / trial_id[:2] / trial_id


def measurement_files(names: Iterable[str]) -> list[str]:
    """Return two file names per later measurement: its spectrum, then its metrics."""
    return [f"{MEASUREMENT}{name}.{kind}" for name in names for kind in ("npy", "json")]


def measurement_names(files: Iterable[str]) -> list[str]:
    """Return the names of the later measurements among these files, sorted."""
    return sorted(
        file.removeprefix(MEASUREMENT).removesuffix(".json")
        for file in files
        if file.startswith(MEASUREMENT) and file.endswith(".json") and "/" not in file
    )


def file_kind(name: str) -> str:
    """Return the kind in `FILE_KINDS` of a file, named by its path in the trial's folder."""
    if name.startswith("files/"):
        return "files"
    if name.startswith(CHECKPOINT):
        return "checkpoints"
    return "weights" if name == KEPT_WEIGHTS else "results"


def progress(names: Collection[str]) -> tuple[bool, str]:
    """Return whether these files include a result, and the newest checkpoint's name or ""."""
    return RESULT in names, max(filter(is_checkpoint, names), default="")


def is_checkpoint(name: str) -> bool:
    """Return True for a checkpoint name."""
    return name.startswith(CHECKPOINT) and name.endswith(".safetensors")
