"""Significance tests between groups, paired by seed, with what they could and could not have shown.

"Not significant" is never reported as "equal".
"""

from __future__ import annotations

from typing import Any

from orchestrator.analysis import FEWEST, POWER, SIGNIFICANCE, ContrastNumbers, rows
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table
from orchestrator.report.prose import prose
from orchestrator.report.sections.group_figures import contrast_drawings
from orchestrator.report.sections.section import Section
from orchestrator.words import counted

DISTANCE = formats.digits(2)


def contrast_section(numbers: ContrastNumbers) -> Section:
    """Return the table, figure and verdicts of a Comparison request."""
    request, corpus = numbers.request, numbers.corpus
    metric = formats.title(request.metric)
    published = f"published_p_{corpus}"
    printed = published in numbers.comparisons.dropna(axis="columns", how="all")
    unpaired_p = f"unpaired p{' (as in the paper)' * printed}"
    shown: list[str | tuple[str, Column]] = [
        "group",
        "baseline",
        ("pairs_lower", Column("lower at", cell=_lower_at)),
        ("difference", Column("difference", formats.coefficient, interval=True)),
        "difference_p",
        "holm_p",
        "effect",
        ("detectable_difference", Column("detectable", DISTANCE)),
        ("equal_within", Column("equal within", DISTANCE)),
        ("correlation", Column("r over seeds", formats.coefficient)),
        "unpaired",
        ("unpaired_p", Column(unpaired_p, formats.p_value)),
    ]
    if printed:
        heading = f"published {formats.corpus_title(corpus)}: p"
        shown.append((published, Column(heading, formats.p_value)))
    beside = f", beside {request.source}" if printed and request.source else ""
    # A low loss is good, and a low rank is neither.
    negative = "the model's is lower" if "rank" in request.metric else "the model is better"
    return Section(
        kind="tests",
        heading=f"Is the difference in {metric} more than chance?",
        findings=tuple(verdict(row, request.metric) for row in rows(numbers.comparisons)),
        tables=(
            Table(
                caption=f"Differences in {metric}, model less baseline (negative: {negative})"
                f"{beside}",
                frame=numbers.comparisons,
                shown=shown,
                file="tests.csv",
            ),
        ),
        method=prose("method_tests.txt", fewest=FEWEST),
        drawings=contrast_drawings(numbers),
    )


def verdict(row: Any, metric: str) -> str:
    """Return which group of a test is lower and by how much, or what stays open.

    The p-value adjusted by Holm over its family alone decides; the intervals and the detectable
    difference are those of this one comparison, not adjusted."""
    group, baseline, title = row.group, row.baseline, formats.title(metric)
    ends = row.difference_low, row.difference_high
    if row.difference_p is None:
        return (
            f"Nothing can be concluded about the {title} of {group} and {baseline}: {row.missing}."
        )
    is_paired = row.test == "paired"
    at = " at the same seed" if is_paired else ""
    kind = "95% interval of this comparison alone"
    p_words = (
        f"Holm-adjusted {formats.p_equals(row.holm_p)}, "
        f"{formats.p_equals(row.difference_p)} unadjusted"
    )
    if row.holm_p < SIGNIFICANCE:
        lower, higher = (group, baseline) if row.difference < 0 else (baseline, group)
        near, far = sorted(map(abs, ends))
        by, low, high = (
            formats.to_width(value, *ends) for value in (abs(row.difference), near, far)
        )
        text = (
            f"{lower} has a lower {title} than {higher}{at}, by {by} ({kind} {low} to {high}; "
            f"{p_words})"
        )
    else:
        low, high = (formats.to_width(end, *ends, signed=True) for end in ends)
        text = (
            f"The difference in {title} between {group} and {baseline}{at} is not significant "
            f"({p_words}): {group} minus {baseline} may lie anywhere from {low} to {high} "
            f"({kind}), and {_detectable(row)}"
        )
    if not is_paired:
        return (
            f"{text}. The test is unpaired (Welch's), as fewer than two seeds have one trial of "
            "each."
        )
    text += f"; {group} is lower at {row.pairs_lower} of {row.pairs} seeds."
    if row.without_partner:
        alone = counted(row.without_partner, "value")
        text += f" Excluded for lack of a partner with the same seed: {alone}."
    return text


def _detectable(row: Any) -> str:
    if row.detectable_difference is None:
        return f"no smallest difference that could have been shown is given: {row.missing}"
    sample = f"{row.n_group} and {row.n_baseline} seeds"
    if row.test == "paired":
        sample = f"{row.pairs} pairs"
    elif row.n_group == row.n_baseline:
        sample = f"{row.n_group} seeds of each"
    smallest = formats.to_width(row.detectable_difference, row.difference_low, row.difference_high)
    return (
        f"the smallest difference that {sample} could have shown with {POWER:.0%} power is "
        f"{smallest}"
    )


def _lower_at(row: Any) -> str:
    if row.test == "paired":
        return f"{row.pairs_lower} of {row.pairs}"
    return f"unpaired, {row.n_group} + {row.n_baseline}"
