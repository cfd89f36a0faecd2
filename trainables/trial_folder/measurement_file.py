"""A measurement of a done trial as files: NAME.json, and NAME.npy with the singular values where it
has some."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from numpy import float64
from numpy.typing import NDArray
from pydantic import ValidationError, field_validator

from trainables.config import Frozen
from trainables.trial_folder.files import DamagedFileError, sealed, unsealed, write_file
from trainables.trial_folder.metrics import Metric, check_metrics
from trainables.trial_folder.vector import read_vector, write_vector

Metrics = dict[str, Metric]
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
    metrics: dict[str, Metric]
    has_spectrum: bool
    spectrum_sha256: str | None = None
    """None without a spectrum."""

    @field_validator("metrics")
    @classmethod
    def _can_be_recorded(cls, metrics: dict[str, Metric]) -> dict[str, Metric]:
        check_metrics(metrics)
        return metrics


def write_measurement(
    path: Path, trial_id: str, name: str, measured: tuple[Metrics, Values]
) -> None:
    """Write both below `path` with these endings, the spectrum first: where there is a JSON file,
    it is there too."""
    spectrum_file, metrics_file = _files(path)
    metrics, values = measured
    content = _MeasurementFile(
        trial_id=trial_id,
        name=name,
        metrics=metrics,
        has_spectrum=values is not None,
        spectrum_sha256=None if values is None else write_vector(spectrum_file, values),
    )
    write_file(metrics_file, sealed(content.model_dump_json(indent=1)))


def read_measurement(path: Path, trial_id: str, name: str) -> Measured | None:
    """What `write_measurement` wrote; None where there is nothing.

    Raises DamagedFileError for files that are truncated, changed, unreadable or of another trial.
    """
    spectrum_file, metrics_file = _files(path)
    try:
        content = _MeasurementFile.model_validate_json(unsealed(metrics_file))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DamagedFileError(f"{metrics_file} cannot be read ({error.strerror})") from error
    except ValidationError as error:
        raise DamagedFileError(f"{metrics_file} is no complete measurement") from error
    if (content.trial_id, content.name) != (trial_id, name):
        raise DamagedFileError(
            f"{metrics_file} is another measurement, {content.name} of {content.trial_id}"
        )
    try:
        return Measured(
            content.metrics,
            read_vector(spectrum_file, content.spectrum_sha256) if content.has_spectrum else None,
        )
    except OSError as error:
        raise DamagedFileError(f"{spectrum_file} cannot be read ({error.strerror})") from error


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.npy"), path.with_name(f"{path.name}.json")
