"""Metrics by group of trials, with what the papers printed for the same groups; what a tuning came
to, by its sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from orchestrator.analysis.statistics.samples import difference_of_means, summarise_sample
from orchestrator.analysis.tidy_frames import sampled, tidy, trial_values, values_by_group
from orchestrator.store import ENDED
from search_spaces.analyses import Counts, Curves, Differences, GroupTable

Printed = TypeVar("Printed")
PERPLEXITIES = ("train_perplexity", "test_perplexity")


@dataclass(frozen=True, kw_only=True)
class GroupNumbers:
    """The answer to a GroupTable request."""

    request: GroupTable
    corpus: str
    """The corpus of the printed values; empty for none."""
    comparable: bool
    """Whether these are of models and a text like ours, so that one axis holds both."""
    groups: pd.DataFrame
    """A row a group: group, trials, done; for each metric METRIC_n, METRIC_mean, METRIC_sd and
    METRIC_low, METRIC_high (95%, of the mean), then published_CORPUS_METRIC and the printed
    deviation published_CORPUS_METRIC_sd."""
    trials: pd.DataFrame
    """A row for each metric of a done trial: metric, group, name, value."""


@dataclass(frozen=True, kw_only=True)
class DifferenceNumbers:
    """The answer to a Differences request."""

    request: Differences
    corpus: str
    """The corpus of the printed differences; empty for none."""
    comparable: bool
    differences: pd.DataFrame
    """A row a group: group, baseline, ours (by how much the metric's mean is lower in the group;
    None if one of them has no value), then the printed differences."""
    sources: Mapping[str, str]
    """Column of printed differences -> who says so."""
    trials: pd.DataFrame
    """A row a trial: group, baseline, name, value (the baseline's mean minus the
    trial's)."""


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
    """The answer to a Counts request."""

    request: Counts
    counts: pd.DataFrame
    """A row a group: group, and for each value, ascending, how many of its done trials have it:
    the values that came up, and those that could have."""


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
    """Return the means that a study asks for."""
    comparable = _comparable(request, corpus, scale)
    corpus, printed = printed_beside(request.published, corpus)
    values = {metric: values_by_group(frame, metric) for metric in request.metrics}
    records = []
    for group, of_group in frame.groupby("group", sort=False):
        if request.groups and group not in request.groups:
            continue
        done = int((of_group["state"] == "done").sum())
        record: dict[str, Any] = {"group": group, "trials": len(of_group), "done": done}
        for metric in request.metrics:
            record |= sampled(values[metric][str(group)], f"{metric}_")
        for metric in request.metrics if corpus else ():
            number = printed.get(str(group), {}).get(metric)
            name = f"published_{corpus}_{metric}"
            record |= {name: number and number.value, f"{name}_sd": number and number.deviation}
        records.append(record)
    trials = (trial_values(frame, metric).assign(metric=metric) for metric in request.metrics)
    return GroupNumbers(
        request=request,
        corpus=corpus,
        comparable=comparable,
        groups=tidy(records, ("group", "trials", "done")),
        trials=pd.concat(trials),
    )


def difference_numbers(
    frame: pd.DataFrame, request: Differences, *, corpus: str, scale: str
) -> DifferenceNumbers:
    """Return the differences from the baselines that a study asks for; groups that the plan does
    not have are left out."""
    values = values_by_group(frame, request.metric)
    pairs = [pair for pair in request.baselines.items() if values.keys() >= set(pair)]
    comparable = _comparable(request, corpus, scale)
    corpus, printed = printed_beside(request.published, corpus)
    sources = dict.fromkeys(source for group, _ in pairs for source in printed.get(group, ()))
    single = trial_values(frame, request.metric)
    records, trials = [], [single[:0].assign(baseline=None)]
    for group, baseline in pairs:
        theirs = summarise_sample(values[baseline])
        ours = difference_of_means(theirs, summarise_sample(values[group]))
        published = {f"{source} {corpus}": printed.get(group, {}).get(source) for source in sources}
        records.append({"group": group, "baseline": baseline, "ours": ours, **published})
        if theirs.mean is not None:
            of_group = single[single["group"] == group]
            lower_by = theirs.mean - of_group["value"]
            trials.append(of_group.assign(baseline=baseline, value=lower_by))
    return DifferenceNumbers(
        request=request,
        corpus=corpus,
        comparable=comparable,
        differences=tidy(records, ("group", "baseline", "ours")),
        sources={f"{source} {corpus}": source for source in sources},
        trials=pd.concat(trials),
    )


def _comparable(request: GroupTable | Differences, corpus: str, scale: str) -> bool:
    """Smaller models, or another text, have other perplexities and ranks than a paper's."""
    return scale == "paper" and corpus in request.published


def curve_numbers(frame: pd.DataFrame, request: Curves, *, corpus: str) -> CurveNumbers:
    """Return the curves that a study asks for; a printed point stands where our trials of its group
    do."""
    done = frame[frame["state"] == "done"].set_index("group")
    columns = ["x", *request.metrics]
    points = done.reindex(columns=[request.x, *request.metrics]).set_axis(columns, axis="columns")
    points = points.apply(pd.to_numeric, errors="coerce").astype(float).dropna(subset=["x"])
    means = points.groupby(level=0, sort=False).mean()
    corpus, published = printed_beside(request.published, corpus)
    values = {
        group: {metric: number.value for metric, number in numbers.items()}
        for group, numbers in published.items()
    }
    printed = pd.DataFrame.from_dict(values, orient="index", dtype=float)
    wanted = dict.fromkeys((*PERPLEXITIES, request.x, *request.metrics))
    printed = printed.reindex(columns=list(wanted))
    printed["generalisation_gap"] = printed["test_perplexity"] - printed["train_perplexity"]
    printed["x"] = printed[request.x].fillna(means["x"])
    return CurveNumbers(
        request=request,
        corpus=corpus,
        points=points,
        means=means,
        printed=printed[columns].dropna(subset=["x"]),
    )


def count_numbers(frame: pd.DataFrame, request: Counts) -> CountNumbers:
    """Return the counts that a study asks for."""
    groups = values_by_group(frame, request.metric)
    values = sorted({*request.values, *(value for came_up in groups.values() for value in came_up)})
    counts = (
        {"group": group} | {value: came_up.count(value) for value in values}
        for group, came_up in groups.items()
    )
    return CountNumbers(request=request, counts=tidy(counts, ("group", *values)))


def tuned_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each side of a tuning, in the order of the plan; none if no trial is one of
    a tuning.

    Columns: side; stage1 and stage2 (trials that have ended, stopped early or not); pruned;
    valid_perplexity, the least of stages 1 and 2, and best, the setting that has it.
    """
    sides = frame.groupby("side", sort=False) if "side" in frame else ()
    return tidy(_side(str(name), trials) for name, trials in sides)


def _side(name: str, trials: pd.DataFrame) -> dict[str, Any]:
    ended = trials["stage"][trials["state"].isin(ENDED)]
    tried = trials[(trials["state"] == "done") & (trials["stage"] != "final")]
    by_name = (
        tried.set_index("name").reindex(columns=["valid_perplexity"])["valid_perplexity"].dropna()
    )
    none = by_name.empty
    return {
        "side": name,
        "stage1": int((ended == "stage1").sum()),
        "stage2": int((ended == "stage2").sum()),
        "pruned": int((trials["state"] == "pruned").sum()),
        "valid_perplexity": None if none else float(by_name.min()),
        "best": None if none else str(by_name.idxmin()).removeprefix(f"{name} "),
    }
