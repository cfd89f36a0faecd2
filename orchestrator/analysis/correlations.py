"""A correlation that a study asks for, over all its cells and inside a window, beside what the paper printed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from orchestrator.analysis.statistics.correlation import correlate, fisher_interval
from orchestrator.analysis.statistics.estimates import Interval, Statistic
from search_spaces.study import Correlation, PublishedCorrelation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Window(Interval):
    """The trials whose y lies in [low, high]."""

    origin: Literal["published", "better half"]


@dataclass(frozen=True, kw_only=True)
class ComparedCorrelation:
    """One line of the correlation table: ours over some cells, and the published values for the same cells."""

    x: str
    y: str
    window: Window | None
    """None: all cells."""
    n: int
    """Trials in the window that have both metrics."""
    pearson: Statistic
    spearman: Statistic
    published: Mapping[str, Statistic]
    """Corpus -> a paper's coefficient, with Fisher's interval from the paper's number of cells; papers print none. It
    has none where that number is not printed either."""
    missing: str = ""
    """In words, which planned trials have no value here."""


@dataclass(frozen=True, kw_only=True)
class CorrelationNumbers:
    """The lines of the table, and the done trials as points."""

    corpus: str
    lines: tuple[ComparedCorrelation, ...]
    points: pd.DataFrame
    colour_by: str = ""
    """The column that the points have their colours by; empty for one colour."""


def correlation_numbers(
    frame: pd.DataFrame, request: Correlation, *, corpus: str, scale: str, colours: Sequence[str] = ()
) -> CorrelationNumbers:
    """The correlation over all done trials, then over those inside the window (where there are any).

    Points have the colours of the first of the columns that has numbers.
    """
    unmeasured = {name: math.nan for name in (request.x, request.y) if name not in frame.columns}
    done = frame.assign(**unmeasured)[frame["state"] == "done"]
    points = done.dropna(subset=[request.x, request.y])
    missing = describe_missing(list(frame["state"]), usable=len(points))
    lines = [_compare(points, request, window=None, missing=missing)]
    if len(points):
        window = choose_window(list(points[request.y]), request.windows.get(corpus) if scale == "paper" else None)
        inside = points[points[request.y].between(window.low, window.high)]
        lines.append(_compare(inside, request, window=window, missing=missing))
    numeric = set(done.select_dtypes(include=["number", "bool"]).columns)
    colour_by = next((name for name in colours if name in numeric and done[name].notna().all()), "")
    return CorrelationNumbers(
        corpus=corpus,
        lines=tuple(lines),
        points=points,
        colour_by=colour_by,
    )


def choose_window(values: Sequence[float], published: tuple[float, float] | None) -> Window:
    """The published window, or else the better half: from the least of `values` up to their median."""
    if published is not None:
        return Window(low=published[0], high=published[1], origin="published")
    return Window(low=min(values), high=median(values), origin="better half")


def describe_missing(states: Sequence[str], *, usable: int) -> str:
    """For example "2 of 72 trials failed, 1 of 72 trials diverged"; empty where every trial can be used."""
    counts = {word: states.count(word) for word in ("failed", "diverged", "pruned")}
    counts["not finished"] = states.count("planned") + states.count("running")
    counts["without a value of both metrics"] = states.count("done") - usable
    return ", ".join(f"{count} of {len(states)} trials {words}" for words, count in counts.items() if count)


def _compare(cells: pd.DataFrame, request: Correlation, *, window: Window | None, missing: str) -> ComparedCorrelation:
    names = (request.x, request.y)
    pearson, spearman = (
        correlate(*(cells[name].to_numpy(dtype=float) for name in names), ranks=ranks, names=names)
        for ranks in (False, True)
    )
    return ComparedCorrelation(
        x=request.x,
        y=request.y,
        window=window,
        n=len(cells),
        pearson=pearson,
        spearman=spearman,
        published={corpus: _published(value, window) for corpus, value in request.published.items()},
        missing=missing,
    )


def _published(printed: PublishedCorrelation, window: Window | None) -> Statistic:
    if window is not None:
        return Statistic(value=printed.windowed)
    return Statistic(value=printed.all_cells, interval=fisher_interval(printed.all_cells, printed.cells))
