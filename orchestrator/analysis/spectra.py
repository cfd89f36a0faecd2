"""Singular values of the trials' log-probability matrices, with Press rank and tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MOST_POINTS = 160


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """One trial's singular values, descending."""

    values: NDArray[np.float64]
    press_rank: float
    relative_tolerance: float | None
    """Press tolerance divided by the largest singular value."""
    group: str | None = None
    """Group that sets the line's colour; if None, the rank does."""
    group_index: int = 0
    name: str = ""
    trial_id: str = ""


def trial_spectra(
    frame: pd.DataFrame, spectra: Mapping[str, NDArray[np.float64]], *, by_group: bool
) -> tuple[Spectrum, ...]:
    """Return the spectra of done trials with a Press rank and a positive, finite largest value.

    `spectra` is by trial id. Without `by_group`, each group has one seed, because the curves of
    several seeds overlap.
    """
    if "press_rank" not in frame.columns:
        return ()
    trial_ids = [
        trial_id for trial_id, values in spectra.items() if len(values) and 0 < values[0] < np.inf
    ]
    trials = frame[(frame["state"] == "done") & frame["trial_id"].isin(trial_ids)].dropna(
        subset=["press_rank"]
    )
    selection = trials if by_group else trials.drop_duplicates("group")
    groups = list(dict.fromkeys(frame["group"]))
    return tuple(
        Spectrum(
            values=spectra[row["trial_id"]],
            press_rank=float(row["press_rank"]),
            relative_tolerance=_relative(row.get("press_tolerance"), row.get("sigma_max")),
            group=row["group"] if by_group else None,
            group_index=groups.index(row["group"]),
            name=row["name"],
            trial_id=row["trial_id"],
        )
        for row in selection.to_dict("records")
    )


def shown_indices(length: int) -> NDArray[np.int64]:
    """Return at most twice `MOST_POINTS` of the indices 0 .. length - 1, denser at the start.

    Curves keep their shape on linear and logarithmic axes.
    """
    if length <= MOST_POINTS:
        return np.arange(length)
    log_spaced = np.geomspace(1, length, MOST_POINTS) - 1
    linear_spaced = np.linspace(0, length - 1, MOST_POINTS)
    return np.unique(np.round(np.concatenate([log_spaced, linear_spaced])).astype(np.int64))


def _relative(tolerance: float | None, sigma_max: float | None) -> float | None:
    if tolerance is None or sigma_max is None or not tolerance > 0 or not sigma_max > 0:
        return None
    return float(f"{tolerance / sigma_max:.6g}")
