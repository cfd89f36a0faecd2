"""A correlation that a study asks for, over its cells and inside a window, beside what the paper
printed.

A cell is one setting: the trials that differ in nothing but their seed. Correlations are over cell
means, as trials of one cell are not independent points. Nor are the cells of a grid: their
intervals come from whole rows, and their p-values from permutations of rows and columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.statistics.correlation import correlate, partial_correlation
from orchestrator.analysis.statistics.estimates import Interval, Statistic
from orchestrator.analysis.statistics.jackknife import over_blocks, permutation_p
from orchestrator.analysis.statistics.samples import with_holm
from orchestrator.analysis.statistics.variance_components import (
    VarianceComponents,
    between_correlation,
    variance_components,
    within_correlation,
)
from search_spaces.study import Correlation

if TYPE_CHECKING:
    import pandas as pd

NOT_INDEPENDENT = "trials of one cell are no independent points"


@dataclass(frozen=True, kw_only=True)
class Window(Interval):
    """The cells whose y lies in [low, high]."""

    origin: Literal["published", "better half"]


@dataclass(frozen=True, kw_only=True)
class ComparedCorrelation:
    """One line of the correlation table: ours over some cells, and the published values for the
    same cells."""

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
    published: Mapping[str, float | None]
    """Corpus -> a paper's coefficient."""
    independent: Statistic | None = None
    """Pearson's r with Fisher's interval, which takes the cells of a grid for independent points;
    None if they are."""
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
    """Between seeds of one cell: what is left of both metrics once the means of cells and of seeds
    are taken away."""
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
class RankCorrelation:
    """The correlations of y with one definition of rank, over cell means and between the seeds of
    one cell."""

    x: str
    pearson: Statistic
    within: Statistic
    p_adjusted: float | None = None
    """After Holm's correction over all definitions, of rows as they are and of centred rows."""


@dataclass(frozen=True, kw_only=True)
class CorrelationNumbers:
    """The lines of the table, the done trials as points, and what else tells how sure the
    correlation is."""

    corpus: str
    lines: tuple[ComparedCorrelation, ...]
    points: pd.DataFrame
    """The done trials with both metrics."""
    cells: pd.DataFrame
    """A row a cell: `group`, `seeds` (how many trials), the means of both metrics, their standard
    deviations over seeds, less what a seed does to all cells, as `press_rank_sd` and so on (NaN for
    one seed), and the settings that all its trials share."""
    colour_by: str = ""
    """The column that the points have their colours by; empty for one colour."""
    rows: str = ""
    """The setting along the rows of the grid; empty if the cells are not one."""
    definitions: tuple[RankCorrelation, ...] = ()
    partials: tuple[PartialCorrelation, ...] = ()
    seeds: SeedNumbers | None = None
    """None where every cell has one."""


def correlation_numbers(
    frame: pd.DataFrame,
    request: Correlation,
    *,
    corpus: str,
    scale: str,
    grid: tuple[str, str] | tuple[()] = (),
) -> CorrelationNumbers:
    """The correlation over all cells, then over those inside the window (where there are any).

    `grid` names the settings along the rows and the columns, if the study has a grid. Partial
    correlations leave out each of the two that varies, and both. Points are coloured by the setting
    along the columns."""
    unmeasured = {name: math.nan for name in (request.x, request.y) if name not in frame.columns}
    done = frame.assign(**unmeasured)[frame["state"] == "done"]
    points = done.dropna(subset=[request.x, request.y])
    cells = cell_means(points, (request.x, request.y), grid)
    grid = grid if set(grid) <= set(cells.columns) else ()
    missing = describe_missing(list(frame["state"]), usable=len(points))
    lines = [_compare(cells, request, grid, whole=cells, window=None, missing=missing)]
    if len(cells):
        window = choose_window(
            list(cells[request.y]), request.windows.get(corpus) if scale == "paper" else None
        )
        inside = cells[cells[request.y].between(window.low, window.high)]
        lines.append(_compare(inside, request, grid, whole=cells, window=window, missing=missing))
    numeric = set(cells.select_dtypes(include=["number", "bool"]).columns)
    return CorrelationNumbers(
        corpus=corpus,
        lines=tuple(lines),
        points=points,
        cells=cells,
        colour_by=grid[1] if grid and grid[1] in numeric and cells[grid[1]].notna().all() else "",
        rows=grid[0] if grid else "",
        definitions=_definitions(done, request, grid),
        partials=tuple(_partials(cells, request, grid)),
        seeds=_seed_numbers(points, request, grid) if len(points) > len(cells) else None,
    )


def cell_means(
    points: pd.DataFrame, metrics: Sequence[str], settings: Sequence[str]
) -> pd.DataFrame:
    """A row a cell, in the order of the plan; see `CorrelationNumbers.cells`."""
    cells = points.groupby("group", sort=False)
    shared = [name for name in dict.fromkeys(settings) if name in points.columns]
    shared = [
        name
        for name in shared
        if name not in metrics and (cells[name].nunique(dropna=False) <= 1).all()
    ]
    table = cells[shared].first() if shared else cells[[]].first()
    table.insert(0, "seeds", cells.size())
    for name in metrics:
        table[name] = cells[name].mean()
        table[f"{name}_sd"] = (
            (points[name] - _common_to_cells(points, name)).groupby(points["group"]).std(ddof=1)
        )
    return table.reset_index()


def _common_to_cells(points: pd.DataFrame, metric: str) -> pd.Series[float] | float:
    """What the seed of each point does to all cells, from the cells that have every seed; 0 where
    there are none."""
    if "seed" not in points.columns or points.empty:
        return 0.0
    seed_means = points.pivot_table(index="group", columns="seed", values=metric).dropna().mean()
    return points["seed"].map(seed_means - seed_means.mean()).fillna(0.0)


def choose_window(values: Sequence[float], published: tuple[float, float] | None) -> Window:
    """The published window, or else the better half: from the least of `values` up to their
    median."""
    if published is not None:
        return Window(low=published[0], high=published[1], origin="published")
    return Window(low=min(values), high=median(values), origin="better half")


def describe_missing(states: Sequence[str], *, usable: int) -> str:
    """For example "2 of 72 trials failed, 1 of 72 trials diverged"; empty where every trial can be
    used."""
    counts = {word: states.count(word) for word in ("failed", "diverged", "pruned")}
    counts["not finished"] = states.count("planned") + states.count("running")
    counts["without a value of both metrics"] = states.count("done") - usable
    return ", ".join(
        f"{count} of {len(states)} trials {words}" for words, count in counts.items() if count
    )


def _compare(
    cells: pd.DataFrame,
    request: Correlation,
    grid: Sequence[str],
    *,
    whole: pd.DataFrame,
    window: Window | None,
    missing: str,
) -> ComparedCorrelation:
    independent = _correlation(cells, request.x, request.y)
    return ComparedCorrelation(
        x=request.x,
        y=request.y,
        window=window,
        n=len(cells),
        seeds=(int(cells["seeds"].min()), int(cells["seeds"].max())) if len(cells) else (1, 1),
        pearson=_correlation(cells, request.x, request.y, grid, whole=whole),
        spearman=_correlation(cells, request.x, request.y, grid, ranks=True),
        independent=independent if grid else None,
        published={
            corpus: printed.all_cells if window is None else printed.windowed
            for corpus, printed in request.published.items()
        },
        missing=missing,
    )


def _correlation(
    cells: pd.DataFrame,
    x: str,
    y: str,
    grid: Sequence[str] = (),
    *,
    ranks: bool = False,
    whole: pd.DataFrame | None = None,
) -> Statistic:
    """Correlate x and y over cells, which are independent or those of a grid. `whole` has all cells
    of the grid if `cells` are a part of them."""
    x_n, y_n = (cells[name].to_numpy(dtype=float) for name in (x, y))

    def estimate(kept: NDArray[np.bool_]) -> Statistic:
        return correlate(x_n[kept], y_n[kept], ranks=ranks, names=(x, y))

    independent = estimate(np.ones(len(cells), dtype=bool))
    if not grid or independent.interval is None:
        return independent
    statistic, whole = _over_rows(estimate, cells, grid), cells if whole is None else whole
    if ranks or whole.duplicated(list(grid)).any():
        return statistic
    y_n = whole[y].where(whole.index.isin(cells.index)).to_numpy(dtype=float)
    p_value = permutation_p(whole[x], y_n, *(whole[name] for name in grid))
    return replace(statistic, p_value=p_value, t=None, df=None)


def _over_rows(
    estimate: Callable[[NDArray[np.bool_]], Statistic], cells: pd.DataFrame, grid: Sequence[str]
) -> Statistic:
    return over_blocks(estimate, cells[grid[0]], name=_short(grid[0]))


def _short(setting: str) -> str:
    return setting.rpartition(".")[2]


def _definitions(
    done: pd.DataFrame, request: Correlation, grid: Sequence[str]
) -> tuple[RankCorrelation, ...]:
    """Correlate y with each measured definition of rank, with and without centred rows."""
    measured = [
        name
        for definition in request.definitions
        for name in (definition, f"centred_{definition}")
        if name in done.columns and done[name].notna().any()
    ]
    lines = []
    for name in measured:
        points = done.dropna(subset=[name, request.y])
        cells = cell_means(points, (name, request.y), grid)
        within = _within(points, name, request.y, grid) if len(points) > len(cells) else Statistic()
        pearson = _correlation(cells, name, request.y, grid)
        lines.append(RankCorrelation(x=name, pearson=pearson, within=within))
    return with_holm(lines, "pearson")


def _within(points: pd.DataFrame, x: str, y: str, grid: Sequence[str]) -> Statistic:
    columns = [points[name].to_numpy() for name in (x, y, "group", "seed")]

    def estimate(kept: NDArray[np.bool_]) -> Statistic:
        return within_correlation(*(column[kept] for column in columns))

    return (
        _over_rows(estimate, points, grid) if grid else estimate(np.ones(len(points), dtype=bool))
    )


def _seed_numbers(points: pd.DataFrame, request: Correlation, grid: Sequence[str]) -> SeedNumbers:
    x, y = (points[name].to_numpy(dtype=float) for name in (request.x, request.y))
    labels = points["group"].to_numpy(), points["seed"].to_numpy()
    blocks, name = (points[grid[0]], _short(grid[0])) if grid else (None, "")
    pearson, spearman = (
        Statistic(
            value=_correlation(points, request.x, request.y, ranks=ranks).value,
            missing=NOT_INDEPENDENT,
        )
        for ranks in (False, True)
    )
    return SeedNumbers(
        trials=len(points),
        pearson=pearson,
        spearman=spearman,
        within=_within(points, request.x, request.y, grid),
        between=between_correlation(x, y, *labels, blocks=blocks, name=name),
        components={
            request.x: variance_components(x, *labels),
            request.y: variance_components(y, *labels),
        },
    )


def _partials(
    cells: pd.DataFrame, request: Correlation, grid: Sequence[str]
) -> list[PartialCorrelation]:
    """Without each setting of the grid that varies, and without both."""
    import pandas as pd

    varying = [name for name in grid if cells[name].nunique() > 1]
    chosen = [(name,) for name in varying] + ([tuple(varying)] if len(varying) > 1 else [])
    names = (request.x, request.y)
    x, y = (cells[name].to_numpy(dtype=float) for name in names)

    def without(controls: NDArray[np.float64]) -> Statistic:
        return _over_rows(
            lambda kept: partial_correlation(x[kept], y[kept], controls[kept], names=names),
            cells,
            grid,
        )

    partials = []
    for left_out in chosen:
        columns = cells[list(left_out)]
        levels = pd.get_dummies(columns.astype(str), drop_first=True).to_numpy(dtype=float)
        numbers = columns.select_dtypes(include=["number", "bool"]).dropna()
        if numbers.shape == columns.shape:
            line = without(columns.to_numpy(dtype=float))
        else:
            line = Statistic(missing="a straight line needs numbers")
        partials.append(PartialCorrelation(settings=left_out, line=line, levels=without(levels)))
    return partials
