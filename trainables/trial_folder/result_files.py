"""A trial's folder: its lock, and the result that is on disk before anyone is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from trainables.trial_folder.files import write_file
from trainables.trial_folder.outcome import TrialOutcome
from trainables.trial_folder.vector_file import write_vector


def read_outcome(directory: Path, trial_id: str) -> TrialOutcome | None:
    """The final outcome that the folder holds; None where there is none, it is damaged, another trial's or pruned."""
    try:
        outcome = TrialOutcome.model_validate_json((directory / "result.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    return outcome if outcome.trial_id == trial_id and outcome.state != "pruned" else None


def write_outcome(directory: Path, outcome: TrialOutcome, singular_values: NDArray[np.float64] | None) -> None:
    """The spectrum goes first: where there is a result.json, everything it speaks of is there."""
    if singular_values is not None:
        write_vector(directory / "spectrum.npy", singular_values)
    write_file(directory / "result.json", outcome.model_dump_json(indent=1).encode())
