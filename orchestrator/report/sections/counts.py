"""How often each value of a metric came up."""

from __future__ import annotations

from orchestrator.analysis import CountNumbers
from orchestrator.report import formats
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import text_table


def count_section(numbers: CountNumbers) -> Section:
    """The table of a Counts request, and how often the least and the greatest value came up."""
    metric = formats.title(numbers.request.metric)
    rows: list[list[object]] = [[group, *counts] for group, counts in numbers.counts.items()]
    return Section(
        kind="counts",
        heading=f"How often each {metric} came up",
        findings=_findings(numbers, metric),
        tables=(text_table(f"Done trials by {metric}", ("model", *map(formats.setting, numbers.values)), rows),),
        files={"counts.csv": [["group", *numbers.values], *rows]},
    )


def _findings(numbers: CountNumbers, metric: str) -> tuple[str, ...]:
    trials = sum(sum(counts) for counts in numbers.counts.values())
    if not trials or len(numbers.values) < 2:
        return ()
    least, greatest = (sum(counts[place] for counts in numbers.counts.values()) for place in (0, -1))
    low, high = (formats.setting(numbers.values[place]) for place in (0, -1))
    return (
        f"Of {trials} trials, {least} have the least {metric} of the table ({low}), {greatest} the greatest ({high}).",
    )
