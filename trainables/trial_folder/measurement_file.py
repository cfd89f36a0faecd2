"""Files of a measurement of a done trial: NAME.json, and NAME.npy for singular values."""

from __future__ import annotations

from typing import NamedTuple

from numpy import float64
from numpy.typing import NDArray

from trainables.config import Frozen
from trainables.trial_folder.metrics import Metrics

Values = NDArray[float64] | None


class Measured(NamedTuple):
    """Finite metrics, and singular values if they were measured."""

    metrics: Metrics
    singular_values: Values = None


class MeasurementFile(Frozen):
    """Content of a metrics file. `name` includes the version, as in "top_k@1"."""

    trial_id: str
    name: str
    metrics: Metrics
    has_spectrum: bool
    spectrum_sha256: str | None = None
