"""Means by group beside the printed ones, and differences from a baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from orchestrator.analysis import DifferenceNumbers, GroupLine, GroupNumbers
from orchestrator.report import formats
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, csv_lines, text_table

BEST_IS_LEAST = ("test_perplexity", "valid_perplexity")
ORDERED = ("press_rank", "effective_rank_1e-4")


def group_section(numbers: GroupNumbers) -> Section:
    """The table of a GroupTable request."""
    request = numbers.request
    columns = [(metric, _printed_corpora(numbers, metric)) for metric in request.metrics]
    head = ["model", "trials"]
    for metric, corpora in columns:
        head.append(formats.title(metric))
        head += [f"{formats.title(metric)}, published {formats.corpus_title(corpus)}" for corpus in corpora]
    beside = f", beside {request.source}" if any(corpora for _, corpora in columns) and request.source else ""
    return Section(
        kind="groups",
        heading=request.title,
        findings=tuple(_order(numbers)),
        tables=(
            text_table(
                f"Means \N{PLUS-MINUS SIGN} standard deviations over the done trials{beside}",
                head,
                (_cells(line, columns) for line in numbers.lines),
            ),
        ),
        files={"groups.csv": csv_lines([_record(line, numbers) for line in numbers.lines])},
    )


def _printed_corpora(numbers: GroupNumbers, metric: str) -> list[str]:
    return [
        corpus for corpus in numbers.corpora if any(metric in line.published.get(corpus, {}) for line in numbers.lines)
    ]


def _cells(line: GroupLine, columns: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Cell | str]:
    yield line.group
    count = str(line.done) if line.done == line.trials else f"{line.done} of {line.trials}"
    yield Cell(count, line.done)
    for metric, corpora in columns:
        sample = line.values[metric]
        yield Cell(formats.spread(metric, sample.mean, sample.sd), sample.mean)
        for corpus in corpora:
            printed = line.published[corpus].get(metric)
            text = formats.printed(printed, metric) if printed else DASH
            yield Cell(text, number=printed.value if printed else None)


def _order(numbers: GroupNumbers) -> Iterator[str]:
    """The groups by rank, and which has the least perplexity: descriptions of means, not tests."""
    for metric in numbers.request.metrics:
        measured = ((line.group, line.values[metric].mean) for line in numbers.lines)
        means = {group: mean for group, mean in measured if mean is not None}
        if len(means) < 2 or metric not in (*BEST_IS_LEAST, *ORDERED):
            continue
        name = formats.capital(formats.title(metric))
        ordered = sorted(means, key=means.__getitem__)
        if metric in ORDERED:
            order = _with_ties([(group, means[group]) for group in ordered])
            yield f"{name} from low to high: {order}.{_printed_order(numbers, metric, means)}"
        else:
            best, worst = (f"{group} ({formats.cell(metric, means[group])})" for group in (ordered[0], ordered[-1]))
            same = means[ordered[0]] == means[ordered[-1]]
            yield f"{name} is the same in all." if same else f"{name} is lowest in {best} and highest in {worst}."


def _with_ties(ordered: Sequence[tuple[str, float]]) -> str:
    """ "softmax 26, lms_plif = mos 53.5"."""
    by_value: dict[float, list[str]] = {}
    for group, value in ordered:
        by_value.setdefault(value, []).append(group)
    texts = [f"{value:,.1f}".removesuffix(".0") for value in by_value]
    if len(set(texts)) < len(texts):
        texts = [f"{value:,.6g}" for value in by_value]
    return ", ".join(f"{' = '.join(groups)} {text}" for text, groups in zip(texts, by_value.values(), strict=True))


def _printed_order(numbers: GroupNumbers, metric: str, measured: Collection[str]) -> str:
    sentences = []
    for corpus in numbers.corpora:
        printed = {
            line.group: line.published[corpus][metric].value
            for line in numbers.lines
            if line.group in measured and metric in line.published[corpus]
        }
        if len(printed) == len(measured):
            order = ", ".join(sorted(printed, key=printed.__getitem__))
            sentences.append(f" The published order for {formats.corpus_title(corpus)} is {order}.")
    return "".join(sentences)


def _record(line: GroupLine, numbers: GroupNumbers) -> dict[str, Any]:
    record: dict[str, Any] = {"group": line.group, "trials": line.trials, "done": line.done}
    for metric in numbers.request.metrics:
        sample = line.values[metric]
        record |= {f"{metric}_n": sample.n, f"{metric}_mean": sample.mean, f"{metric}_sd": sample.sd}
    for corpus in numbers.corpora:
        for metric in numbers.request.metrics:
            printed = line.published[corpus].get(metric)
            record[f"published_{corpus}_{metric}"] = printed.value if printed else None
            record[f"published_{corpus}_{metric}_sd"] = printed.deviation if printed else None
    return record


def difference_section(numbers: DifferenceNumbers) -> Section:
    """The table of a Differences request."""
    request, lines = numbers.request, numbers.lines
    columns = list(
        dict.fromkeys(
            (corpus, source) for line in lines for corpus, printed in line.published.items() for source in printed
        )
    )
    values = [
        [line.difference, *(line.published.get(corpus, {}).get(source) for corpus, source in columns)] for line in lines
    ]
    metric = formats.title(request.metric)
    head = ("model", "against", "ours", *(f"{source}, {formats.corpus_title(corpus)}" for corpus, source in columns))
    beside = f", beside {request.source}" if columns and request.source else ""
    return Section(
        kind="differences",
        heading=f"Gain in {metric} over the baseline",
        tables=(
            text_table(
                f"{formats.capital(metric)} of the baseline less the model's: positive is better{beside}",
                head,
                (
                    (
                        line.group,
                        Cell(line.baseline, kind="name"),
                        *(Cell(formats.signed(value), value) for value in differences),
                    )
                    for line, differences in zip(lines, values, strict=True)
                ),
            ),
        ),
        method="Differences of means; with one seed a model they hold for that seed alone.",
        files={
            "differences.csv": [
                ["group", "baseline", "ours", *(f"{source} {corpus}" for corpus, source in columns)],
                *([line.group, line.baseline, *row] for line, row in zip(lines, values, strict=True)),
            ]
        },
    )
