"""Checkpoints: one file holds everything that the next step depends on, written whole or not at all.

Format: safetensors (numbers only, nothing is unpickled), with the non-tensor state as JSON in its header. The last
two are kept, so that a machine that dies while writing, or a disk that fills up, still leaves a good one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from trainables.trial_folder.files import write_file
from trainables.trial_folder.folder import TrialFolder

KEPT = 2


def save_tensors(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write tensors and JSON state as one safetensors file, atomically."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_file(path, save(contiguous, metadata={"state": json.dumps(state, allow_nan=False)}))


def load_tensors(path: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote. Raises ValueError where the file is not whole or not one of ours."""
    try:
        with safe_open(path, framework="pt", device=device) as file:
            metadata = file.metadata() or {}
            state = json.loads(metadata["state"])
            # Cloned: memory mapped at odd addresses can change the last bit of a vectorised sum.
            return {name: file.get_tensor(name).clone() for name in file.keys()}, state  # noqa: SIM118
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a checkpoint of this program: {error}") from error


class Checkpoints:
    """The checkpoints of one trial in its folder."""

    def __init__(self, folder: TrialFolder) -> None:
        self.folder = folder

    def save(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Write the checkpoint of this step and drop all but the last two.

        Raises SupersededError, with nothing written, where another worker has taken the trial over.
        """
        self.folder.check_fence()
        save_tensors(self.folder.checkpoint(step), tensors, {**state, "trial_id": self.folder.trial_id})
        for old in self.folder.checkpoints()[:-KEPT]:
            old.unlink()

    def latest(self, device: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The newest checkpoint that can be read, or None; one that is damaged is passed over."""
        for path in reversed(self.folder.checkpoints()):
            try:
                tensors, state = load_tensors(path, device)
            except ValueError:
                continue
            if state.get("trial_id") == self.folder.trial_id:
                return tensors, state
        return None
