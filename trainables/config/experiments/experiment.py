"""What every kind of trial that trains no language model has."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from trainables.config.frozen import Identified


class ExperimentConfig(Identified):
    """A trial in one piece: it writes no checkpoint, and one that was killed starts anew."""

    schema_version: Literal[1] = 1
    kind: str

    @property
    def family(self) -> str:
        """What trials of about the same cost have in common."""
        return self.kind

    @property
    def parameters(self) -> int:
        """How many numbers are fitted."""
        return 0

    @property
    @abstractmethod
    def operations(self) -> float:
        """About how many floating-point operations the trial takes."""

    @property
    @abstractmethod
    def memory_bytes(self) -> float:
        """About how much memory its arrays take."""
