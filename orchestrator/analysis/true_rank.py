"""The true rank of a generated language beside what each metric makes of the true matrix and of the
learned ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.statistics.samples import summarise_sample
from orchestrator.analysis.values import values_by_group
from search_spaces.analyses import TrueRank

if TYPE_CHECKING:
    import pandas as pd

EXACT = "float64"
PRESS = "press_rank"
PRESS_BY_EPS = {"float64": "press_rank_float64", "float32": "press_rank_float32"}


@dataclass(frozen=True, kw_only=True)
class MatrixRanks:
    """One log-P matrix, or the mean over those of a group: rank by metric, None where there is no
    value."""

    name: str
    variant: str | None
    """Of the truth: float64, float32 or noise; None of what a group learned."""
    trials: int
    """With a result."""
    ranks: Mapping[str, float | None]
    """Of the truth, the Press rank twice: by the eps of float64 and of float32."""
    perplexity: float | None
    excess: float | None
    """Test perplexity over the truth's, on the same tokens: 1.25 is 25% above the floor."""


@dataclass(frozen=True, kw_only=True)
class TrueRankNumbers:
    """The truth's matrices, then the groups, in the order of the plan."""

    exact: Mapping[str, float]
    """Metrics of the truth's exact matrix: the rank of the language, by construction, and of the
    rows measured; test perplexity of the true model, the floor; what it tends to on ever more text
    (entropy), and that of a model that knows how often each type comes, and no more (shares)."""
    metrics: tuple[str, ...]
    truth: tuple[MatrixRanks, ...]
    learned: tuple[MatrixRanks, ...]

    @property
    def true_rank(self) -> int:
        """Of the rows that were measured: less than the language's where they have fewer different
        contexts."""
        return int(self.exact["true_rank"])

    def is_true(self, rank: float | None) -> bool:
        """Whether a metric gives the true rank: it, or a number that rounds to it."""
        return rank is not None and round(rank) == self.true_rank


def true_rank_numbers(frame: pd.DataFrame, request: TrueRank) -> TrueRankNumbers | None:
    """The numbers that a study asks for; None on a corpus without a known truth, and before any of
    it is measured.

    A model is held against the truth on the same rows and tokens: one that was measured on others
    than the truth is left out."""
    if "true_rank" not in frame.columns:
        return None
    done = frame[(frame["state"] == "done") & frame["true_rank"].notna()]
    if done.empty:
        return None
    truths: dict[str, Mapping[Any, Any]] = {
        str(row["variant"]): row for row in done.to_dict("records")
    }
    exact = truths.get(EXACT) or next(iter(truths.values()))
    same_rows = (frame["rank_rows"] == exact["rank_rows"]) | frame["rank_rows"].isna()
    models = frame[frame["variant"].isna() & same_rows]
    return TrueRankNumbers(
        exact=exact,
        metrics=request.metrics,
        truth=tuple(_truth(row, request.metrics) for row in truths.values()),
        learned=tuple(_learned(models, request.metrics, exact["test_perplexity"])),
    )


def _truth(row: Mapping[Any, Any], metrics: tuple[str, ...]) -> MatrixRanks:
    names = [
        name
        for metric in metrics
        for name in (PRESS_BY_EPS.values() if metric == PRESS else (metric,))
    ]
    return MatrixRanks(
        name=str(row["group"]),
        variant=str(row["variant"]),
        trials=1,
        ranks={name: float(row[name]) for name in names},
        perplexity=float(row["test_perplexity"]),
        excess=1.0,
    )


def _learned(models: pd.DataFrame, metrics: tuple[str, ...], floor: float) -> Iterator[MatrixRanks]:
    ranks = {metric: values_by_group(models, metric) for metric in metrics}
    for group, perplexities in values_by_group(models, "test_perplexity").items():
        perplexity = summarise_sample(perplexities).mean
        yield MatrixRanks(
            name=group,
            variant=None,
            trials=len(perplexities),
            ranks={metric: summarise_sample(ranks[metric][group]).mean for metric in metrics},
            perplexity=perplexity,
            excess=None if perplexity is None else perplexity / floor,
        )
