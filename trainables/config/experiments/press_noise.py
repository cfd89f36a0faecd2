"""Noise on a matrix of known rank."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from trainables.config.experiments.experiment import ExperimentConfig
from trainables.config.frozen import NonNegative


class PressNoiseConfig(ExperimentConfig):
    """Ranks of one log-P matrix of known rank, n x n, with Gaussian noise on it, and of what SVD round trips make of
    it (AAAI 2021, SM Algorithms 1 and 2)."""

    kind: Literal["press_noise"] = "press_noise"
    size: Annotated[int, Field(ge=20)] = 10_000
    """n: contexts (rows) and words (columns)."""
    rank: Annotated[int, Field(ge=3, le=20)] = 10
    """Of the matrix without noise: d + 2 of a softmax layer of width d."""
    noise_variance: NonNegative = 0.0
    """c: of each entry of the noise. Its standard deviation is the root of c."""
    round_trips: NonNegativeInt = 0
    """So many times: decompose, multiply the directions that are kept, decompose again."""
    kept: Literal["press_rank", "all"] = "press_rank"
    """The directions that a round trip keeps: as many as the Press rank counts, or all of them."""
    precision: Literal["float32", "float64"] = "float64"
    """Of the matrix, of its decompositions and of the eps in the Press tolerance."""

    @model_validator(mode="after")
    def _fewer_directions_than_rows(self) -> Self:
        if self.rank >= self.size:
            raise ValueError(f"rank must be less than size, as noise needs room; got {self.rank} and {self.size}")
        return self

    @property
    def operations(self) -> float:
        """A decomposition without its directions takes about 8/3 n^3, with them 22 n^3, much of it bound by memory."""
        return 2.0 * (8.0 / 3.0 + 22.0 * self.round_trips) * self.size**3

    @property
    def memory_bytes(self) -> float:
        """The matrix, its noise and what LAPACK works on; a round trip has two sides of directions besides (up to 7.1
        n^2 numbers were seen at n = 2,000)."""
        return 8.0 * (7.5 if self.round_trips else 3.0) * self.size**2
