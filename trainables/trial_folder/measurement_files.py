"""Measurements taken after a trial, as files in its folder: `measurement-NAME.json`, and a spectrum beside it.

A worker writes one before it says that it measured, so whatever a driver did not live to record is found again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from trainables.config.frozen import Frozen
from trainables.trial_folder.files import write_file
from trainables.trial_folder.outcome import Metric
from trainables.trial_folder.vector_file import read_vector, write_vector

Later = tuple[dict[str, Metric], NDArray[np.float64] | None]
"""What one measurement gave: its metrics, and the singular values where it has some."""


class _File(Frozen):
    trial_id: str
    name: str
    """With its version, for example "top_k@1"."""
    metrics: dict[str, Metric]
    has_spectrum: bool


def write_later(directory: Path, trial_id: str, name: str, measured: Later) -> None:
    """Make one measurement durable. The spectrum goes first: where there is a JSON file, it is there too."""
    metrics, singular_values = measured
    if singular_values is not None:
        write_vector(_path(directory, name, "npy"), singular_values)
    content = _File(trial_id=trial_id, name=name, metrics=metrics, has_spectrum=singular_values is not None)
    write_file(_path(directory, name, "json"), content.model_dump_json(indent=1).encode())


def read_later(directory: Path, trial_id: str, name: str) -> Later | None:
    """The measurement in the trial's folder; None where there is none, it is damaged, unreadable or another trial's."""
    try:
        content = _File.model_validate_json(_path(directory, name, "json").read_bytes())
        if (content.trial_id, content.name) != (trial_id, name):
            return None
        return content.metrics, read_vector(_path(directory, name, "npy")) if content.has_spectrum else None
    except (OSError, ValidationError, ValueError):
        return None


def later_names(measurements: Iterable[str]) -> list[str]:
    """What the files of these measurements are called."""
    return [_path(Path(), name, kind).name for name in measurements for kind in ("npy", "json")]


def forget_later(directory: Path) -> None:
    """Remove them all: they are of other weights than those about to be kept."""
    for path in directory.glob("measurement-*"):
        path.unlink(missing_ok=True)


def _path(directory: Path, name: str, kind: str) -> Path:
    return directory / f"measurement-{name}.{kind}"
