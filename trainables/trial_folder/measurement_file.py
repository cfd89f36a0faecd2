"""A measurement of a done trial as files: NAME.json, and NAME.npy with the singular values where it
has some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from numpy import float64
from numpy.typing import NDArray

from trainables.config import Frozen
from trainables.trial_folder.metrics import Metrics

Values = NDArray[float64] | None


class Measured(NamedTuple):
    """What a measurement gives: finite metrics, and the singular values where it has some."""

    metrics: Metrics
    singular_values: Values = None


def spectrum_of(measured: Iterable[Measured]) -> NDArray[float64] | None:
    """The singular values among what some measurements gave: the last ones, if there are any."""
    spectra = [values for _, values in measured if values is not None]
    return spectra[-1] if spectra else None


class MeasurementFile(Frozen):
    """The file of the metrics."""

    trial_id: str
    name: str
    """With its version, for example "top_k@1"."""
    metrics: Metrics
    has_spectrum: bool
    spectrum_sha256: str | None = None
    """None without a spectrum."""
