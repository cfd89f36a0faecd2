"""The singular values of trials' log-P matrices, with what is needed to read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SHOWN_POINTS = 160


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """One trial's singular values, descending."""

    values: NDArray[np.float64]
    press_rank: float
    relative_tolerance: float | None
    """The Press tolerance over the largest singular value."""
    group: str | None = None
    """What its line is coloured by; None colours all by rank."""
    place: int = 0
    """Of its group among those of the plan."""
    name: str = ""
    trial_id: str = ""


def trial_spectra(
    frame: pd.DataFrame, spectra: Mapping[str, NDArray[np.float64]], *, by_group: bool
) -> tuple[Spectrum, ...]:
    """The spectra, by trial id, of the done trials of `frame` that have a Press rank and can be
    divided by their largest value; not by group, of the first one of each group: its other seeds
    would lie over it."""
    if "press_rank" not in frame.columns:
        return ()
    measured = [
        trial_id for trial_id, values in spectra.items() if len(values) and 0 < values[0] < np.inf
    ]
    done = frame[(frame["state"] == "done") & frame["trial_id"].isin(measured)].dropna(
        subset=["press_rank"]
    )
    shown = done if by_group else done.drop_duplicates("group")
    groups = list(dict.fromkeys(frame["group"]))
    return tuple(
        Spectrum(
            values=spectra[row["trial_id"]],
            press_rank=float(row["press_rank"]),
            relative_tolerance=_relative(row.get("press_tolerance"), row.get("sigma_max")),
            group=row["group"] if by_group else None,
            place=groups.index(row["group"]),
            name=row["name"],
            trial_id=row["trial_id"],
        )
        for row in shown.to_dict("records")
    )


def shown_indices(length: int) -> NDArray[np.int64]:
    """Return at most 2 `SHOWN_POINTS` of the indices 0 .. length - 1, close together at the start
    and never far apart: every curve keeps its shape on a linear and on a logarithmic axis, and the
    page stays small."""
    if length <= SHOWN_POINTS:
        return np.arange(length)
    log_spaced = np.geomspace(1, length, SHOWN_POINTS) - 1
    even = np.linspace(0, length - 1, SHOWN_POINTS)
    return np.unique(np.round(np.concatenate([log_spaced, even])).astype(np.int64))


def _relative(tolerance: float | None, sigma_max: float | None) -> float | None:
    if tolerance is None or sigma_max is None or not tolerance > 0 or not sigma_max > 0:
        return None
    return float(f"{tolerance / sigma_max:.6g}")
