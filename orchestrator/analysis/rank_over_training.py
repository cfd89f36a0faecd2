"""Rank and validation perplexity by epoch, as natural logarithms.

The log perplexity is the validation loss. Array axes: T epochs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from orchestrator.analysis.tidy_frames import tidy
from search_spaces.study import RankOverTraining
from trainables.trial_folder import EpochMetrics

LEAST_CHANGE = 0.05
"""Smallest change (of a natural logarithm) for which a half-way epoch is meaningful."""
# With two epochs, every metric is half-way at the same time.
FEWEST_EPOCHS = 3
# Columns that bound a rank: log P has at most one row per context and per token, and one column per
# word.
BOUNDS = ("evaluation.epoch_rank_contexts", "evaluation.valid_tokens", "rank_columns")


@dataclass(frozen=True, kw_only=True)
class RankTrainingNumbers:
    """Ranks by epoch, of done trials with at least two epochs and a rank in each."""

    epochs: pd.DataFrame
    """One row per rank, setting and epoch that all its trials have. Means over seeds are
    geometric. `averaging` marks epochs in which a trial averaged its weights. See `half_way` for
    half epochs."""
    ranks: pd.DataFrame
    """One row per rank. `compared` counts settings in which rank and perplexity have a half-way
    epoch; `rank_earlier` counts settings in which the rank has the earlier one. `bound` is the
    largest rank that the shape of log P allows; None if unknown or different between trials.
    `at_bound` counts measured epochs whose rank is at this bound."""
    groups: tuple[str, ...]
    colour_by: str
    """Config column that gives `colour`; empty without one."""

    @property
    def averaged(self) -> bool:
        """True if any trial averaged its weights."""
        return any(self.epochs["averaging"])


def rank_training_numbers(
    frame: pd.DataFrame,
    epochs: Mapping[str, Sequence[Any]],
    request: RankOverTraining,
    *,
    colours: Sequence[str] = (),
) -> RankTrainingNumbers | None:
    """Return the requested ranks that a trial has; None if no trial has one.

    `epochs` is by trial id; only those of language models have ranks. `colours` names columns of
    `frame`. Each setting is coloured by the first column with numbers only and one number per
    setting.
    """
    records: list[dict[str, Any]] = []
    ranks: list[dict[str, Any]] = []
    colour_by = ""
    for rank in request.ranks:
        trial_ids = [trial_id for trial_id, trial in epochs.items() if _is_ranked(trial, rank)]
        done_trials = frame[(frame["state"] == "done") & frame["trial_id"].isin(trial_ids)]
        if done_trials.empty:
            continue
        if not ranks:
            settings = (name for name in colours if name in done_trials)
            colour_by = next((name for name in settings if _is_number(done_trials, name)), "")
        pairs = earlier_count = 0
        groups = done_trials.groupby("group", sort=False)
        for group, trials in groups:
            colour = float(trials[colour_by].iloc[0]) if colour_by else None
            path = list(_path([epochs[trial_id] for trial_id in trials["trial_id"]], rank))
            key = {"rank": rank, "group": group, "colour": colour}
            records += [key | epoch for epoch in path]
            halves = path[0]["rank_half_epoch"], path[0]["log_perplexity_half_epoch"]
            if None not in halves:
                pairs += 1
                earlier_count += halves[0] < halves[1]
        ranks.append(
            {
                "rank": rank,
                "settings": len(groups),
                "compared": pairs,
                "rank_earlier": int(earlier_count),
                **_bound(
                    done_trials, [epochs[trial_id] for trial_id in done_trials["trial_id"]], rank
                ),
            }
        )
    if not ranks:
        return None
    return RankTrainingNumbers(
        epochs=tidy(records),
        ranks=tidy(ranks),
        groups=tuple(dict.fromkeys(frame["group"])),
        colour_by=colour_by,
    )


def _is_number(trials: pd.DataFrame, name: str) -> bool:
    numbers = trials[name].dtype.kind in "fi" and trials[name].notna().all()
    return bool(numbers and (trials.groupby("group")[name].nunique() == 1).all())


def _is_ranked(trial: Sequence[Any], rank: str) -> bool:
    # A rank of 0 (equal rows) has no logarithm.
    return len(trial) >= 2 and all(
        isinstance(epoch, EpochMetrics) and (getattr(epoch, rank) or 0) > 0 for epoch in trial
    )


def _path(trials: Sequence[Sequence[EpochMetrics]], rank: str) -> Iterator[dict[str, Any]]:
    seeds_by_epoch = list(zip(*trials, strict=False))
    averaging = [any(epoch.averaging for epoch in seeds) for seeds in seeds_by_epoch]
    log_rank_T = [
        float(np.mean([math.log(getattr(epoch, rank)) for epoch in seeds]))
        for seeds in seeds_by_epoch
    ]
    log_perplexity_T = [
        float(np.mean([epoch.valid_loss for epoch in seeds])) for seeds in seeds_by_epoch
    ]
    epochs = [seeds[0].epoch for seeds in seeds_by_epoch]
    averaging_start = averaging.index(True) if True in averaging else len(epochs)
    halves = {
        "rank_half_epoch": half_way(epochs, log_rank_T[:averaging_start]),
        "log_perplexity_half_epoch": half_way(epochs, log_perplexity_T[:averaging_start]),
    }
    for index, epoch in enumerate(epochs):
        yield {
            "seeds": len(trials),
            "epoch": epoch,
            "averaging": averaging[index],
            "mean_rank": math.exp(log_rank_T[index]),
            "mean_valid_perplexity": math.exp(log_perplexity_T[index]),
            **halves,
        }


def half_way(epochs: Sequence[int], values: ArrayLike) -> float | None:
    """Return the epoch, interpolated linearly, at which values first had half their total change.

    None for fewer than FEWEST_EPOCHS values or a change below LEAST_CHANGE. Callers leave out
    epochs with averaged weights.
    """
    values_T = np.asarray(values, dtype=np.float64)
    if len(values_T) < FEWEST_EPOCHS or abs(change := values_T[-1] - values_T[0]) < LEAST_CHANGE:
        return None
    shares_T = (values_T - values_T[0]) / change
    index = int(np.argmax(shares_T >= 0.5))
    return float(np.interp(0.5, shares_T[index - 1 : index + 1], epochs[index - 1 : index + 1]))


def _bound(
    frame: pd.DataFrame, trials: Sequence[Sequence[EpochMetrics]], rank: str
) -> dict[str, int | None]:
    bounds = list(frame.reindex(columns=list(BOUNDS)).astype(float).min(axis=1))
    at_bound = sum(
        getattr(epoch, rank) >= bound
        for trial, bound in zip(trials, bounds, strict=True)
        for epoch in trial
    )
    is_one = len(set(bounds)) == 1 and math.isfinite(bounds[0])
    return {
        "bound": int(bounds[0]) if is_one else None,
        "at_bound": at_bound,
        "measured": sum(map(len, trials)),
    }
