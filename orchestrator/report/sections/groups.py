"""Tables of groups: means beside the printed ones, differences from a baseline, counts of a
metric's values, tuning."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.analysis import CountNumbers, DifferenceNumbers, GroupNumbers
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table
from orchestrator.report.prose import prose
from orchestrator.report.sections.group_figures import gain_drawings, group_drawings
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell
from orchestrator.words import listed

if TYPE_CHECKING:
    import pandas as pd

ORDERED = ("valid_perplexity", "press_rank", "effective_rank_1e-4")


def group_section(numbers: GroupNumbers) -> Section:
    """Return the table and figure of a GroupTable request."""
    request, corpus = numbers.request, numbers.corpus
    shown: list[Any] = ["group", "done"]
    printed = _printed_metrics(numbers)
    for metric in request.metrics:
        title = formats.title(metric)
        shown.append((metric, Column(title, cell=partial(_mean, metric))))
        if metric in printed:
            heading = f"{title}, published {formats.corpus_title(corpus)}"
            shown.append((metric, Column(heading, cell=partial(_published, metric, corpus))))
    beside = f", beside {request.source}" if printed and request.source else ""
    return Section(
        kind="groups",
        heading=request.title,
        findings=tuple(_orders(numbers)),
        cautions=tuple(_unmeasured(numbers)),
        tables=(
            Table(
                caption=f"Means \N{PLUS-MINUS SIGN} standard deviations over the done trials{beside}",
                frame=numbers.groups,
                shown=shown,
                file="groups.csv",
            ),
        ),
        drawings=group_drawings(numbers),
    )


def _mean(metric: str, row: Any) -> Cell:
    mean, deviation = (getattr(row, f"{metric}_{end}") for end in ("mean", "sd"))
    return Cell(formats.spread(metric, mean, deviation), mean)


def _published(metric: str, corpus: str, row: Any) -> Cell:
    value, deviation = (getattr(row, f"published_{corpus}_{metric}{end}") for end in ("", "_sd"))
    return Cell(formats.printed(metric, value, deviation), value)


def _printed_metrics(numbers: GroupNumbers) -> Collection[str]:
    measured = set(numbers.groups.dropna(axis="columns", how="all").columns)
    return [
        metric
        for metric in numbers.request.metrics
        if f"published_{numbers.corpus}_{metric}" in measured
    ]


def _unmeasured(numbers: GroupNumbers) -> Iterator[str]:
    """Metrics that were asked for and that no done trial has, as when they are misspelt."""
    measured = set(numbers.trials["metric"])
    missing = [metric for metric in numbers.request.metrics if metric not in measured]
    if missing and any(numbers.groups["done"]):
        yield (
            f"No done trial has {listed(missing)}, which this study asks for; metrics are the "
            "columns of `results`."
        )


def _orders(numbers: GroupNumbers) -> Iterator[str]:
    """The groups by rank or perplexity: descriptions of means, not tests."""
    for metric in ORDERED:
        means = _measured(numbers, f"{metric}_mean")
        if len(means) > 1:
            title = formats.capital(formats.title(metric))
            text = f"{title} from low to high: {formats.ranked(means)}."
            printed = _measured(numbers, f"published_{numbers.corpus}_{metric}")
            if printed.keys() >= means.keys():
                order = ", ".join(sorted(means, key=printed.__getitem__))
                corpus = formats.corpus_title(numbers.corpus)
                text += f" The published order for {corpus} is {order}."
            yield text


def _measured(numbers: GroupNumbers, column: str) -> dict[str, float]:
    """Return the numbers of a column by group."""
    columns = numbers.groups.reindex(columns=["group", column]).dropna()
    return dict(zip(columns["group"], columns[column], strict=True))


def difference_section(numbers: DifferenceNumbers) -> Section:
    """Return the table and figure of a Differences request."""
    request, corpus = numbers.request, formats.corpus_title(numbers.corpus)
    metric = formats.title(request.metric)
    beside = f", beside {request.source}" if numbers.sources and request.source else ""
    printed = [
        (name, Column(f"{source}, {corpus}", formats.coefficient))
        for name, source in numbers.sources.items()
    ]
    return Section(
        kind="differences",
        heading=f"Gain in {metric} over the baseline",
        tables=(
            Table(
                caption=f"{formats.capital(metric)} of the baseline less the model's: positive is "
                f"better{beside}",
                frame=numbers.differences,
                shown=[
                    "group",
                    "baseline",
                    ("ours", Column("ours", formats.coefficient)),
                    *printed,
                ],
                file="differences.csv",
            ),
        ),
        method="Differences of means; with one seed a model they hold for that seed alone.",
        drawings=gain_drawings(numbers),
    )


def count_section(numbers: CountNumbers) -> Section:
    """Return the table of a Counts request, and how often its least and greatest value came up."""
    metric, counts = formats.title(numbers.request.metric), numbers.counts
    values = list(counts.columns)[1:]
    headings = [formats.setting(value) for value in values]
    totals = [int(counts[value].sum()) for value in values]
    findings: tuple[str, ...] = ()
    if sum(totals) and len(values) > 1:
        findings = (
            f"Of {sum(totals)} trials, {totals[0]} have the least {metric} of the table "
            f"({headings[0]}), {totals[-1]} the greatest ({headings[-1]}).",
        )
    columns = zip(map(str, values), map(Column, headings), strict=True)
    return Section(
        kind="counts",
        heading=f"How often each {metric} came up",
        findings=findings,
        tables=(
            Table(
                caption=f"Done trials by {metric}",
                frame=counts,
                shown=["group", *columns],
                file="counts.csv",
            ),
        ),
    )


def tuned_section(sides: pd.DataFrame) -> Section:
    """Return how much each side of a comparison was tuned, and with what it went on: the table of a
    Tuned request."""
    names = {
        "stage1": "stage 1",
        "stage2": "stage 2",
        "pruned": "stopped early",
        "valid_perplexity": "validation perplexity",
        "best": "best setting",
    }
    return Section(
        kind="tuning",
        heading="The tuning",
        tables=(
            Table(
                caption="Trials of each side, and the best of them",
                frame=sides,
                shown=list(sides.columns),
                file="tuning.csv",
                names=names,
            ),
        ),
        method=prose("method_tuning.txt"),
    )
