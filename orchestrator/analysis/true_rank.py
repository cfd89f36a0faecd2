"""True rank of a generated language, and ranks of its true and learned log-P matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from orchestrator.analysis.statistics.samples import summarise_sample
from orchestrator.analysis.tidy_frames import tidy, values_by_group
from search_spaces.analyses import TrueRank

EXACT, LEARNED = "float64", "learned"
PRESS = "press_rank"
# A true matrix has a Press rank per precision; a learned one only for float32.
PRESS_BY_EPS = ("press_rank_float64", "press_rank_float32")


@dataclass(frozen=True, kw_only=True)
class TrueRankNumbers:
    """Answer to TrueRank."""

    exact: Mapping[str, float]
    """Metrics of the exact matrix. `language_rank` is known by construction; `true_rank` is the
    rank of the measured rows, which may have fewer contexts. `test_perplexity` is the true model's,
    and `entropy_perplexity` its value on endless text. `shares_perplexity` is that of a model that
    knows only word frequencies."""
    metrics: tuple[str, ...]
    matrices: pd.DataFrame
    """One row per true matrix, then one per group (mean over trials), in plan order. `over_floor`
    is the perplexity divided by the true model's on the same tokens; `nats_over_floor` is its
    logarithm."""

    @property
    def true_rank(self) -> int:
        """Rank of the measured rows."""
        return int(self.exact["true_rank"])


def true_rank_numbers(frame: pd.DataFrame, request: TrueRank) -> TrueRankNumbers | None:
    """Return the ranks; None if no true rank was measured.

    Models measured on other rows than the true matrix are left out.
    """
    if "true_rank" not in frame:
        return None
    trials = frame[(frame["state"] == "done") & frame["true_rank"].notna()]
    if trials.empty:
        return None
    truths: dict[str, Mapping[Any, Any]] = {
        str(row["variant"]): row for row in trials.to_dict("records")
    }
    exact = truths.get(EXACT) or next(iter(truths.values()))
    has_rows = (frame["rank_rows"] == exact["rank_rows"]) | frame["rank_rows"].isna()
    models = frame[frame["variant"].isna() & has_rows]
    metrics = tuple(
        column
        for metric in request.metrics
        for column in (PRESS_BY_EPS if metric == PRESS else (metric,))
    )
    return TrueRankNumbers(
        exact=exact,
        metrics=metrics,
        matrices=tidy(
            (*_true_rows(truths.values(), metrics, exact), *_learned_rows(models, metrics, exact))
        ),
    )


def _true_rows(
    truths: Iterable[Mapping[Any, Any]], metrics: tuple[str, ...], exact: Mapping[Any, Any]
) -> Iterator[dict[str, Any]]:
    for row in truths:
        key = {"matrix": str(row["group"]), "variant": str(row["variant"]), "trials": 1}
        ranks = {metric: float(row[metric]) for metric in metrics}
        yield _row(exact, key | ranks, float(row["test_perplexity"]), 1.0)


def _learned_rows(
    models: pd.DataFrame, metrics: tuple[str, ...], exact: Mapping[Any, Any]
) -> Iterator[dict[str, Any]]:
    columns = {metric: PRESS if metric == PRESS_BY_EPS[1] else metric for metric in metrics}
    values = {metric: values_by_group(models, column) for metric, column in columns.items()}
    for group, perplexities in values_by_group(models, "test_perplexity").items():
        key = {"matrix": group, "variant": LEARNED, "trials": len(perplexities)}
        ranks = {
            metric: None
            if metric == PRESS_BY_EPS[0]
            else summarise_sample(ranks_by_group[group]).mean
            for metric, ranks_by_group in values.items()
        }
        mean = summarise_sample(perplexities).mean
        yield _row(exact, key | ranks, mean, mean and mean / exact["test_perplexity"])


def _row(
    exact: Mapping[Any, Any],
    matrix: dict[str, Any],
    perplexity: float | None,
    over_floor: float | None,
) -> dict[str, Any]:
    return {
        **matrix,
        "true_rank": int(exact["true_rank"]),
        "language_rank": int(exact["language_rank"]),
        "test_perplexity": perplexity,
        "over_floor": over_floor,
        "nats_over_floor": over_floor and math.log(over_floor),
    }
