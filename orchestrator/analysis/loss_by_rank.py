"""What least-squares approximations of log P cost in nats, rank by rank."""

from __future__ import annotations

import pandas as pd

from orchestrator.analysis.lines import point_of
from orchestrator.analysis.tidy_frames import tidy
from orchestrator.analysis.values import values_by_group

KL_AT_RANK = "kl_at_rank_"


def kl_curves(frame: pd.DataFrame) -> pd.DataFrame | None:
    """Return the KL in nats at every rank that all trials of a group with a curve have: group (in
    the order of the plan), rank, n, mean, sd, least, greatest; None without a curve."""
    prefixed = [name for name in frame.columns if name.startswith(KL_AT_RANK)]
    metrics = {int(name.removeprefix(KL_AT_RANK)): name for name in prefixed}
    by_rank = {rank: values_by_group(frame, metrics[rank]) for rank in sorted(metrics)}
    curves = tidy(
        {"group": group, "rank": rank} | point_of(values[group])
        for group, of_all in by_rank.get(0, {}).items()
        for rank, values in by_rank.items()
        # A trial's curve ends at its KL rank: beyond, a mean would be of the others alone.
        if of_all and len(values[group]) == len(of_all)
    )
    return None if curves.empty else curves
