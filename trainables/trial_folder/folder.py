"""A trial's folder: the only place that knows what its files are called, how they are read, and who may write them.

While a trial runs, its folder holds a lock, a fence and the last checkpoints; afterwards `result.json`, `spectrum.npy`
and `kept.safetensors` (the weights of the best validation loss), and `measurement-NAME.json` for each measurement that
was taken later from these weights. Every file is whole or absent. A worker makes a result durable before it tells
anyone, so whatever a driver did not live to record is found again.
"""

from __future__ import annotations

import contextlib
import io
import re
import secrets
import traceback
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from tokenize import TokenError
from typing import NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from pydantic import ValidationError

from trainables.config import WITH_SPECTRUM, Frozen, TextFile
from trainables.errors import UserError, first_line
from trainables.trial_folder.files import locked, write_file
from trainables.trial_folder.outcome import Metric, TrialOutcome

LOCK, FENCE = "lock", "worker"
RESULT, SPECTRUM = "result.json", "spectrum.npy"
UNUSABLE = "result.unusable.json"
RESULT_FILES = (RESULT, SPECTRUM)
CHECKPOINT, MEASUREMENT = "checkpoint-", "measurement-"
TRIAL_ID = re.compile(r"[0-9a-f]{64}")
Result = tuple[TrialOutcome, NDArray[float64] | None]
"""A final outcome, and the singular values where a measurement has some."""


class Measured(NamedTuple):
    """What a measurement gives: finite metrics, and the singular values where it has some."""

    metrics: dict[str, Metric]
    singular_values: NDArray[float64] | None = None


def spectrum_of(measured: Iterable[Measured]) -> NDArray[float64] | None:
    """The singular values among what some measurements gave: the last ones, if there are any."""
    spectra = [values for _, values in measured if values is not None]
    return spectra[-1] if spectra else None


class SupersededError(Exception):
    """Another worker has taken the trial over; what this one has computed since is of no use."""


class UnusableResultError(Exception):
    """A trial's files cannot be what its worker wrote; the text says which file and why."""


class _MeasurementFile(Frozen):
    trial_id: str
    name: str
    """With its version, for example "top_k@1"."""
    metrics: dict[str, Metric]
    has_spectrum: bool


class TrialFolder:
    """The folder of one trial at `path`, which need not exist yet."""

    def __init__(self, path: Path, trial_id: str) -> None:
        self.path, self.trial_id = path, trial_id
        self._token: bytes | None = None

    @property
    def kept_weights(self) -> Path:
        """The file of the weights with the best validation loss."""
        return self.path / "kept.safetensors"

    @property
    def error_log(self) -> Path:
        """The file with the traceback of what ended the trial."""
        return self.path / "error.log"

    def locked(self) -> AbstractContextManager[None]:
        """Have the folder to oneself among the processes that see its lock: a second one waits."""
        return locked(self.path)

    def take_over(self) -> None:
        """Have the right to write here until another worker takes it: of two that believe to have it, the later one.

        The lock keeps workers apart where the file system has locks. Across machines it may not: a machine that is cut
        off from the cluster still trains, its lock may have been given up for it, and its trial runs on elsewhere.
        """
        self._token = secrets.token_hex(16).encode()
        write_file(self.path / FENCE, self._token)

    def check_fence(self) -> None:
        """Raise SupersededError where the right was taken over and another worker has it by now."""
        if self._token is None:
            return
        with contextlib.suppress(FileNotFoundError):
            if (self.path / FENCE).read_bytes() == self._token:
                return
        raise SupersededError(f"another worker has taken over the trial in {self.path}")

    def leave(self) -> None:
        """Give the right up, once everything is written; nobody has it then."""
        with contextlib.suppress(SupersededError):
            self.check_fence()
            self.drop_fence()

    def drop_fence(self) -> None:
        """Take the right from whoever has it."""
        (self.path / FENCE).unlink(missing_ok=True)

    def outcome(self) -> TrialOutcome | None:
        """The final outcome; None where there is none, it is damaged, another trial's or pruned."""
        try:
            outcome = TrialOutcome.model_validate_json((self.path / RESULT).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None
        return outcome if outcome.trial_id == self.trial_id and outcome.state != "pruned" else None

    def result(self) -> Result | None:
        """The outcome with its spectrum; None where there is none, or one that failed.

        Raises UnusableResultError for files that are truncated, corrupt or of another trial.
        """
        path = self.path / RESULT
        try:
            outcome = TrialOutcome.model_validate_json(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UserError(
                f"the result {path} cannot be read ({error.strerror}): give this user access to it"
            ) from error
        except ValidationError as error:
            raise UnusableResultError(f"{path} is no complete result") from error
        if outcome.trial_id != self.trial_id:
            raise UnusableResultError(f"{path} is the result of another trial, {outcome.trial_id}")
        if outcome.state == "failed":
            return None
        return outcome, self.spectrum(outcome) if outcome.state == "done" else None

    def spectrum(self, outcome: TrialOutcome) -> NDArray[float64] | None:
        """The singular values beside an outcome; None where no measurement of it made any.

        Raises UnusableResultError for a file that is missing or no vector of finite float64 values.
        """
        if not any(name.partition("@")[0] in WITH_SPECTRUM for name in outcome.measurements):
            return None
        path = self.path / SPECTRUM
        try:
            return read_vector(path)
        except FileNotFoundError as error:
            raise UnusableResultError(f"{path} is missing") from error

    def write_result(self, outcome: TrialOutcome, singular_values: NDArray[float64] | None) -> None:
        """The spectrum goes first: where there is a result, everything it speaks of is there.

        Raises SupersededError, with nothing written, where another worker has the right to write.
        """
        self.check_fence()
        if singular_values is not None:
            write_vector(self.path / SPECTRUM, singular_values)
        write_file(self.path / RESULT, outcome.model_dump_json(indent=1).encode())

    def set_aside_result(self) -> Path:
        """Rename a result that is of no use, or a worker would take the trial for finished; returns its new path."""
        return (self.path / RESULT).replace(self.path / UNUSABLE)

    def forget_result(self) -> None:
        """Remove the result, so that the trial runs again, from its checkpoints where it has some."""
        # The folder itself may be what made the trial fail.
        with contextlib.suppress(NotADirectoryError):
            (self.path / RESULT).unlink(missing_ok=True)

    def checkpoint(self, step: int) -> Path:
        """The file of the checkpoint of this step."""
        return self.path / f"{CHECKPOINT}{step:012d}.safetensors"

    def checkpoints(self) -> list[Path]:
        """The files of the checkpoints that there are, oldest first."""
        return sorted(self.path.glob(f"{CHECKPOINT}*.safetensors"))

    def forget_checkpoints(self) -> None:
        """Remove them all, with what a killed process left half written."""
        for path in [*self.checkpoints(), *self.path.glob(f".{CHECKPOINT}*.tmp")]:
            path.unlink(missing_ok=True)

    def write_measurement(self, name: str, measurement: tuple[dict[str, Metric], NDArray[float64] | None]) -> None:
        """Make one later measurement durable. The spectrum goes first: where there is a JSON file, it is there too."""
        metrics, singular_values = measurement
        spectrum_file, metrics_file = (self.path / file for file in measurement_files([name]))
        if singular_values is not None:
            write_vector(spectrum_file, singular_values)
        content = _MeasurementFile(
            trial_id=self.trial_id, name=name, metrics=metrics, has_spectrum=singular_values is not None
        )
        write_file(metrics_file, content.model_dump_json(indent=1).encode())

    def measurement(self, name: str) -> Measured | None:
        """The later measurement; None where there is none, it is damaged, unreadable or another trial's."""
        spectrum_file, metrics_file = (self.path / file for file in measurement_files([name]))
        try:
            content = _MeasurementFile.model_validate_json(metrics_file.read_bytes())
            if (content.trial_id, content.name) != (self.trial_id, name):
                return None
            values = read_vector(spectrum_file) if content.has_spectrum else None
            return Measured(content.metrics, values)
        except (OSError, ValidationError, UnusableResultError):
            return None

    def forget_measurements(self) -> None:
        """Remove all later measurements: they are of other weights than those about to be kept."""
        for path in self.path.glob(f"{MEASUREMENT}*"):
            path.unlink(missing_ok=True)

    def failure_cause(self, error: BaseException, layer_files: Iterable[TextFile]) -> str:
        """The exception that ended the trial in one line, with the line of the user's own layer that it came through.

        Call it where the exception is handled; the whole traceback goes into the error log.
        """
        # Where the log cannot be written, the cause still reaches who asked.
        with contextlib.suppress(OSError):
            self.error_log.write_text(traceback.format_exc())
        cause = ": ".join(filter(None, (type(error).__name__, first_line(str(error)))))
        names = tuple(file.name for file in layer_files)
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if names and Path(frame.filename).name.startswith(names):
                return f"{cause} ({Path(frame.filename).name.partition(' ')[0]}, line {frame.lineno})"
        return cause


def trial_directory(storage: Path, trial_id: str) -> Path:
    """The path of a trial's folder below the root of a storage. Raises UserError for an id that is none: a store that
    somebody else wrote may hold any."""
    if not TRIAL_ID.fullmatch(trial_id):
        raise UserError(
            f"a trial's id is 64 hexadecimal digits, and the results store has {trial_id[:80]!r}: it is damaged, or "
            "this program has not written it, so name another one with --store"
        )
    return storage / "trials" / trial_id[:2] / trial_id


def measurement_files(names: Iterable[str]) -> list[str]:
    """What the files of these later measurements are called, of each the spectrum first, then the metrics."""
    return [f"{MEASUREMENT}{name}.{kind}" for name in names for kind in ("npy", "json")]


def progress(names: Collection[str]) -> tuple[bool, str]:
    """How far a trial has come, by the names in its folder: whether it has a result, and the newest checkpoint."""
    return RESULT in names, max(filter(is_checkpoint, names), default="")


def is_checkpoint(name: str) -> bool:
    """Whether a file of this name in a trial's folder is one of its checkpoints."""
    return name.startswith(CHECKPOINT)


def write_vector(path: Path, values: NDArray[float64]) -> None:
    """Write them as a .npy file, whole or not at all."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_file(path, buffer.getvalue())


def read_vector(path: Path) -> NDArray[float64]:
    """Raises OSError where it cannot be read, UnusableResultError for anything but finite float64 values in one row."""
    try:
        values = np.lib.format.read_array(io.BytesIO(path.read_bytes()), allow_pickle=False)
    except (ValueError, TypeError, TokenError) as error:  # whatever numpy makes of a damaged header
        raise UnusableResultError(f"{path} is no complete array") from error
    if values.ndim != 1 or values.dtype != float64:
        raise UnusableResultError(f"{path} is no vector of float64 values")
    if not np.isfinite(values).all():
        raise UnusableResultError(f"{path} holds values that are not finite")
    vector: NDArray[float64] = values
    return vector
