"""The correlation of two metrics over the trials, beside the printed ones (Fig. 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from orchestrator.analysis import ComparedCorrelation, CorrelationNumbers, Window
from orchestrator.report import formats
from orchestrator.report.figures import ABOVE, COLOURS, Drawing, new_figure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, ends, text_table
from orchestrator.words import counted

INSIDE, OUTSIDE = "o", "^"
MOST_TICKS = 10


def correlation_section(numbers: CorrelationNumbers) -> Section:
    """The scatter plot, the table and the sentences of a Correlation request."""
    table, remarks = _table(numbers.lines), tuple(_comparisons(numbers))
    return Section(
        kind="correlation",
        heading="Correlation, beside the published values" if remarks else "Correlation",
        findings=tuple(map(correlation_sentence, numbers.lines)),
        cautions=tuple(_cautions(numbers.lines)),
        tables=(table,),
        remarks=remarks,
        terminal=(table, "\n".join(remarks)),
        method=prose("method_correlation.txt"),
        files={"correlations.csv": csv_lines(list(map(_record, numbers.lines)))},
        drawings=tuple(_drawings(numbers)),
        wide=False,
    )


def correlation_sentence(line: ComparedCorrelation) -> str:
    """One correlation, what its sign and interval allow to say, or what is missing."""
    pearson, where = line.pearson, _where(line)
    x, y = formats.title(line.x), formats.title(line.y)
    if pearson.value is None:
        return f"{where}, there is no correlation to report: {_spelled(pearson.missing, line)}."
    text = f"{where}, {x} and {y} have Pearson r = {formats.coefficient(pearson.value)}"
    if pearson.interval is None:
        return f"{text}, without an interval: {_spelled(pearson.missing, line)}."
    text += f", 95% interval {formats.interval(pearson.interval)}, {formats.p_equals(pearson.p_value)}"
    if 0.0 in pearson.interval:
        return f"{text}: the interval includes zero, so these trials leave open whether there is one and its sign."
    direction = "higher" if pearson.value > 0 else "lower"
    share = f"{pearson.value**2:.0%}"
    return f"{text}: a higher {x} went with a {direction} {y}; a straight line accounts for {share} of the variance."


def _comparisons(numbers: CorrelationNumbers) -> Iterator[str]:
    """A sentence for each published value: those of this corpus, or all of them where the paper did not use it.

    Nothing about a window that is not the published one: it selects other cells.
    """
    for line in numbers.lines:
        if line.window is not None and line.window.origin != "published":
            continue
        for corpus in [numbers.corpus] if numbers.corpus in line.published else line.published:
            yield f"{_where(line)}: {comparison_sentence(line, corpus)}"


def comparison_sentence(line: ComparedCorrelation, corpus: str) -> str:
    """Where the value published for a corpus lies beside our interval. Inside is not equal, and says so."""
    published = line.published[corpus].value
    assert published is not None
    name = f"the published {formats.coefficient(published)} ({formats.corpus_title(corpus)})"
    if line.pearson.interval is None:
        return f"{name} has no interval of ours to be held against."
    ours = formats.interval(line.pearson.interval)
    if published in line.pearson.interval:
        return f"{name} lies inside our interval {ours}, which does not show that the two are equal."
    side = "below" if published < line.pearson.interval.low else "above"
    return f"{name} lies {side} our interval {ours}."


def _cautions(lines: Sequence[ComparedCorrelation]) -> Iterator[str]:
    origins = {line.window.origin for line in lines if line.window}
    if origins:
        yield "A window on one of two quantities narrows its range, which by itself weakens a correlation."
    if "better half" in origins and lines[0].published:
        yield "The published window holds for the paper's models; here it is the better half of the trials."


def _where(line: ComparedCorrelation) -> str:
    return f"In {formats.window(line.window, line.y)} ({counted(line.n, 'trial')})"


def _spelled(missing: str, line: ComparedCorrelation) -> str:
    for name in (line.x, line.y):
        missing = missing.replace(name, formats.title(name))
    return missing


def _table(lines: Sequence[ComparedCorrelation]) -> TextTable:
    """Ours with intervals, and a column for each corpus that a paper published values for."""
    missing = ", ".join(dict.fromkeys(line.missing for line in lines if line.missing))
    caption = f"{formats.capital(formats.title(lines[0].x))} and {formats.title(lines[0].y)}"
    return text_table(f"{caption}; left out: {missing}" if missing else caption, map(_cells, lines))


def _cells(line: ComparedCorrelation) -> dict[str, object]:
    published = {
        f"published {formats.corpus_title(corpus)}: Pearson r": formats.bounded(value)
        for corpus, value in line.published.items()
    }
    return {
        "cells": Cell(formats.window(line.window, line.y)),
        "n": line.n,
        "Pearson r [95%]": formats.bounded(line.pearson),
        "p": formats.p_value(line.pearson.p_value),
        "Spearman \N{GREEK SMALL LETTER RHO} [95%]": formats.bounded(line.spearman),
        **published,
    }


def _record(line: ComparedCorrelation) -> dict[str, Any]:
    record = {"x": line.x, "y": line.y, **ends("window", line.window), "n": line.n}
    for name, ours in (("pearson", line.pearson), ("spearman", line.spearman)):
        record |= {name: ours.value, **ends(name, ours.interval), f"{name}_p": ours.p_value}
    return record | {f"published_{corpus}": value.value for corpus, value in line.published.items()}


def _drawings(numbers: CorrelationNumbers) -> Iterator[Drawing]:
    line = numbers.lines[0]
    if not line.n:
        return
    window = next((line.window for line in numbers.lines if line.window), None)
    x, y = formats.title(line.x), formats.title(line.y)
    caption = f"{formats.capital(y)} against {x}, a point a trial"
    caption += f", coloured by {formats.title(numbers.colour_by)}" if numbers.colour_by else ""
    caption += f". Grey band: {formats.window(window, line.y)}." if window else "."
    yield Drawing(name=f"{line.y}_against_{line.x}", caption=caption, draw=partial(_scatter, numbers, window))


def _scatter(numbers: CorrelationNumbers, window: Window | None) -> Figure:
    """Fig. 2 of the paper: x against y, a point a trial, circles where y is in the window, triangles elsewhere."""
    figure, axes = new_figure()
    x, y = (numbers.points[name].to_numpy(dtype=float) for name in (numbers.lines[0].x, numbers.lines[0].y))
    inside = np.array([window is None or value in window for value in y], dtype=bool)
    colour = numbers.points[numbers.colour_by].to_numpy(dtype=float) if numbers.colour_by else np.zeros(len(x))
    norm = Normalize(colour.min(), colour.max())
    for chosen, marker in ((inside, INSIDE), (~inside, OUTSIDE)):
        axes.scatter(
            x[chosen], y[chosen], c=colour[chosen], cmap=COLOURS, norm=norm, marker=marker, s=34,
            edgecolors="black", linewidths=0.5,
        )  # fmt: skip
    if window is not None:
        axes.axhspan(window.low, window.high, color="0.92", zorder=0, linewidth=0)
        handles = [
            Line2D([], [], marker=marker, linestyle="none", color="0.75", markeredgecolor="black", label=label)
            for marker, label in ((INSIDE, "inside the window"), (OUTSIDE, "outside"))
        ]
        axes.legend(handles=handles, **ABOVE)
    axes.set_xlabel(formats.capital(formats.title(numbers.lines[0].x)))
    axes.set_ylabel(formats.capital(formats.title(numbers.lines[0].y)))
    if numbers.colour_by:
        levels = np.unique(colour)
        ticks = levels if len(levels) <= MOST_TICKS else None
        bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=axes, ticks=ticks, pad=0.02)
        bar.set_label(formats.title(numbers.colour_by))
    return figure
