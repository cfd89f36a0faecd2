"""Rank and validation perplexity from epoch to epoch.

Both are natural logarithms; the log perplexity is the validation loss. A setting is the trials that
differ only in their seed. Legend: T epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from search_spaces.study import RankOverTraining
from trainables.trial_folder import EpochMetrics

if TYPE_CHECKING:
    import pandas as pd

LEAST_CHANGE = 0.05
"""Change of a logarithm below which half of it means nothing: 5%."""
FEWEST_EPOCHS = 3
"""With two, both are half way at the same time."""
BOUNDS = ("evaluation.epoch_rank_contexts", "evaluation.valid_tokens", "rank_columns")
"""Rows of log P, of which no more than there are tokens, and its columns, a word each: no rank is
more than either."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingPath:
    """The way of one setting from the end of the first epoch to that of the last, a mean over its
    seeds."""

    group: str
    seeds: int
    epochs: tuple[int, ...]
    log_rank_T: NDArray[np.float64]
    log_perplexity_T: NDArray[np.float64]
    averaging: tuple[bool, ...]
    """Whether validation and rank used averaged weights, in any of the trials."""
    colour: float | None = None
    """What its line is coloured by."""
    place: int = 0
    """Of its group among those of the plan."""

    @property
    def plain(self) -> int:
        """How many epochs came before averaging."""
        return self.averaging.index(True) if True in self.averaging else len(self.epochs)

    @property
    def rank_half(self) -> float | None:
        """Return the epoch, on a straight line between two, at which the log rank first had half of
        its change from the first epoch to the last one before averaging; None if there are fewer
        than three, or if it hardly changed."""
        return _half(self.epochs, self.log_rank_T[: self.plain])

    @property
    def perplexity_half(self) -> float | None:
        """Return the epoch at which the log perplexity first had half of its change."""
        return _half(self.epochs, self.log_perplexity_T[: self.plain])


@dataclass(frozen=True, kw_only=True)
class RankTraining:
    """One rank over the epochs of a study's done trials."""

    rank: str
    bound: int | None
    """What it can be at most, by the rows and columns of log P; None where trials differ or do not
    say."""
    at_bound: int
    """Epochs of trials whose rank was as large as their own bound."""
    measured: int
    """Epochs of trials, in all."""
    paths: tuple[TrainingPath, ...]
    rank_earlier: int
    """Settings whose rank was half way earlier than their log perplexity."""
    compared: int
    """Settings in which both have a half way."""
    colour_by: str | None

    @property
    def averaged(self) -> bool:
        """Whether any trial averaged its weights; a Transformer does not."""
        return any(True in path.averaging for path in self.paths)


def rank_training_numbers(
    frame: pd.DataFrame,
    epochs: Mapping[str, Sequence[EpochMetrics]],
    request: RankOverTraining,
    *,
    colours: Sequence[str] = (),
) -> tuple[RankTraining, ...]:
    """The request's ranks, each over the done trials of `frame` that have it in every one of two
    epochs or more.

    `epochs` are those of the trials by id, `colours` config columns, of which the first that is a
    number in every trial, the same in all of a setting, colours the paths. Ranks that no trial has
    are left out."""
    by_rank = (_one_rank(frame, epochs, rank, colours) for rank in request.ranks)
    return tuple(numbers for numbers in by_rank if numbers is not None)


def _one_rank(
    frame: pd.DataFrame,
    epochs: Mapping[str, Sequence[EpochMetrics]],
    rank: str,
    colours: Sequence[str],
) -> RankTraining | None:
    ranked = [
        trial_id for trial_id in frame["trial_id"] if _is_ranked(epochs.get(trial_id, ()), rank)
    ]
    done = frame[(frame["state"] == "done") & frame["trial_id"].isin(ranked)]
    if done.empty:
        return None
    colour_by = next(
        (name for name in colours if name in done and _is_number_of_settings(done, name)), None
    )
    paths, groups = [], list(dict.fromkeys(frame["group"]))
    for group, trials in done.groupby("group", sort=False):
        own = [epochs[trial_id] for trial_id in trials["trial_id"]]
        colour = None if colour_by is None else float(trials[colour_by].iloc[0])
        paths.append(
            replace(_path(str(group), own, rank), colour=colour, place=groups.index(group))
        )
    every = [epochs[trial_id] for trial_id in done["trial_id"]]
    halves = [(path.rank_half, path.perplexity_half) for path in paths]
    earlier = [
        rank < perplexity
        for rank, perplexity in halves
        if rank is not None and perplexity is not None
    ]
    bounds = list(done.reindex(columns=list(BOUNDS)).astype(float).min(axis=1))
    return RankTraining(
        rank=rank,
        bound=int(bounds[0]) if len(set(bounds)) == 1 and math.isfinite(bounds[0]) else None,
        at_bound=sum(
            getattr(epoch, rank) >= bound
            for trial, bound in zip(every, bounds, strict=True)
            for epoch in trial
        ),
        measured=sum(map(len, every)),
        paths=tuple(paths),
        rank_earlier=sum(earlier),
        compared=len(earlier),
        colour_by=colour_by,
    )


def _is_number_of_settings(trials: pd.DataFrame, name: str) -> bool:
    """Whether the column has a number in every trial, the same in all of a setting."""
    numbers = trials[name].dtype.kind in "fi" and trials[name].notna().all()
    return bool(numbers and (trials.groupby("group")[name].nunique() == 1).all())


def _is_ranked(trial: Sequence[EpochMetrics], rank: str) -> bool:
    """A matrix of equal rows of zeros has rank 0, whose logarithm there is not."""
    return len(trial) >= 2 and all((getattr(epoch, rank) or 0) > 0 for epoch in trial)


def _path(group: str, trials: Sequence[Sequence[EpochMetrics]], rank: str) -> TrainingPath:
    """Over the epochs that all of the trials have."""
    together = list(zip(*trials, strict=False))
    return TrainingPath(
        group=group,
        seeds=len(trials),
        epochs=tuple(seeds[0].epoch for seeds in together),
        log_rank_T=np.array(
            [np.mean([math.log(getattr(epoch, rank)) for epoch in seeds]) for seeds in together]
        ),
        log_perplexity_T=np.array(
            [np.mean([epoch.valid_loss for epoch in seeds]) for seeds in together]
        ),
        averaging=tuple(any(epoch.averaging for epoch in seeds) for seeds in together),
    )


def _half(epochs: Sequence[int], values_T: NDArray[np.float64]) -> float | None:
    if len(values_T) < FEWEST_EPOCHS or abs(change := values_T[-1] - values_T[0]) < LEAST_CHANGE:
        return None
    shares_T = (values_T - values_T[0]) / change
    after = int(np.argmax(shares_T >= 0.5))
    return float(np.interp(0.5, shares_T[after - 1 : after + 1], epochs[after - 1 : after + 1]))
