"""What least-squares approximations of log P cost in nats, rank by rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.analysis.lines import Line, line_point
from orchestrator.analysis.values import values_by_group

if TYPE_CHECKING:
    import pandas as pd

KL_AT_RANK = "kl_at_rank_"


def kl_curves(frame: pd.DataFrame) -> Mapping[str, Line]:
    """By group, in the order of the plan, the KL in nats at every rank that all its trials with a
    curve have; groups without one are left out."""
    metrics = {
        int(name.removeprefix(KL_AT_RANK)): name
        for name in frame.columns
        if name.startswith(KL_AT_RANK)
    }
    if 0 not in metrics:
        return {}
    by_rank = {rank: values_by_group(frame, metrics[rank]) for rank in sorted(metrics)}
    return {
        group: {
            float(rank): line_point(values[group])
            for rank, values in by_rank.items()
            # A trial's curve ends at its KL rank: further on a mean would be of the others alone.
            if len(values[group]) == len(of_all)
        }
        for group, of_all in by_rank[0].items()
        if of_all
    }
