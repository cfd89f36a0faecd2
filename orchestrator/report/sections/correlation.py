"""The correlation of two metrics over the cells, beside the printed ones (Fig. 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.analysis import (
    SIGNIFICANCE,
    ComparedCorrelation,
    CorrelationNumbers,
    PartialCorrelation,
    RankCorrelation,
    SeedNumbers,
    Statistic,
)
from orchestrator.report import formats
from orchestrator.report.prose import prose
from orchestrator.report.sections.correlation_figure import correlation_drawings
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, ends, text_table
from orchestrator.words import counted, listed

SINGLE, WITHIN, BETWEEN = (
    "single trials",
    "seeds of one cell",
    "cells, without what their seeds add",
)


def correlation_section(numbers: CorrelationNumbers) -> Section:
    """The scatter plot, the tables and the sentences of a Correlation request."""
    seeds = numbers.seeds
    remarks = tuple(_comparisons(numbers))
    findings = [correlation_sentence(line) for line in numbers.lines]
    tables = [_table(numbers)]
    files = {
        "correlations.csv": csv_lines(list(_records(numbers))),
        "cells.csv": _cell_lines(numbers),
    }
    if seeds is not None:
        findings += _seed_sentences(numbers.lines[0], seeds)
        tables.append(_component_table(seeds))
        files["variance_components.csv"] = csv_lines(list(_component_records(seeds)))
    if len(numbers.definitions) > 1:
        findings += _definition_sentences(numbers.definitions)
        tables.append(_definition_table(numbers))
        files["definitions.csv"] = csv_lines(list(map(_definition_record, numbers.definitions)))
    if numbers.partials:
        findings += _partial_sentences(numbers.partials)
        tables.append(_partial_table(numbers.partials))
        files["partial_correlations.csv"] = csv_lines(list(map(_partial_record, numbers.partials)))
    return Section(
        kind="correlation",
        heading="Correlation, beside the published values" if remarks else "Correlation",
        findings=tuple(findings),
        cautions=tuple(_cautions(numbers)),
        tables=tuple(tables),
        remarks=remarks,
        terminal=(findings[0], *tables, "\n".join([*findings[1:], *remarks])),
        method=prose(
            "method_correlation.txt",
            seeds=seeds is not None,
            partials=bool(numbers.partials),
            contexts=_contexts(numbers),
            rows=formats.title(numbers.rows) if numbers.rows else "",
            definitions=len(numbers.definitions) > 1,
        ),
        files=files,
        drawings=tuple(correlation_drawings(numbers)),
        wide=False,
    )


def _contexts(numbers: CorrelationNumbers) -> str:
    """How many contexts the log-P matrices have, "1,024"; empty where no trial says it."""
    rows = numbers.points.get("rank_rows")
    if rows is None or rows.dropna().empty:
        return ""
    return formats.bounds(int(rows.min()), int(rows.max()))


def correlation_sentence(line: ComparedCorrelation) -> str:
    """One correlation, over what, what its sign and interval allow to say, or what is missing."""
    pearson, where = line.pearson, _where(line)
    x, y = formats.title(line.x), formats.title(line.y)
    if pearson.value is None:
        return f"{where}, there is no correlation to report: {_spelled(pearson.missing, line)}."
    text = f"{where}, {x} and {y} have Pearson r = {formats.coefficient(pearson.value)}"
    if pearson.interval is None:
        return f"{text}, without an interval: {_spelled(pearson.missing, line)}."
    text += (
        f", 95% interval {formats.interval(pearson.interval)}, {formats.p_equals(pearson.p_value)}"
    )
    if 0.0 in pearson.interval:
        return f"{text}: the interval includes zero, so these cells leave open whether there is one and its sign."
    direction = "higher" if pearson.value > 0 else "lower"
    share = f"{pearson.value**2:.0%}"
    return (
        f"{text}: the interval excludes zero; a higher {x} went with a {direction} {y}, and a "
        f"straight line accounts "
        f"for {share} of the variance."
    )


def _where(line: ComparedCorrelation) -> str:
    """ "Over 72 cells, each the mean of 3 seeds"."""
    cells = f"Over {counted(line.n, 'cell')}"
    if line.window is not None:
        return f"{cells} of {formats.window(line.window, line.y)}"
    if line.seeds == (1, 1):
        return f"{cells}, one seed each" if line.n else cells
    return f"{cells}, each the mean of {formats.bounds(*line.seeds)} seeds"


def _seed_sentences(line: ComparedCorrelation, seeds: SeedNumbers) -> Iterator[str]:
    components = [(formats.title(name), parts) for name, parts in seeds.components.items()]
    if all(parts.share.value is not None for _, parts in components):
        shares = listed([f"{_share(parts.share)} in {name}" for name, parts in components])
        reliable = listed([formats.percent(parts.reliability.value) for _, parts in components])
        yield (
            f"Of the variance between cells of one seed, the seed makes up {shares}; of that of "
            f"the means over "
            f"{formats.bounds(*line.seeds)} seeds, the cells' own part is {reliable}."
        )
        if all(parts.common is not None for _, parts in components):
            common = listed(
                [f"{formats.deviation(parts.common)} in {name}" for name, parts in components]
            )
            rest = listed([formats.deviation(parts.rest) for _, parts in components])
            yield (
                f"What a seed does to all cells alike cancels between them and is not in it: as "
                f"far as "
                f"{formats.bounds(*line.seeds)} seeds tell, a standard deviation of {common}, "
                f"beside {rest} of what it "
                f"does to one cell."
            )
    if seeds.between.value is not None:
        yield f"Without what the seeds add to the means, the cells' own correlation is r = {_r(seeds.between)}."
    elif seeds.between.missing:
        yield f"The correlation without what the seeds add is not to be had: {seeds.between.missing}."
    if seeds.within.value is not None:
        yield f"Between seeds of one cell, without what a seed does to all cells, it is r = {_r(seeds.within)}."


def _share(statistic: Statistic) -> str:
    """The seed's share with its interval, or why it has none."""
    return formats.bounded_percent(statistic) + (
        f" ({statistic.missing})" if statistic.missing else ""
    )


def _partial_sentences(partials: Sequence[PartialCorrelation]) -> Iterator[str]:
    parts = [
        f"without {_settings(partial)} r = {_r(partial.levels)}"
        for partial in partials
        if partial.levels.interval
    ]
    if parts:
        yield f"Over the cells, each value of a setting taken as a level of its own, {'; '.join(parts)}."


def _settings(partial: PartialCorrelation) -> str:
    return listed([formats.title(name) for name in partial.settings])


def _r(statistic: Statistic) -> str:
    """The value with its interval in words."""
    value = formats.coefficient(statistic.value)
    return (
        f"{value}, 95% interval {formats.interval(statistic.interval)}"
        if statistic.interval
        else value
    )


def _comparisons(numbers: CorrelationNumbers) -> Iterator[str]:
    """A sentence for each published value: those of this corpus, or all of them where the paper did
    not use it.

    Nothing about a window that is not the published one: it selects other cells.
    """
    for line in numbers.lines:
        if line.window is not None and line.window.origin != "published":
            continue
        for corpus in [numbers.corpus] if numbers.corpus in line.published else line.published:
            yield f"{_where(line)}: {comparison_sentence(line, corpus)}"


def comparison_sentence(line: ComparedCorrelation, corpus: str) -> str:
    """Where the value published for a corpus lies beside our interval. Inside is not equal, and
    says so."""
    published = line.published[corpus]
    assert published is not None
    name = f"the published {formats.coefficient(published)} ({formats.corpus_title(corpus)})"
    if line.pearson.interval is None:
        return f"{name} has no interval of ours to be held against."
    ours = formats.interval(line.pearson.interval)
    if published in line.pearson.interval:
        return (
            f"{name} lies inside our interval {ours}, which does not show that the two are equal."
        )
    side = "below" if published < line.pearson.interval.low else "above"
    return f"{name} lies {side} our interval {ours}."


def _cautions(numbers: CorrelationNumbers) -> Iterator[str]:
    lines, seeds = numbers.lines, numbers.seeds
    origins = {line.window.origin for line in lines if line.window}
    if seeds is not None:
        yield (
            f"The {seeds.trials} single trials are no independent points, as those of one cell "
            f"share its setting: "
            "their correlation has no interval."
        )
        if lines[0].published:
            yield "The paper trained each cell once; a mean over seeds has less noise, which strengthens a correlation."
    if origins:
        yield "A window on one of two quantities narrows its range, which by itself weakens a correlation."
    if "better half" in origins and lines[0].published:
        yield "The published window holds for the paper's models; here it is the better half of the cells."


def _spelled(missing: str, line: ComparedCorrelation) -> str:
    for name in (line.x, line.y):
        missing = missing.replace(name, formats.title(name))
    return missing


def _table(numbers: CorrelationNumbers) -> TextTable:
    """Ours with intervals, and a column for each corpus that a paper published values for."""
    lines = numbers.lines
    missing = ", ".join(dict.fromkeys(line.missing for line in lines if line.missing))
    caption = f"{formats.capital(formats.title(lines[0].x))} and {formats.title(lines[0].y)}"
    rows = [
        _cells(formats.window(line.window, line.y), line.n, line.pearson, line.spearman, line)
        for line in lines
    ]
    if numbers.seeds is not None:
        rows += [
            _cells(words, n, r, rho, _bare(lines[0]))
            for words, n, r, rho in _beside_the_means(numbers)
        ]
    return text_table(f"{caption}; left out: {missing}" if missing else caption, rows)


def _bare(line: ComparedCorrelation) -> ComparedCorrelation:
    """The line with the same columns and nothing to compare with, for correlations over something
    else than cells."""
    independent = None if line.independent is None else Statistic()
    return replace(line, published=dict.fromkeys(line.published), independent=independent)


def _beside_the_means(numbers: CorrelationNumbers) -> list[tuple[str, int, Statistic, Statistic]]:
    """What a correlation is over, how many, Pearson's and Spearman's; where there are several
    seeds."""
    seeds = numbers.seeds
    assert seeds is not None
    return [
        (BETWEEN, numbers.lines[0].n, seeds.between, Statistic()),
        (WITHIN, seeds.trials, seeds.within, Statistic()),
        (SINGLE, seeds.trials, seeds.pearson, seeds.spearman),
    ]


def _cells(
    words: str, n: int, pearson: Statistic, spearman: Statistic, line: ComparedCorrelation
) -> dict[str, object]:
    printed = {
        f"published {formats.corpus_title(corpus)}: Pearson r": formats.bounded(
            Statistic(value=value)
        )
        for corpus, value in line.published.items()
    }
    independent = (
        {}
        if line.independent is None
        else {"r, cells as if independent": formats.bounded(line.independent)}
    )
    return {
        "cells": Cell(words),
        "n": n,
        "Pearson r [95%]": formats.bounded(pearson),
        "p": formats.p_value(pearson.p_value),
        "Spearman \N{GREEK SMALL LETTER RHO} [95%]": formats.bounded(spearman),
        **independent,
        **printed,
    }


def _definition_sentences(definitions: Sequence[RankCorrelation]) -> Iterator[str]:
    values = [one.pearson.value for one in definitions if one.pearson.value is not None]
    if values:
        yield (
            f"By definition of rank, r runs from {formats.coefficient(min(values))} to "
            f"{formats.coefficient(max(values))}."
        )
    names = [
        f"{formats.title(one.x)} ({formats.coefficient(one.pearson.value)})"
        for one in definitions
        if one.p_adjusted is not None and one.p_adjusted < SIGNIFICANCE
    ]
    clear = f"{listed(names)} {'is' if len(names) == 1 else 'are'}" if names else "none is"
    yield f"After Holm's correction over {len(definitions)} definitions, {clear} significant."


def _definition_table(numbers: CorrelationNumbers) -> TextTable:
    caption = f"Correlation with {formats.title(numbers.lines[0].y)} by definition of rank"
    return text_table(
        caption,
        (
            {
                "rank": formats.title(one.x),
                "Pearson r [95%]": formats.bounded(one.pearson),
                "p": formats.p_value(one.pearson.p_value),
                "p (Holm)": formats.p_value(one.p_adjusted),
                "between seeds of one cell: r [95%]": formats.bounded(one.within),
            }
            for one in numbers.definitions
        ),
    )


def _definition_record(one: RankCorrelation) -> dict[str, Any]:
    return {
        "x": one.x,
        **_numbers(pearson=one.pearson, within=one.within),
        "p_adjusted": one.p_adjusted,
    }


def _records(numbers: CorrelationNumbers) -> Iterator[dict[str, Any]]:
    for line in numbers.lines:
        over: str = "cells" if line.window is None else line.window.origin
        yield _record(line, over, line.n, line.pearson, line.spearman)
    if numbers.seeds is not None:
        for words, n, pearson, spearman in _beside_the_means(numbers):
            yield _record(_bare(numbers.lines[0]), words, n, pearson, spearman)


def _record(
    line: ComparedCorrelation, over: str, n: int, pearson: Statistic, spearman: Statistic
) -> dict[str, Any]:
    record = {"x": line.x, "y": line.y, "over": over, **ends("window", line.window), "n": n}
    record |= dict(zip(("seeds_least", "seeds_most"), line.seeds, strict=True))
    record |= _numbers(pearson=pearson, spearman=spearman)
    if line.independent is not None:
        record |= ends("independent", line.independent.interval)
    return record | {f"published_{corpus}": value for corpus, value in line.published.items()}


def _cell_lines(numbers: CorrelationNumbers) -> list[list[Any]]:
    cells = numbers.cells.astype(object).where(numbers.cells.notna(), None)
    return [list(cells.columns), *cells.to_numpy().tolist()]


def _component_table(seeds: SeedNumbers) -> TextTable:
    rows = []
    for name, parts in seeds.components.items():
        rows.append(
            {
                "metric": formats.title(name),
                "deviation between cells": formats.deviation(parts.own),
                "of a seed, in one cell": formats.deviation(parts.rest),
                "of a seed, in all cells alike": formats.deviation(parts.common),
                "seed's share between cells of one seed [95%]": formats.bounded_percent(
                    parts.share
                ),
                "cells' share of the means' variance [95%]": formats.bounded_percent(
                    parts.reliability
                ),
            }
        )
    cells = next(iter(seeds.components.values()))
    return text_table(
        f"How much is the seed: {seeds.trials} trials of {counted(cells.cells, 'cell')}", rows
    )


def _component_records(seeds: SeedNumbers) -> Iterator[dict[str, Any]]:
    for name, parts in seeds.components.items():
        yield {
            "metric": name,
            "cells": parts.cells,
            "trials": parts.values,
            "variance_cells": parts.own,
            "variance_seed_in_one_cell": parts.rest,
            "variance_seed_in_all_cells": parts.common,
            "seed_share": parts.share.value,
            **ends("seed_share", parts.share.interval),
            "reliability": parts.reliability.value,
            **ends("reliability", parts.reliability.interval),
        }


def _partial_table(partials: Sequence[PartialCorrelation]) -> TextTable:
    return text_table(
        "The correlation over cells that leaves settings out",
        (
            {
                "left out": _settings(partial),
                "level by level: Pearson r [95%]": formats.bounded(partial.levels),
                "p": formats.p_value(partial.levels.p_value),
                "as straight lines: Pearson r [95%]": formats.bounded(partial.line),
                "p of that": formats.p_value(partial.line.p_value),
            }
            for partial in partials
        ),
    )


def _partial_record(partial: PartialCorrelation) -> dict[str, Any]:
    return {
        "left_out": " ".join(partial.settings),
        **_numbers(levels=partial.levels, line=partial.line),
    }


def _numbers(**correlations: Statistic) -> dict[str, Any]:
    """All numbers of these, under columns that begin with their names."""
    record: dict[str, Any] = {}
    for name, ours in correlations.items():
        record |= {
            name: ours.value,
            **ends(name, ours.interval),
            f"{name}_p": ours.p_value,
            f"{name}_df": ours.df,
        }
    return record
