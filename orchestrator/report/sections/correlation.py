"""Correlation of two metrics over cells, next to published values (Fig. 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.analysis import (
    BETTER_HALF,
    BETWEEN,
    CELLS,
    PUBLISHED_WINDOW,
    SIGNIFICANCE,
    WITHIN,
    CorrelationNumbers,
    rows,
)
from orchestrator.report import formats
from orchestrator.report.columns import COLUMNS, Column, Table, estimate
from orchestrator.report.prose import prose
from orchestrator.report.sections.correlation_figure import correlation_drawings, over
from orchestrator.report.sections.section import Section
from orchestrator.words import counted, listed


def correlation_section(numbers: CorrelationNumbers) -> Section:
    """Return the section of a Correlation request."""
    remarks = tuple(_comparisons(numbers))
    return Section(
        kind="correlation",
        heading="Correlation, next to the published values" if remarks else "Correlation",
        findings=tuple(_findings(numbers)),
        cautions=tuple(_cautions(numbers)),
        tables=tuple(_tables(numbers)),
        remarks=remarks,
        method=prose(
            "method_correlation.txt",
            seeds=len(numbers.components) > 0,
            partials=len(numbers.partials) > 0,
            contexts=_contexts(numbers),
            rows=formats.title(numbers.rows) if numbers.rows else "",
            definitions=len(numbers.definitions) > 1,
        ),
        drawings=tuple(correlation_drawings(numbers)),
        wide=False,
    )


LEFT_OUT = "left_out", Column("left out", cell=lambda row: _settings(row))
VARIANCES = "variance_cells", "variance_seed_in_one_cell", "variance_seed_in_all_cells"
RANK = "x", Column("rank", formats.title)


def _contexts(numbers: CorrelationNumbers) -> str:
    contexts = numbers.points.get("rank_rows")
    if contexts is None or contexts.dropna().empty:
        return ""
    return formats.bounds(int(contexts.min()), int(contexts.max()))


def _findings(numbers: CorrelationNumbers) -> Iterator[str]:
    lines = {line.over: line for line in rows(numbers.lines)}
    for cells in (CELLS, PUBLISHED_WINDOW, BETTER_HALF):
        if cells in lines:
            yield correlation_sentence(lines[cells])
    if len(numbers.components):
        yield from _component_sentences(numbers, _seeds(lines[CELLS]))
        between, within = lines[BETWEEN], lines[WITHIN]
        if between.pearson is not None:
            yield (
                f"Corrected for the noise of the seeds, the correlation over cells is r = "
                f"{_r(between)}."
            )
        elif between.missing:
            yield (
                f"A correlation corrected for the noise of the seeds is missing: {between.missing}."
            )
        if within.pearson is not None:
            yield (
                "Between seeds of one cell, without the effect that a seed has on all cells, it is "
                f"r = {_r(within)}."
            )
    if len(numbers.definitions) > 1:
        yield from _definition_sentences(list(rows(numbers.definitions)))
    parts = [
        f"without {_settings(row)} r = {_r(row, 'levels')}"
        for row in rows(numbers.partials)
        if row.levels_low is not None
    ]
    if parts:
        yield (
            "Partial correlations over cells, with a level for each value of a setting: "
            f"{'; '.join(parts)}."
        )


def correlation_sentence(line: Any) -> str:
    """Return a sentence on a correlation: its cells, value and sign, or why it is missing."""
    where, r, ends = _where(line), line.pearson, (line.pearson_low, line.pearson_high)
    x, y = formats.title(line.x), formats.title(line.y)
    missing = line.missing.replace(line.x, x).replace(line.y, y)
    if r is None:
        return f"{formats.capital(x)} and {y} cannot be correlated {where}: {missing}."
    value = f"Pearson r = {formats.coefficient(r)}"
    if ends[0] is None:
        return (
            f"{formats.capital(x)} and {y} have {value} {where}. There is no interval: {missing}."
        )
    value += f", 95% interval {formats.interval(*ends)}, {formats.p_equals(line.pearson_p)}"
    if ends[0] <= 0 <= ends[1]:
        return f"No correlation between {x} and {y} was shown {where}: {value}."
    return (
        f"A higher {x} went with a {'higher' if r > 0 else 'lower'} {y} {where}: {value}. A "
        f"straight line explains {r**2:.0%} of the variance."
    )


def _where(line: Any) -> str:
    cells = f"over {counted(line.n, 'cell')}"
    if line.window_low is not None:
        return f"{cells} of {over(line)}"
    if line.seeds_most == 1:
        return f"{cells}, one seed each" if line.n else cells
    return f"{cells}, each the mean of {_seeds(line)} seeds"


def _seeds(line: Any) -> str:
    return formats.bounds(line.seeds_least, line.seeds_most)


def _component_sentences(numbers: CorrelationNumbers, seeds: str) -> Iterator[str]:
    parts = list(rows(numbers.components))
    if any(part.seed_share is None for part in parts):
        return
    shares = listed([f"{_share(part)} in {formats.title(part.metric)}" for part in parts])
    reliable = listed([formats.percent(part.reliability) for part in parts])
    yield (
        f"The seed causes {shares} of the variance between cells of one seed. Differences between "
        f"cells are {reliable} of the variance of means over {seeds} seeds."
    )
    if any(part.variance_seed_in_all_cells is None for part in parts):
        return
    common = listed(
        [
            f"{formats.deviation(part.variance_seed_in_all_cells)} in {formats.title(part.metric)}"
            for part in parts
        ]
    )
    rest = listed([formats.deviation(part.variance_seed_in_one_cell) for part in parts])
    yield (
        "A seed's effect common to all cells cancels out and is excluded: its standard deviation "
        f"is {common}, next to {rest} for its effect on one cell."
    )


def _share(part: Any) -> str:
    share = estimate(part, "seed_share", formats.percent)
    return f"{share} ({part.missing})" if part.missing else share


def _settings(row: Any) -> str:
    return listed([formats.title(name) for name in row.left_out.split()])


def _r(row: Any, name: str = "pearson") -> str:
    value, low, high = (getattr(row, f"{name}{end}") for end in ("", "_low", "_high"))
    interval = "" if low is None else f", 95% interval {formats.interval(low, high)}"
    return formats.coefficient(value) + interval


def _definition_sentences(definitions: list[Any]) -> Iterator[str]:
    values = [one.pearson for one in definitions if one.pearson is not None]
    if values:
        yield (
            f"Other definitions of rank give r from {formats.coefficient(min(values))} to "
            f"{formats.coefficient(max(values))}."
        )
    names = [
        f"{formats.title(one.x)} ({formats.coefficient(one.pearson)})"
        for one in definitions
        if one.holm_p is not None and one.holm_p < SIGNIFICANCE
    ]
    clear = f"{listed(names)} {'is' if len(names) == 1 else 'are'}" if names else "none is"
    yield f"After Holm's correction over {len(definitions)} definitions, {clear} significant."


def _comparisons(numbers: CorrelationNumbers) -> Iterator[str]:
    """Compare with this corpus, or with all published ones if the paper did not use it.

    Windows other than the published one select other cells and are skipped."""
    published = numbers.request.published
    for line in rows(numbers.lines):
        if line.over in (CELLS, PUBLISHED_WINDOW):
            for corpus in [numbers.corpus] if numbers.corpus in published else published:
                yield f"{comparison_sentence(line, corpus)[:-1]} ({_where(line)})."


def comparison_sentence(line: Any, corpus: str) -> str:
    """Return on which side of our interval a published value is. Inside does not mean equal."""
    published, low, high = getattr(line, f"published_{corpus}"), line.pearson_low, line.pearson_high
    name = f"The published {formats.coefficient(published)} ({formats.corpus_title(corpus)})"
    if low is None:
        return f"{name} cannot be compared: our correlation has no interval."
    ours = formats.interval(low, high)
    if low <= published <= high:
        return f"{name} is inside our interval {ours}, which does not show that they are equal."
    return f"{name} is {'below' if published < low else 'above'} our interval {ours}."


def _cautions(numbers: CorrelationNumbers) -> Iterator[str]:
    kinds, published = set(numbers.lines["over"]), numbers.request.published
    if len(numbers.components):
        yield (
            f"The {len(numbers.points)} single trials are not independent, because those of one "
            "cell share its setting. Their correlation has no interval."
        )
        if published:
            yield (
                "The paper trained each cell once. A mean over seeds has less noise, which makes "
                "correlations stronger."
            )
    if kinds & {PUBLISHED_WINDOW, BETTER_HALF}:
        yield ("A window narrows the range of a quantity, which alone makes a correlation weaker.")
    if BETTER_HALF in kinds and published:
        yield (
            "The published window fits the paper's models. Here, the better half of the cells "
            "replaces it."
        )


def _tables(numbers: CorrelationNumbers) -> Iterator[Table]:
    request = numbers.request
    x, y = formats.title(request.x), formats.title(request.y)
    printed = [
        (f"published_{corpus}", Column(f"published {corpus_title}: Pearson r", formats.coefficient))
        for corpus in request.published
        for corpus_title in [formats.corpus_title(corpus)]
    ]
    left_out = f"; left out: {numbers.left_out}" if numbers.left_out else ""
    yield Table(
        caption=f"{formats.capital(x)} and {y}{left_out}",
        frame=numbers.lines,
        shown=[
            ("over", Column("cells", cell=over)),
            ("n", Column("n")),
            "pearson",
            "pearson_p",
            "spearman",
            *(["independent"] if numbers.rows else []),
            *printed,
        ],
        file="correlations.csv",
    )
    yield Table(frame=numbers.cells, file="cells.csv")
    if len(numbers.components):
        cells = counted(numbers.components["cells"][0], "cell")
        yield Table(
            caption=f"Share of the seed: {len(numbers.points)} trials of {cells}",
            frame=numbers.components,
            shown=("metric", *VARIANCES, "seed_share", "reliability"),
            file="variance_components.csv",
        )
    if len(numbers.definitions) > 1:
        yield Table(
            caption=f"Correlation with {y} by definition of rank",
            frame=numbers.definitions,
            shown=[RANK, "pearson", "pearson_p", ("holm_p", COLUMNS["holm_p"]), "within"],
            file="definitions.csv",
            names={"holm_p": "p_adjusted"},
        )
    if len(numbers.partials):
        yield Table(
            caption="Partial correlations over cells, without each setting",
            frame=numbers.partials,
            shown=[LEFT_OUT, "levels", "levels_p", "line", "line_p"],
            file="partial_correlations.csv",
        )
