"""What a tuning came to: for each side its trials by stage, those that were stopped early, and its best setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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


def tuned_numbers(frame: pd.DataFrame) -> tuple[TunedSide, ...]:
    """The sides in the order of the plan; none where no trial is one of a tuning."""
    if "side" not in frame.columns:
        return ()
    return tuple(_side(str(name), trials) for name, trials in frame.groupby("side", sort=False))


def _side(name: str, trials: pd.DataFrame) -> TunedSide:
    ended = trials["stage"][trials["state"].isin(ENDED)]
    tried = trials[(trials["state"] == "done") & (trials["stage"] != "final")]
    by_name = tried.set_index("name").reindex(columns=["valid_perplexity"])["valid_perplexity"].dropna()
    return TunedSide(
        side=name,
        stage1=int((ended == "stage1").sum()),
        stage2=int((ended == "stage2").sum()),
        pruned=int((trials["state"] == "pruned").sum()),
        best=None if by_name.empty else str(by_name.idxmin()),
        valid_perplexity=None if by_name.empty else float(by_name.min()),
    )
