"""What a report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis import Row
from trainables.trial_folder import EpochMetrics


@dataclass(frozen=True, kw_only=True)
class StudyRecords:
    """What the store holds of the trials of a study."""

    rows: Sequence[Row]
    """As `Store.results` gives them."""
    spectra: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """By trial id, the singular values, descending."""
    epochs: Mapping[str, Sequence[EpochMetrics]] = field(default_factory=dict)
    """By trial id, in order."""


@dataclass(frozen=True, kw_only=True)
class Commands:
    """What a page says to type; None is not said."""

    run: str | None = None
    """For the trials of this report."""
    paper: str | None = None
    """For the paper's scale."""
