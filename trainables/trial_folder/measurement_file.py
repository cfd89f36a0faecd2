"""A measurement of a done trial as files: NAME.json, and NAME.npy with the singular values where it
has some."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from numpy import float64
from numpy.typing import NDArray

from trainables.config import Frozen
from trainables.trial_folder.files import (
    DamagedFileError,
    UnreadableFileError,
    read_record,
    sealed,
    write_file,
)
from trainables.trial_folder.metrics import Metrics
from trainables.trial_folder.vector import read_vector, write_vector

Values = NDArray[float64] | None


class Measured(NamedTuple):
    """What a measurement gives: finite metrics, and the singular values where it has some."""

    metrics: Metrics
    singular_values: Values = None


def spectrum_of(measured: Iterable[Measured]) -> NDArray[float64] | None:
    """The singular values among what some measurements gave: the last ones, if there are any."""
    spectra = [values for _, values in measured if values is not None]
    return spectra[-1] if spectra else None


class _MeasurementFile(Frozen):
    trial_id: str
    name: str
    """With its version, for example "top_k@1"."""
    metrics: Metrics
    has_spectrum: bool
    spectrum_sha256: str | None = None
    """None without a spectrum."""


def write_measurement(
    files: Iterable[Path], trial_id: str, name: str, measured: tuple[Metrics, Values]
) -> None:
    """Write the spectrum's file first, then that of the metrics, which tells that both are
    there."""
    spectrum_file, metrics_file = files
    metrics, values = measured
    content = _MeasurementFile(
        trial_id=trial_id,
        name=name,
        metrics=metrics,
        has_spectrum=values is not None,
        spectrum_sha256=None if values is None else write_vector(spectrum_file, values),
    )
    write_file(metrics_file, sealed(content.model_dump_json(indent=1)))


def read_measurement(files: Iterable[Path], trial_id: str, name: str) -> Measured | None:
    """What `write_measurement` wrote; None if there is nothing.

    Raises DamagedFileError for files that are truncated, changed, unreadable or of another trial.
    """
    spectrum_file, metrics_file = files
    try:
        content = read_record(metrics_file, _MeasurementFile)
        if content is None:
            return None
        if (content.trial_id, content.name) != (trial_id, name):
            raise DamagedFileError(
                f"{metrics_file} is another measurement, {content.name} of {content.trial_id}"
            )
        checksum = content.spectrum_sha256
        values = read_vector(spectrum_file, checksum) if content.has_spectrum else None
    except UnreadableFileError as error:
        raise DamagedFileError(str(error)) from error
    return Measured(content.metrics, values)
