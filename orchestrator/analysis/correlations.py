"""A correlation that a study asks for, over its cells and inside a window, beside what the paper printed.

A cell is one setting: the trials that differ in nothing but their seed. Where there are several, the correlation is
over cell means, as trials of one cell are no independent points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from orchestrator.analysis.statistics.correlation import correlate, fisher_interval, partial_correlation
from orchestrator.analysis.statistics.estimates import Interval, Statistic
from orchestrator.analysis.statistics.variance_components import (
    VarianceComponents,
    between_correlation,
    variance_components,
    within_correlation,
)
from search_spaces.study import Correlation, PublishedCorrelation

if TYPE_CHECKING:
    import pandas as pd

NOT_INDEPENDENT = "trials of one cell are no independent points"


@dataclass(frozen=True, kw_only=True)
class Window(Interval):
    """The cells whose y lies in [low, high]."""

    origin: Literal["published", "better half"]


@dataclass(frozen=True, kw_only=True)
class ComparedCorrelation:
    """One line of the correlation table: ours over some cells, and the published values for the same cells."""

    x: str
    y: str
    window: Window | None
    """None: all cells."""
    n: int
    """Cells in the window that have both metrics."""
    seeds: tuple[int, int] = (1, 1)
    """The least and the most trials of these cells that have both."""
    pearson: Statistic
    spearman: Statistic
    published: Mapping[str, Statistic]
    """Corpus -> a paper's coefficient, with Fisher's interval from the paper's number of cells; papers print none. It
    has none where that number is not printed either."""
    missing: str = ""
    """In words, which planned trials have no value here."""


@dataclass(frozen=True, kw_only=True)
class SeedNumbers:
    """What several seeds a cell tell beside the cells' means."""

    trials: int
    """Those that have both metrics."""
    pearson: Statistic
    """Over single trials; without an interval, as they are not independent."""
    spearman: Statistic
    within: Statistic
    """Between seeds of one cell: what is left of both metrics once the means of cells and of seeds are taken away."""
    between: Statistic
    """Between the cells' own parts: that of the means without what the seeds add to it."""
    components: Mapping[str, VarianceComponents]
    """By metric."""


@dataclass(frozen=True, kw_only=True)
class PartialCorrelation:
    """The correlation over cells that leaves some settings out."""

    settings: tuple[str, ...]
    line: Statistic
    """A straight line in each setting is taken away."""
    levels: Statistic
    """A level for each value of each setting is taken away, whatever the shape of its effect."""


@dataclass(frozen=True, kw_only=True)
class CorrelationNumbers:
    """The lines of the table, the done trials as points, and what else tells how sure the correlation is."""

    corpus: str
    lines: tuple[ComparedCorrelation, ...]
    points: pd.DataFrame
    """The done trials with both metrics."""
    cells: pd.DataFrame
    """A row a cell: `group`, `seeds` (how many trials), the means of both metrics, their standard deviations over
    seeds, less what a seed does to all cells, as `press_rank_sd` and so on (NaN for one seed), and the settings that
    all its trials share."""
    colour_by: str = ""
    """The column that the points have their colours by; empty for one colour."""
    partials: tuple[PartialCorrelation, ...] = ()
    seeds: SeedNumbers | None = None
    """None where every cell has one."""


def correlation_numbers(
    frame: pd.DataFrame,
    request: Correlation,
    *,
    corpus: str,
    scale: str,
    settings: Sequence[str] = (),
    colours: Sequence[str] = (),
) -> CorrelationNumbers:
    """The correlation over all cells, then over those inside the window (where there are any).

    Of the columns `settings` those that vary from cell to cell are left out by partial correlations, each alone and all
    together. Points have the colours of the first of the columns `colours` that has numbers.
    """
    unmeasured = {name: math.nan for name in (request.x, request.y) if name not in frame.columns}
    done = frame.assign(**unmeasured)[frame["state"] == "done"]
    points = done.dropna(subset=[request.x, request.y])
    cells = cell_means(points, (request.x, request.y), (*settings, *colours))
    missing = describe_missing(list(frame["state"]), usable=len(points))
    lines = [_compare(cells, request, window=None, missing=missing)]
    if len(cells):
        window = choose_window(list(cells[request.y]), request.windows.get(corpus) if scale == "paper" else None)
        inside = cells[cells[request.y].between(window.low, window.high)]
        lines.append(_compare(inside, request, window=window, missing=missing))
    numeric = set(cells.select_dtypes(include=["number", "bool"]).columns)
    return CorrelationNumbers(
        corpus=corpus,
        lines=tuple(lines),
        points=points,
        cells=cells,
        colour_by=next((name for name in colours if name in numeric and cells[name].notna().all()), ""),
        partials=tuple(_partials(cells, request, settings)),
        seeds=_seed_numbers(points, request) if len(points) > len(cells) else None,
    )


def cell_means(points: pd.DataFrame, metrics: Sequence[str], settings: Sequence[str]) -> pd.DataFrame:
    """A row a cell, in the order of the plan; see `CorrelationNumbers.cells`."""
    cells = points.groupby("group", sort=False)
    shared = [name for name in dict.fromkeys(settings) if name in points.columns]
    shared = [name for name in shared if name not in metrics and (cells[name].nunique(dropna=False) <= 1).all()]
    table = cells[shared].first() if shared else cells[[]].first()
    table.insert(0, "seeds", cells.size())
    for name in metrics:
        table[name] = cells[name].mean()
        table[f"{name}_sd"] = (points[name] - _common_to_cells(points, name)).groupby(points["group"]).std(ddof=1)
    return table.reset_index()


def _common_to_cells(points: pd.DataFrame, metric: str) -> pd.Series[float] | float:
    """What the seed of each point does to all cells, from the cells that have every seed; 0 where there are none."""
    if "seed" not in points.columns or points.empty:
        return 0.0
    seed_means = points.pivot_table(index="group", columns="seed", values=metric).dropna().mean()
    return points["seed"].map(seed_means - seed_means.mean()).fillna(0.0)


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
    pearson, spearman = _both(cells, request)
    return ComparedCorrelation(
        x=request.x,
        y=request.y,
        window=window,
        n=len(cells),
        seeds=(int(cells["seeds"].min()), int(cells["seeds"].max())) if len(cells) else (1, 1),
        pearson=pearson,
        spearman=spearman,
        published={corpus: _published(value, window) for corpus, value in request.published.items()},
        missing=missing,
    )


def _both(rows: pd.DataFrame, request: Correlation) -> tuple[Statistic, Statistic]:
    names = (request.x, request.y)
    x, y = (rows[name].to_numpy(dtype=float) for name in names)
    return correlate(x, y, names=names), correlate(x, y, ranks=True, names=names)


def _published(printed: PublishedCorrelation, window: Window | None) -> Statistic:
    if window is not None:
        return Statistic(value=printed.windowed)
    return Statistic(value=printed.all_cells, interval=fisher_interval(printed.all_cells, printed.cells))


def _seed_numbers(points: pd.DataFrame, request: Correlation) -> SeedNumbers:
    x, y = (points[name].to_numpy(dtype=float) for name in (request.x, request.y))
    labels = points["group"].to_numpy(), points["seed"].to_numpy()
    pearson, spearman = (Statistic(value=single.value, missing=NOT_INDEPENDENT) for single in _both(points, request))
    return SeedNumbers(
        trials=len(points),
        pearson=pearson,
        spearman=spearman,
        within=within_correlation(x, y, *labels),
        between=between_correlation(x, y, *labels),
        components={request.x: variance_components(x, *labels), request.y: variance_components(y, *labels)},
    )


def _partials(cells: pd.DataFrame, request: Correlation, settings: Sequence[str]) -> list[PartialCorrelation]:
    """Without each setting that varies, and without all of them."""
    import pandas as pd

    varying = [name for name in dict.fromkeys(settings) if name in cells.columns and cells[name].nunique() > 1]
    chosen = [(name,) for name in varying] + ([tuple(varying)] if len(varying) > 1 else [])
    names = (request.x, request.y)
    x, y = (cells[name].to_numpy(dtype=float) for name in names)
    partials = []
    for left_out in chosen:
        columns = cells[list(left_out)]
        levels = pd.get_dummies(columns.astype(str), drop_first=True).to_numpy(dtype=float)
        numbers = columns.select_dtypes(include=["number", "bool"]).dropna()
        if numbers.shape == columns.shape:
            line = partial_correlation(x, y, columns.to_numpy(dtype=float), names=names)
        else:
            line = Statistic(missing="a straight line needs numbers")
        by_level = partial_correlation(x, y, levels, names=names)
        partials.append(PartialCorrelation(settings=left_out, line=line, levels=by_level))
    return partials
