"""The figures of groups: their metrics beside the published ones, and their differences from
baselines."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis import (
    ContrastNumbers,
    DifferenceNumbers,
    GroupNumbers,
    mean_interval,
)
from orchestrator.report import formats
from orchestrator.report.figures import Drawing
from orchestrator.report.sections.dots import DotPanel, DotRow, dot_drawings
from orchestrator.words import listed
from search_spaces.published import PublishedNumber

FIRST = ("test_perplexity", "press_rank")
NOT_DRAWN = ("parameters", "train_perplexity", "valid_perplexity")
"""What is the same at every seed, or goes with another metric of its table."""


def group_drawings(numbers: GroupNumbers) -> tuple[Drawing, ...]:
    """A panel a metric, with the published values."""
    metrics = [
        metric
        for metric in numbers.request.metrics
        if any(line.single[metric] for line in numbers.lines)
    ]
    shown = [metric for metric in metrics if metric not in NOT_DRAWN] or metrics
    if not shown:
        return ()
    shown.sort(key=lambda metric: FIRST.index(metric) if metric in FIRST else len(FIRST))
    caption = f"{formats.capital(listed([formats.title(metric) for metric in shown]))} by group"
    if any(line.done < line.trials for line in numbers.lines):
        caption += ", in brackets the done trials of those planned"
    panels = [_panel(metric, numbers) for metric in shown]
    return dot_drawings("groups", caption, panels, comparable=numbers.comparable)


def _panel(metric: str, numbers: GroupNumbers) -> DotPanel:
    source = f"published, {formats.corpus_title(numbers.corpus)}"
    rows = [
        DotRow(
            name=line.group
            if line.done == line.trials
            else f"{line.group} ({line.done} of {line.trials})",
            trials=line.single[metric],
            mean=line.values[metric].mean,
            interval=mean_interval(line.values[metric]),
            published={source: line.published[metric]} if metric in line.published else {},
        )
        for line in numbers.lines
    ]
    return DotPanel(title=formats.capital(formats.title(metric)), rows=rows)


def gain_drawings(numbers: DifferenceNumbers) -> tuple[Drawing, ...]:
    """By how much each group is better than its baseline, and who else says so."""
    metric, corpus, lines = (
        formats.title(numbers.request.metric),
        formats.corpus_title(numbers.corpus),
        numbers.lines,
    )
    rows = [
        DotRow(
            name=name,
            trials=line.single,
            mean=line.difference,
            published={
                f"{source}, {corpus}": PublishedNumber(value=value)
                for source, value in line.published.items()
            },
        )
        for name, line in zip(
            _names([(line.group, line.baseline) for line in lines]), lines, strict=True
        )
    ]
    caption = f"Mean {metric} of the baseline less that of the model, which is better right of the dashed line"
    panel = DotPanel(title=f"gain in {metric}", rows=rows, zero_line=True)
    return dot_drawings("differences", caption, [panel], comparable=numbers.comparable)


def contrast_drawings(numbers: ContrastNumbers) -> tuple[Drawing, ...]:
    """The differences of a family of tests with the tests' intervals."""
    metric, lines = formats.title(numbers.metric), numbers.comparisons
    rows = [
        DotRow(
            name=name,
            trials=numbers.single[line.names],
            mean=line.test.value,
            interval=line.test.interval,
        )
        for name, line in zip(_names([line.names for line in lines]), lines, strict=True)
    ]
    partner = "baseline at the same seed"
    if not all(line.is_paired for line in lines):
        partner += " (unpaired tests: from the baseline's mean)"
    caption = (
        f"Difference in {metric} from the {partner}; left of the dashed line the model's is lower"
    )
    panel = DotPanel(title=f"difference in {metric}", rows=rows, zero_line=True)
    return dot_drawings("tests", caption, [panel])


def _names(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """What a row is called: by the baseline as well."""
    return [f"{group}\nagainst {baseline}" for group, baseline in pairs]
