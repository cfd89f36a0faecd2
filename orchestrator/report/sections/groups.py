"""Tables of groups: means beside the printed ones, differences from a baseline, counts of a
metric's values, tuning."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from orchestrator.analysis import (
    CountNumbers,
    DifferenceNumbers,
    GroupLine,
    GroupNumbers,
    TunedSide,
    mean_interval,
)
from orchestrator.report import formats
from orchestrator.report.formats import DASH
from orchestrator.report.prose import prose
from orchestrator.report.sections.group_figures import gain_drawings, group_drawings
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, csv_lines, ends, text_table
from orchestrator.words import listed

ORDERED = ("valid_perplexity", "press_rank", "effective_rank_1e-4")


def group_section(numbers: GroupNumbers) -> Section:
    """The table of a GroupTable request."""
    request, lines = numbers.request, numbers.lines
    printed = {metric for line in lines for metric in line.published if metric in request.metrics}
    beside = f", beside {request.source}" if printed and request.source else ""
    caption = f"Means \N{PLUS-MINUS SIGN} standard deviations over the done trials{beside}"
    return Section(
        kind="groups",
        heading=request.title,
        findings=tuple(_orders(numbers)),
        cautions=tuple(_unmeasured(numbers)),
        tables=(text_table(caption, (_cells(line, numbers, printed) for line in lines)),),
        files={"groups.csv": csv_lines([_record(line, numbers) for line in lines])},
        drawings=group_drawings(numbers),
    )


def _cells(line: GroupLine, numbers: GroupNumbers, printed: Collection[str]) -> dict[str, object]:
    """`printed` are the metrics that have printed values beside them."""
    count = str(line.done) if line.done == line.trials else f"{line.done} of {line.trials}"
    cells: dict[str, object] = {"model": line.group, "trials": Cell(count, line.done)}
    for metric in numbers.request.metrics:
        title, sample = formats.title(metric), line.values[metric]
        cells[title] = Cell(formats.spread(metric, sample.mean, sample.sd), sample.mean)
        if metric in printed:
            value = line.published.get(metric)
            cells[f"{title}, published {formats.corpus_title(numbers.corpus)}"] = (
                Cell(formats.printed(value, metric), value.value) if value else Cell(DASH)
            )
    return cells


def _unmeasured(numbers: GroupNumbers) -> Iterator[str]:
    """Metrics that were asked for and that no done trial has, as when they are misspelt."""
    lines = [line for line in numbers.lines if line.done]
    lacking = [
        name for name in numbers.request.metrics if not any(line.values[name].n for line in lines)
    ]
    if lines and lacking:
        yield f"No done trial has {listed(lacking)}, which this study asks for; metrics are the columns of `results`."


def _orders(numbers: GroupNumbers) -> Iterator[str]:
    """The groups by rank or perplexity: descriptions of means, not tests."""
    for metric in ORDERED:
        if metric in numbers.request.metrics:
            measured = ((line.group, line.values[metric].mean) for line in numbers.lines)
            means = {group: mean for group, mean in measured if mean is not None}
            if len(means) > 1:
                title = formats.capital(formats.title(metric))
                yield f"{title} from low to high: {formats.ranked(means)}.{_printed_order(numbers, metric, means)}"


def _printed_order(numbers: GroupNumbers, metric: str, measured: Collection[str]) -> str:
    """Empty where a paper lacks one of them."""
    printed = {
        line.group: line.published[metric].value
        for line in numbers.lines
        if line.group in measured and metric in line.published
    }
    if len(printed) < len(measured):
        return ""
    order = ", ".join(sorted(printed, key=printed.__getitem__))
    return f" The published order for {formats.corpus_title(numbers.corpus)} is {order}."


def _record(line: GroupLine, numbers: GroupNumbers) -> dict[str, Any]:
    record: dict[str, Any] = {"group": line.group, "trials": line.trials, "done": line.done}
    for metric in numbers.request.metrics:
        sample = line.values[metric]
        record |= {
            f"{metric}_n": sample.n,
            f"{metric}_mean": sample.mean,
            f"{metric}_sd": sample.sd,
        }
        record |= ends(metric, mean_interval(sample))
    for metric in numbers.request.metrics if numbers.corpus else ():
        printed = line.published.get(metric)
        record[f"published_{numbers.corpus}_{metric}"] = printed.value if printed else None
        record[f"published_{numbers.corpus}_{metric}_sd"] = printed.deviation if printed else None
    return record


def difference_section(numbers: DifferenceNumbers) -> Section:
    """The table of a Differences request."""
    request, lines = numbers.request, numbers.lines
    sources = list(dict.fromkeys(source for line in lines for source in line.published))
    corpus = formats.corpus_title(numbers.corpus)
    rows, records = [], []
    for line in lines:
        printed = {source: line.published.get(source) for source in sources}
        shown = {
            "ours": line.difference,
            **{f"{source}, {corpus}": value for source, value in printed.items()},
        }
        cells = {name: Cell(formats.coefficient(value), value) for name, value in shown.items()}
        rows.append({"model": line.group, "against": Cell(line.baseline, kind="name"), **cells})
        record = {"group": line.group, "baseline": line.baseline, "ours": line.difference}
        records.append(
            record | {f"{source} {numbers.corpus}": value for source, value in printed.items()}
        )
    metric = formats.title(request.metric)
    beside = f", beside {request.source}" if sources and request.source else ""
    caption = (
        f"{formats.capital(metric)} of the baseline less the model's: positive is better{beside}"
    )
    return Section(
        kind="differences",
        heading=f"Gain in {metric} over the baseline",
        tables=(text_table(caption, rows),),
        method="Differences of means; with one seed a model they hold for that seed alone.",
        files={"differences.csv": csv_lines(records, ("group", "baseline", "ours"))},
        drawings=gain_drawings(numbers),
    )


def count_section(numbers: CountNumbers) -> Section:
    """The table of a Counts request, and how often the least and the greatest value came up."""
    metric, values = (
        formats.title(numbers.request.metric),
        list(map(formats.setting, numbers.values)),
    )
    rows = [
        {"model": group, **dict(zip(values, counts, strict=True))}
        for group, counts in numbers.counts.items()
    ]
    totals = [sum(came_up) for came_up in zip(*numbers.counts.values(), strict=True)]
    finding = (
        f"Of {sum(totals)} trials, {totals[0]} have the least {metric} of the table ({values[0]}), "
        f"{totals[-1]} the "
        f"greatest ({values[-1]})."
        if sum(totals) and len(values) > 1
        else ""
    )
    return Section(
        kind="counts",
        heading=f"How often each {metric} came up",
        findings=(finding,) if finding else (),
        tables=(text_table(f"Done trials by {metric}", rows),),
        files={"counts.csv": [["group", *numbers.values], *(list(row.values()) for row in rows)]},
    )


def tuned_section(sides: Sequence[TunedSide]) -> Section:
    """How much each side of a comparison was tuned, and with what it went on: the table of a Tuned
    request."""
    rows = (
        {
            "side": side.side,
            "stage 1": side.stage1,
            "stage 2": side.stage2,
            "stopped early": side.pruned,
            "validation perplexity": Cell(
                formats.cell("valid_perplexity", side.valid_perplexity), side.valid_perplexity
            ),
            "best setting": Cell((side.best or DASH).removeprefix(f"{side.side} ")),
        }
        for side in sides
    )
    table = text_table("Trials of each side, and the best of them", rows)
    lines = (
        [cell.text if cell.number is None else cell.number for cell in row] for row in table.body
    )
    files = {"tuning.csv": [table.head, *lines]}
    return Section(
        kind="tuning",
        heading="The tuning",
        tables=(table,),
        method=prose("method_tuning.txt"),
        files=files,
    )
