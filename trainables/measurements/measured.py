"""What a measurement gives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trainables.trial_folder import Metric


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Finite metrics, and the singular values where it has some."""

    metrics: dict[str, Metric]
    singular_values: NDArray[np.float64] | None = field(default=None, repr=False)
