"""Metrics by group of trials, with what the papers printed for the same groups; what a tuning came
to, by its sides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from orchestrator.analysis.statistics.samples import (
    SampleSummary,
    difference_of_means,
    summarise_sample,
)
from orchestrator.analysis.values import TrialValue, less_mean, trials_by_group, values_by_group
from orchestrator.store import ENDED
from search_spaces.analyses import Counts, Curves, Differences, GroupTable
from search_spaces.published import PublishedNumber

if TYPE_CHECKING:
    import pandas as pd

Printed = TypeVar("Printed")
Request = TypeVar("Request")
Line = TypeVar("Line")


@dataclass(frozen=True, kw_only=True)
class LinesBesidePrinted(Generic[Request, Line]):
    """The lines of a table, in the order of the plan or of the request."""

    request: Request
    corpus: str
    """Whose printed values stand beside; empty for none."""
    comparable: bool = False
    """Whether these are of models and a text like ours, so that one axis holds both."""
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class GroupLine:
    """One group: its trials, the metrics over those that are done, and the printed values by
    metric."""

    group: str
    trials: int
    done: int
    values: Mapping[str, SampleSummary]
    single: Mapping[str, tuple[TrialValue, ...]]
    """What `values` summarise."""
    published: Mapping[str, PublishedNumber]


@dataclass(frozen=True, kw_only=True)
class DifferenceLine:
    """By how much a metric's mean is lower in a group than in its baseline; None where one of them
    has no value."""

    group: str
    baseline: str
    difference: float | None
    single: tuple[TrialValue, ...]
    """By how much each trial of the group is lower than the baseline's mean."""
    published: Mapping[str, float]
    """Who says so -> the difference."""


GroupNumbers = LinesBesidePrinted[GroupTable, GroupLine]
DifferenceNumbers = LinesBesidePrinted[Differences, DifferenceLine]


@dataclass(frozen=True, kw_only=True)
class CurveNumbers:
    """Points of ours and those printed for a corpus: columns x and the metrics, NaN for no value,
    by group."""

    request: Curves
    corpus: str
    points: pd.DataFrame
    """One a trial."""
    means: pd.DataFrame
    """One a group: the mean over its seeds."""
    printed: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class CountNumbers:
    """A table of counts."""

    request: Counts
    values: tuple[float, ...]
    """From the least to the greatest: those that came up, and those that could have."""
    counts: Mapping[str, tuple[int, ...]]
    """Group -> its done trials with each of `values`, in the order of the plan."""


@dataclass(frozen=True, kw_only=True)
class TunedSide:
    """One side of a tuning; `best` and its perplexity are None before a trial of stage 1 or 2 is
    done."""

    side: str
    stage1: int
    stage2: int
    """Trials of stage 2 that have ended, stopped early or not."""
    pruned: int
    best: str | None
    """Name of the trial of stages 1 and 2 with the least validation perplexity."""
    valid_perplexity: float | None


def printed_beside(
    published: Mapping[str, Mapping[str, Printed]], corpus: str
) -> tuple[str, Mapping[str, Printed]]:
    """Whose printed values to show, the corpus' own or those of the first one that the paper used,
    and what they are.

    An empty name where nothing is printed.
    """
    name = corpus if corpus in published else next(iter(published), "")
    return name, published.get(name, {})


def group_numbers(
    frame: pd.DataFrame, request: GroupTable, *, corpus: str, scale: str
) -> GroupNumbers:
    """The table that a study asks for."""
    by_metric = {metric: trials_by_group(frame, metric) for metric in request.metrics}
    groups = [
        name
        for name in dict.fromkeys(frame["group"])
        if not request.groups or name in request.groups
    ]
    trials = {group: frame[frame["group"] == group] for group in groups}
    comparable = _comparable(request, corpus, scale)
    corpus, printed = printed_beside(request.published, corpus)
    return GroupNumbers(
        request=request,
        corpus=corpus,
        comparable=comparable,
        lines=tuple(
            GroupLine(
                group=group,
                trials=len(trials[group]),
                done=int((trials[group]["state"] == "done").sum()),
                values={
                    metric: summarise_sample(_values(by_metric[metric][group]))
                    for metric in request.metrics
                },
                single={metric: by_metric[metric][group] for metric in request.metrics},
                published=printed.get(group, {}),
            )
            for group in groups
        ),
    )


def difference_numbers(
    frame: pd.DataFrame, request: Differences, *, corpus: str, scale: str
) -> DifferenceNumbers:
    """The differences from the baselines that a study asks for; groups that the plan does not have
    are left out."""
    trials = trials_by_group(frame, request.metric)
    samples = {group: summarise_sample(_values(single)) for group, single in trials.items()}
    comparable = _comparable(request, corpus, scale)
    corpus, printed = printed_beside(request.published, corpus)
    return DifferenceNumbers(
        request=request,
        corpus=corpus,
        comparable=comparable,
        lines=tuple(
            DifferenceLine(
                group=group,
                baseline=baseline,
                difference=difference_of_means(samples[baseline], samples[group]),
                single=tuple(
                    replace(one, value=-one.value)
                    for one in less_mean(trials[group], samples[baseline])
                ),
                published=printed.get(group, {}),
            )
            for group, baseline in request.baselines.items()
            if group in trials and baseline in trials
        ),
    )


def _values(trials: Sequence[TrialValue]) -> list[float]:
    return [one.value for one in trials]


def _comparable(request: GroupTable | Differences, corpus: str, scale: str) -> bool:
    """Smaller models, or another text, have other perplexities and ranks than a paper's."""
    return scale == "paper" and corpus in request.published


def curve_numbers(frame: pd.DataFrame, request: Curves, *, corpus: str) -> CurveNumbers:
    """The curves that a study asks for; a printed point stands where our trials of its group do."""
    import pandas as pd

    done = frame[frame["state"] == "done"].set_index("group")
    points = done.reindex(columns=[request.x, *request.metrics]).set_axis(
        ["x", *request.metrics], axis="columns"
    )
    numbers = points.apply(pd.to_numeric, errors="coerce").astype(float)
    points = numbers.replace([math.inf, -math.inf], math.nan).dropna(subset=["x"])
    means = points.groupby(level=0, sort=False).mean()
    corpus, printed = printed_beside(request.published, corpus)
    return CurveNumbers(
        request=request,
        corpus=corpus,
        points=points,
        means=means,
        printed=_printed(printed, request, means["x"].to_dict()),
    )


def _printed(
    groups: Mapping[str, Mapping[str, PublishedNumber]],
    request: Curves,
    places: Mapping[Any, float],
) -> pd.DataFrame:
    import pandas as pd

    rows = {}
    for group, numbers in groups.items():
        row = {metric: numbers[metric].value for metric in request.metrics if metric in numbers}
        if "generalisation_gap" in request.metrics and {
            "train_perplexity",
            "test_perplexity",
        } <= set(numbers):
            row["generalisation_gap"] = (
                numbers["test_perplexity"].value - numbers["train_perplexity"].value
            )
        rows[group] = {
            "x": numbers[request.x].value if request.x in numbers else places.get(group),
            **row,
        }
    points = pd.DataFrame.from_dict(
        rows, orient="index", columns=["x", *request.metrics], dtype=float
    )
    return points.dropna(subset=["x"])


def count_numbers(frame: pd.DataFrame, request: Counts) -> CountNumbers:
    """The table that a study asks for."""
    groups = values_by_group(frame, request.metric)
    values = tuple(
        sorted({*request.values, *(value for came_up in groups.values() for value in came_up)})
    )
    counts = {
        group: tuple(came_up.count(value) for value in values) for group, came_up in groups.items()
    }
    return CountNumbers(request=request, values=values, counts=counts)


def tuned_numbers(frame: pd.DataFrame) -> tuple[TunedSide, ...]:
    """The sides in the order of the plan; none where no trial is one of a tuning."""
    if "side" not in frame.columns:
        return ()
    return tuple(_side(str(name), trials) for name, trials in frame.groupby("side", sort=False))


def _side(name: str, trials: pd.DataFrame) -> TunedSide:
    ended = trials["stage"][trials["state"].isin(ENDED)]
    tried = trials[(trials["state"] == "done") & (trials["stage"] != "final")]
    by_name = (
        tried.set_index("name").reindex(columns=["valid_perplexity"])["valid_perplexity"].dropna()
    )
    return TunedSide(
        side=name,
        stage1=int((ended == "stage1").sum()),
        stage2=int((ended == "stage2").sum()),
        pruned=int((trials["state"] == "pruned").sum()),
        best=None if by_name.empty else str(by_name.idxmin()),
        valid_perplexity=None if by_name.empty else float(by_name.min()),
    )
