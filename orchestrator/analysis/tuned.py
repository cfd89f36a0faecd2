"""What a tuning came to: for each side its trials by stage, those that were stopped early, and its best setting."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.store import ENDED

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class TunedSide:
    """One side of a tuning; `best` and its perplexity are None before a trial of stage 1 or 2 is done."""

    side: str
    stage1: int
    stage2: int
    """Trials of stage 2 that have ended, stopped early or not."""
    pruned: int
    best: str | None
    """Name of the trial of stages 1 and 2 with the least validation perplexity."""
    valid_perplexity: float | None


@dataclass(frozen=True, kw_only=True)
class TunedNumbers:
    """The sides in the order of the plan."""

    sides: tuple[TunedSide, ...]


def tuned_numbers(frame: pd.DataFrame) -> TunedNumbers:
    """Count the stages of each side, and look for its best."""
    if "side" not in frame.columns:  # none of the trials is one of a tuning
        return TunedNumbers(sides=())
    sides = frame.groupby("side", sort=False)
    return TunedNumbers(sides=tuple(_side(str(name), trials.to_dict("records")) for name, trials in sides))


def _side(name: str, trials: list[dict[Hashable, Any]]) -> TunedSide:
    ended = [row for row in trials if row["state"] in ENDED]
    candidates = [
        row
        for row in trials
        if row["stage"] != "final" and row["state"] == "done" and not math.isnan(row.get("valid_perplexity", math.nan))
    ]
    best = min(candidates, key=lambda row: row["valid_perplexity"], default=None)
    return TunedSide(
        side=name,
        stage1=sum(row["stage"] == "stage1" for row in ended),
        stage2=sum(row["stage"] == "stage2" for row in ended),
        pruned=sum(row["state"] == "pruned" for row in trials),
        best=None if best is None else best["name"],
        valid_perplexity=None if best is None else best["valid_perplexity"],
    )
