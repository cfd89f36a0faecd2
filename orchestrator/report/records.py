"""Records and commands that a report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis import Row
from trainables.trial_folder import Epoch


@dataclass(frozen=True, kw_only=True)
class StudyRecords:
    """The store's records of a study's trials."""

    rows: Sequence[Row]
    """Result of `Store.results`."""
    spectra: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Trial id -> singular values, descending."""
    epochs: Mapping[str, Sequence[Epoch]] = field(default_factory=dict)
    """Trial id -> epochs in order."""


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Commands that a page shows; None is omitted."""

    run: str | None = None
    paper: str | None = None
    """Command for the same study at the paper's scale."""
