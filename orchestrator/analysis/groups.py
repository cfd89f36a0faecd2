"""Metrics by group with the printed values, and the outcome of a tuning by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from orchestrator.analysis.statistics.samples import difference_of_means, summarise_sample
from orchestrator.analysis.tidy_frames import sample_row, tidy, trial_values, values_by_group
from orchestrator.store import ENDED
from search_spaces.analyses import Counts, Curves, Differences, GroupTable
from trainables.config import Goal

Printed = TypeVar("Printed")
VALID_PERPLEXITY = Goal("valid_perplexity")
PERPLEXITIES = ("train_perplexity", "test_perplexity")


@dataclass(frozen=True, kw_only=True)
class GroupNumbers:
    """Answer to GroupTable."""

    request: GroupTable
    corpus: str
    comparable: bool
    """True if our trials have the scale and corpus of the printed values."""
    groups: pd.DataFrame
    """One row per group. METRIC_low and METRIC_high are the mean's 95% interval;
    published_CORPUS_METRIC is the printed value."""
    trials: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class DifferenceNumbers:
    """Answer to Differences."""

    request: Differences
    corpus: str
    comparable: bool
    differences: pd.DataFrame
    """`ours` is the baseline's mean minus the group's, or the reverse if higher is better; None if
    either is missing."""
    sources: Mapping[str, str]
    """Source of each column of printed differences."""
    trials: pd.DataFrame
    """`value` is the trial's gain over the baseline's mean."""


@dataclass(frozen=True, kw_only=True)
class CurveNumbers:
    """Answer to Curves: our points and means, and the printed points. A missing metric is NaN."""

    request: Curves
    corpus: str
    points: pd.DataFrame
    means: pd.DataFrame
    printed: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class CountNumbers:
    """Answer to Counts."""

    request: Counts
    counts: pd.DataFrame
    """Numbers of done trials: a row per group, a column per observed or requested value."""


def printed_values(
    published: Mapping[str, Mapping[str, Printed]], corpus: str
) -> tuple[str, Mapping[str, Printed]]:
    """Return a corpus name and its printed values.

    The corpus is `corpus` or, if it has no printed values, the first that has some; "" if none has.
    """
    name = corpus if corpus in published else next(iter(published), "")
    return name, published.get(name, {})


def group_numbers(
    frame: pd.DataFrame, request: GroupTable, *, corpus: str, scale: str
) -> GroupNumbers:
    """Return the metrics of the requested groups (default: all)."""
    comparable = scale == "paper" and corpus in request.published
    corpus, printed = printed_values(request.published, corpus)
    values = {metric: values_by_group(frame, metric) for metric in request.metrics}
    records = []
    for group, group_trials in frame.groupby("group", sort=False):
        if request.groups and group not in request.groups:
            continue
        done_count = int((group_trials["state"] == "done").sum())
        record: dict[str, Any] = {"group": group, "trials": len(group_trials), "done": done_count}
        for metric in request.metrics:
            record |= sample_row(values[metric][str(group)], f"{metric}_")
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
    """Return each group's gain over its baseline, if the plan has both."""
    values = values_by_group(frame, request.metric)
    pairs = [pair for pair in request.baselines.items() if values.keys() >= set(pair)]
    comparable = scale == "paper" and corpus in request.published
    corpus, printed = printed_values(request.published, corpus)
    sources = dict.fromkeys(source for group, _ in pairs for source in printed.get(group, ()))
    values_by_trial = trial_values(frame, request.metric)
    sign = request.goal.sign(request.metric)
    records, trials = [], [values_by_trial[:0].assign(baseline=None)]
    for group, baseline in pairs:
        baseline_sample = summarise_sample(values[baseline])
        difference = difference_of_means(baseline_sample, summarise_sample(values[group]))
        published_columns = {
            f"{source} {corpus}": printed.get(group, {}).get(source) for source in sources
        }
        records.append(
            {
                "group": group,
                "baseline": baseline,
                "ours": None if difference is None else sign * difference,
                **published_columns,
            }
        )
        if baseline_sample.mean is not None:
            group_trials = values_by_trial[values_by_trial["group"] == group]
            differences = sign * (baseline_sample.mean - group_trials["value"])
            trials.append(group_trials.assign(baseline=baseline, value=differences))
    return DifferenceNumbers(
        request=request,
        corpus=corpus,
        comparable=comparable,
        differences=tidy(records, ("group", "baseline", "ours")),
        sources={f"{source} {corpus}": source for source in sources},
        trials=pd.concat(trials),
    )


def curve_numbers(frame: pd.DataFrame, request: Curves, *, corpus: str) -> CurveNumbers:
    """Return our points and the printed ones; a printed point without x gets our group's mean x."""
    trials = frame[frame["state"] == "done"].set_index("group")
    columns = ["x", *request.metrics]
    points = trials.reindex(columns=[request.x, *request.metrics]).set_axis(columns, axis="columns")
    points = points.apply(pd.to_numeric, errors="coerce").astype(float).dropna(subset=["x"])
    means = points.groupby(level=0, sort=False).mean()
    corpus, published = printed_values(request.published, corpus)
    values = {
        group: {metric: number.value for metric, number in numbers.items()}
        for group, numbers in published.items()
    }
    printed = pd.DataFrame.from_dict(values, orient="index", dtype=float)
    all_columns = dict.fromkeys((*PERPLEXITIES, request.x, *request.metrics))
    printed = printed.reindex(columns=list(all_columns))
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
    """Return the number of done trials by group and value of the metric."""
    groups = values_by_group(frame, request.metric)
    values = sorted({*request.values, *(value for sample in groups.values() for value in sample)})
    counts = (
        {"group": group} | {value: sample.count(value) for value in values}
        for group, sample in groups.items()
    )
    return CountNumbers(request=request, counts=tidy(counts, ("group", *values)))


def tuned_numbers(frame: pd.DataFrame, goal: Goal = VALID_PERPLEXITY) -> pd.DataFrame:
    """Return one row per side (compared model) of a tuning, in plan order; empty without a tuning.

    stage1 and stage2 count ended trials, including pruned ones. The goal's metric is the best of
    both stages, and best names its setting.
    """
    sides = frame.groupby("side", sort=False) if "side" in frame else ()
    return tidy(_side(str(name), trials, goal) for name, trials in sides)


def _side(name: str, trials: pd.DataFrame, goal: Goal) -> dict[str, Any]:
    stages = trials["stage"][trials["state"].isin(ENDED)]
    candidates = trials[(trials["state"] == "done") & (trials["stage"] != "final")]
    values = candidates.set_index("name").reindex(columns=[goal.metric])[goal.metric]
    losses = values.dropna().map(goal.loss)
    is_empty = losses.empty
    return {
        "side": name,
        "stage1": int((stages == "stage1").sum()),
        "stage2": int((stages == "stage2").sum()),
        "pruned": int((trials["state"] == "pruned").sum()),
        goal.metric: None if is_empty else goal.loss(float(losses.min())),
        "best": None if is_empty else str(losses.idxmin()).removeprefix(f"{name} "),
    }
