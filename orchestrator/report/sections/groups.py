"""Tables of groups: means, differences and their tests, counts, tuning.

"Not significant" is never reported as "equal".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.analysis import (
    FEWEST,
    ContrastNumbers,
    CountNumbers,
    DifferenceNumbers,
    GroupNumbers,
    rows,
)
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table, with_interval
from orchestrator.report.findings import Finding, Verdict, describe, judge
from orchestrator.report.prose import cautions, prose
from orchestrator.report.sections.group_figures import (
    contrast_drawings,
    gain_drawings,
    group_drawings,
)
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell

if TYPE_CHECKING:
    import pandas as pd

    from search_spaces.analyses import Comparison

ORDERED = ("valid_perplexity", "press_rank", "effective_rank_1e-4")


def group_section(numbers: GroupNumbers) -> Section:
    """Return the section of a GroupTable request."""
    request, corpus = numbers.request, numbers.corpus
    columns: list[Any] = ["group", "done"]
    measured, beside = numbers.groups.dropna(axis="columns", how="all"), ""
    for metric in request.metrics:
        title = formats.with_unit(metric, request.goal)
        mean = partial(_mean, formats.spread, metric, f"{metric}_mean", f"{metric}_sd")
        columns.append((metric, Column(title, cell=mean)))
        printed = f"published_{corpus}_{metric}"
        if printed in measured:
            heading = f"{title}, published {formats.corpus_title(corpus)}"
            mean = partial(_mean, formats.printed, metric, printed, f"{printed}_sd")
            columns.append((metric, Column(heading, cell=mean)))
            beside = f", next to those of {request.source}" if request.source else ""
    return Section(
        kind="groups",
        heading=request.title,
        findings=tuple(_orders(numbers)),
        cautions=cautions("groups", missing=_unmeasured(numbers)),
        tables=(
            Table(
                caption="Means \N{PLUS-MINUS SIGN} standard deviations over the done "
                f"trials{beside}",
                frame=numbers.groups,
                columns=columns,
                file="groups.csv",
            ),
        ),
        drawings=group_drawings(numbers),
    )


def _mean(write: Callable[..., str], metric: str, mean: str, deviation: str, row: Any) -> Cell:
    value = getattr(row, mean)
    return Cell(write(metric, value, getattr(row, deviation)), value)


def _unmeasured(numbers: GroupNumbers) -> list[str]:
    if not any(numbers.groups["done"]):
        return []
    measured = set(numbers.trials["metric"])
    return [metric for metric in numbers.request.metrics if metric not in measured]


def _orders(numbers: GroupNumbers) -> Iterator[Finding]:
    more = numbers.request.metrics if numbers.request.is_own else ()
    for metric in dict.fromkeys([*ORDERED, *more]):
        means = _measured(numbers, f"{metric}_mean")
        if len(means) > 1:
            order = sorted(means, key=means.__getitem__)
            printed = _measured(numbers, f"published_{numbers.corpus}_{metric}")
            is_printed = printed.keys() >= means.keys()
            trials = numbers.groups["done"][numbers.groups["group"].isin(means)]
            verdict = Verdict(
                verdict="too few seeds" if min(trials) < 2 else "not measured",
                metric=metric,
                groups=(order[0], order[-1]),
                n=sum(trials),
            )
            yield describe(
                "order",
                [verdict],
                metric=metric,
                means=means,
                least=order[0],
                greatest=order[-1],
                corpus=numbers.corpus,
                published_order=sorted(means, key=printed.__getitem__) if is_printed else [],
            )


def _measured(numbers: GroupNumbers, column: str) -> dict[str, float]:
    columns = numbers.groups.reindex(columns=["group", column]).dropna()
    return dict(zip(columns["group"], columns[column], strict=True))


def difference_section(numbers: DifferenceNumbers) -> Section:
    """Return the section of a Differences request."""
    request, corpus = numbers.request, formats.corpus_title(numbers.corpus)
    metric = formats.title(request.metric)
    beside = f", next to those of {request.source}" if numbers.sources and request.source else ""
    printed = [
        (name, Column(f"{source}, {corpus}", formats.coefficient))
        for name, source in numbers.sources.items()
    ]
    return Section(
        kind="differences",
        heading=f"Gain in {metric} over the baseline",
        tables=(
            Table(
                caption=f"Gain in {metric} over the baseline: positive is better" + beside,
                frame=numbers.differences,
                columns=[
                    "group",
                    "baseline",
                    ("ours", Column("ours", formats.coefficient)),
                    *printed,
                ],
                file="differences.csv",
            ),
        ),
        method="Differences of means. With one seed per model, they hold only for that seed.",
        drawings=gain_drawings(numbers),
    )


def count_section(numbers: CountNumbers) -> Section:
    """Return the section of a Counts request."""
    metric, counts = formats.title(numbers.request.metric), numbers.counts
    values = list(counts)[1:]
    headings = [formats.setting(value) for value in values]
    totals = [int(counts[value].sum()) for value in values]
    findings: tuple[Finding, ...] = ()
    if sum(totals) and len(values) > 1:
        finding = describe(
            "counts",
            metric=numbers.request.metric,
            trials=sum(totals),
            least=values[0],
            at_least=totals[0],
            greatest=values[-1],
            at_greatest=totals[-1],
        )
        findings = (finding,)
    columns = zip(map(str, values), map(Column, headings), strict=True)
    return Section(
        kind="counts",
        heading=f"How often each {metric} occurred",
        findings=findings,
        tables=(
            Table(
                caption=f"Done trials by {metric}",
                frame=counts,
                columns=["group", *columns],
                file="counts.csv",
            ),
        ),
    )


def tuned_section(sides: pd.DataFrame) -> Section:
    """Return the section of a Tuned request: how each side of a comparison was tuned."""
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
                caption="Tuning trials of each side of the comparison, and the best setting",
                frame=sides,
                columns=list(sides.columns),
                file="tuning.csv",
                names=names,
            ),
        ),
        method=prose("method_tuning.txt", model="valid_perplexity" in sides),
    )


DISTANCE = formats.digits(2)


def contrast_section(numbers: ContrastNumbers) -> Section:
    """Return the section of a Comparison request."""
    request, corpus = numbers.request, numbers.corpus
    metric = formats.title(request.metric)
    published = f"published_p_{corpus}"
    printed = published in numbers.comparisons.dropna(axis="columns", how="all")
    unpaired_p = f"unpaired p{' (as in the paper)' * printed}"
    columns: list[str | tuple[str, Column]] = [
        "group",
        "baseline",
        ("pairs_lower", Column("lower at", cell=_lower_at)),
        ("difference", with_interval("difference")),
        "difference_p",
        "holm_p",
        "effect",
        ("detectable_difference", Column("detectable", DISTANCE)),
        ("equal_within", Column("equal within", DISTANCE)),
        ("correlation", Column("r over seeds", formats.coefficient)),
        ("unpaired", with_interval("unpaired")),
        ("unpaired_p", Column(unpaired_p, formats.p_value)),
    ]
    if printed:
        heading = f"published {formats.corpus_title(corpus)}: p"
        columns.append((published, Column(heading, formats.p_value)))
    beside = f", next to those of {request.source}" if printed and request.source else ""
    return Section(
        kind="tests",
        heading=f"Is the difference in {metric} more than chance?",
        findings=(*_best(numbers), *comparisons(list(rows(numbers.comparisons)), request)),
        tables=(
            Table(
                caption=prose(
                    "caption_tests.txt",
                    metric=formats.with_unit(request.metric, request.goal),
                    mode=request.goal.mode_of(request.metric),
                    beside=beside,
                ),
                frame=numbers.comparisons,
                columns=columns,
                file="tests.csv",
            ),
        ),
        method=prose("method_tests.txt", fewest=FEWEST, own=request.is_own),
        drawings=contrast_drawings(numbers),
    )


def _best(numbers: ContrastNumbers) -> Iterator[Finding]:
    request, names = numbers.request, list(numbers.means)
    if request.is_own and request.metric == request.goal.metric and names:
        verdicts = (_verdict(row, request) for row in rows(numbers.comparisons))
        yield describe(
            "best",
            (one for one in verdicts if names[0] in one.groups),
            best=names[0],
            means=numbers.means,
            lead=numbers.lead,
        )


def comparisons(tests: Sequence[Any], request: Comparison) -> Iterator[Finding]:
    """Yield one finding per baseline, on all groups that are compared with it.

    Only the Holm-adjusted p-value decides a verdict. Intervals and detectable differences are not
    adjusted for the number of comparisons.
    """
    for baseline in dict.fromkeys(row.baseline for row in tests):
        yield describe(
            "comparison",
            (_verdict(row, request) for row in tests if row.baseline == baseline),
            metric=request.metric,
            baseline=baseline,
            margin=request.margin,
        )


def _verdict(row: Any, request: Comparison) -> Verdict:
    is_paired = row.test == "paired"
    return judge(
        row,
        "difference",
        row.holm_p,
        metric=request.metric,
        groups=(row.group, row.baseline),
        n=row.pairs if is_paired else row.n_group + row.n_baseline,
        is_equivalent=row.equal_within is not None and row.equal_within <= request.margin,
        is_constant=row.difference_p is None and min(row.n_group, row.n_baseline) > 1,
        paired=is_paired,
        unadjusted_p=row.difference_p,
        mean=row.mean_group,
        baseline_mean=row.mean_baseline,
        detectable=row.detectable_difference,
        equal_within=row.equal_within,
        missing=row.missing,
        without_partner=row.without_partner,
    )


def _lower_at(row: Any) -> str:
    if row.test == "paired":
        return f"{row.pairs_lower} of {row.pairs}"
    return f"unpaired, {row.n_group} + {row.n_baseline}"
