"""A correlation that a study asks for, over its cells and inside a window, beside what the paper
printed.

A cell is one setting: the trials that differ in nothing but their seed. Correlations are over cell
means, as trials of one cell are not independent points. Nor are the cells of a grid: their
intervals come from whole rows, and their p-values from permutations of rows and columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.statistics.correlation import correlate, partial_correlation
from orchestrator.analysis.statistics.estimates import Interval, Statistic
from orchestrator.analysis.statistics.jackknife import over_blocks, permutation_p
from orchestrator.analysis.statistics.variance_components import (
    between_correlation,
    variance_components,
    within_correlation,
)
from orchestrator.analysis.tidy_frames import Families, corrected, ends, estimated, tidy
from search_spaces.study import Correlation

if TYPE_CHECKING:
    import pandas as pd

CELLS, PUBLISHED_WINDOW, BETTER_HALF = "cells", "published", "better half"
BETWEEN, WITHIN, SINGLE = (
    "cells, without what their seeds add",
    "seeds of one cell",
    "single trials",
)
NOT_INDEPENDENT = "trials of one cell are no independent points"


@dataclass(frozen=True, kw_only=True)
class CorrelationNumbers:
    """The answer to a Correlation request. Correlations have the columns NAME [95%], NAME_p and
    NAME_df."""

    request: Correlation
    corpus: str
    lines: pd.DataFrame
    """A row for what the correlation is over: x, y, over, window_low and window_high (of y), n,
    seeds_least and seeds_most (trials of a cell), pearson, spearman, and if the cells are a grid
    independent (Pearson's r with Fisher's interval [95%], which takes cells for independent
    points), published_CORPUS (a paper's coefficient), missing.

    `over` is CELLS (all of them), PUBLISHED_WINDOW or BETTER_HALF, and if a cell has several seeds
    BETWEEN (the cells' own parts: that of the means without what the seeds add), WITHIN (what is
    left of both metrics without the means of cells and of seeds) and SINGLE (single trials, without
    an interval, as they are not independent)."""
    left_out: str
    """In words, which planned trials have no value here."""
    points: pd.DataFrame
    """The done trials with both metrics."""
    cells: pd.DataFrame
    """A row a cell: `group`, `seeds` (how many trials), the means of both metrics, their standard
    deviations over seeds, less what a seed does to all cells, as `press_rank_sd` and so on (NaN for
    one seed), and the settings that all its trials share."""
    colour_by: str
    """The column that the points have their colours by; empty for one colour."""
    rows: str
    """The setting along the rows of the grid; empty if the cells are not one."""
    definitions: pd.DataFrame
    """A row for each definition of rank, of rows as they are and of centred rows: x, pearson,
    within (between the seeds of one cell), holm_p (over all definitions)."""
    partials: pd.DataFrame
    """A row for the settings that are left out: left_out (their paths), levels (a level for each
    value of each is taken away), line (a straight line in each)."""
    components: pd.DataFrame
    """A row a metric, if a cell has several seeds: metric, cells, trials, variance_cells,
    variance_seed_in_one_cell, variance_seed_in_all_cells, seed_share [95%] (of the variance between
    cells of one seed), reliability [95%] (the cells' own share of the variance of their means),
    missing (why there is no share)."""
    families: ClassVar[Families] = {"definitions": ("pearson_p",)}


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
    several = len(points) > len(cells)
    lines = [_line(cells, request, grid, whole=cells)]
    if len(cells):
        over, window = choose_window(
            list(cells[request.y]), request.windows.get(corpus) if scale == "paper" else None
        )
        inside = cells[cells[request.y].between(window.low, window.high)]
        lines.append(_line(inside, request, grid, whole=cells, over=over, window=window))
    if several:
        lines += _beside_the_means(points, request, grid, lines[0])
    numeric = set(cells.select_dtypes(include=["number", "bool"]).columns)
    return CorrelationNumbers(
        request=request,
        corpus=corpus,
        lines=tidy(lines),
        left_out=describe_missing(list(frame["state"]), usable=len(points)),
        points=points,
        cells=cells,
        colour_by=grid[1] if grid and grid[1] in numeric and cells[grid[1]].notna().all() else "",
        rows=grid[0] if grid else "",
        definitions=corrected(tidy(_definitions(done, request, grid)), "pearson_p"),
        partials=tidy(_partials(cells, request, grid)),
        components=tidy(_components(points, request) if several else ()),
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


def choose_window(
    values: Sequence[float], published: tuple[float, float] | None
) -> tuple[str, Interval]:
    """Return the published window, or else the better half, from the least of `values` up to their
    median, and which of the two it is."""
    if published is not None:
        return PUBLISHED_WINDOW, Interval(low=published[0], high=published[1])
    return BETTER_HALF, Interval(low=min(values), high=median(values))


def describe_missing(states: Sequence[str], *, usable: int) -> str:
    """For example "2 of 72 trials failed, 1 of 72 trials diverged"; empty where every trial can be
    used."""
    counts = {word: states.count(word) for word in ("failed", "diverged", "pruned")}
    counts["not finished"] = states.count("planned") + states.count("running")
    counts["without a value of both metrics"] = states.count("done") - usable
    return ", ".join(
        f"{count} of {len(states)} trials {words}" for words, count in counts.items() if count
    )


def _line(
    cells: pd.DataFrame,
    request: Correlation,
    grid: Sequence[str],
    *,
    whole: pd.DataFrame,
    over: str = CELLS,
    window: Interval | None = None,
) -> dict[str, Any]:
    x, y, seeds = request.x, request.y, cells["seeds"]
    pearson = _correlation(cells, x, y, grid, whole=whole)
    independent = estimated("independent", _correlation(cells, x, y)) if grid else {}
    published = {
        f"published_{corpus}": printed.all_cells if window is None else printed.windowed
        for corpus, printed in request.published.items()
    }
    return {
        "x": x,
        "y": y,
        "over": over,
        **ends("window", window),
        "n": len(cells),
        "seeds_least": int(seeds.min()) if len(cells) else 1,
        "seeds_most": int(seeds.max()) if len(cells) else 1,
        **_tested("pearson", pearson),
        **_tested("spearman", _correlation(cells, x, y, grid, ranks=True)),
        **independent,
        **published,
        "missing": pearson.missing,
    }


def _tested(name: str, correlation: Statistic) -> dict[str, float | None]:
    numbers = {f"{name}_p": correlation.p_value, f"{name}_df": correlation.df}
    return estimated(name, correlation) | numbers


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
) -> Iterator[dict[str, Any]]:
    """Correlate y with each measured definition of rank, with and without centred rows."""
    measured = [
        name
        for definition in request.definitions
        for name in (definition, f"centred_{definition}")
        if name in done.columns and done[name].notna().any()
    ]
    for name in measured:
        points = done.dropna(subset=[name, request.y])
        cells = cell_means(points, (name, request.y), grid)
        within = _within(points, name, request.y, grid) if len(points) > len(cells) else Statistic()
        pearson = _correlation(cells, name, request.y, grid)
        yield {"x": name, **_tested("pearson", pearson), **_tested("within", within)}


def _within(points: pd.DataFrame, x: str, y: str, grid: Sequence[str]) -> Statistic:
    columns = [points[name].to_numpy() for name in (x, y, "group", "seed")]

    def estimate(kept: NDArray[np.bool_]) -> Statistic:
        return within_correlation(*(column[kept] for column in columns))

    return (
        _over_rows(estimate, points, grid) if grid else estimate(np.ones(len(points), dtype=bool))
    )


def _beside_the_means(
    points: pd.DataFrame, request: Correlation, grid: Sequence[str], line: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the lines over something else than the means of cells, next to the `line` of these."""
    x, y = (points[name].to_numpy(dtype=float) for name in (request.x, request.y))
    labels = points["group"].to_numpy(), points["seed"].to_numpy()
    blocks, name = (points[grid[0]], _short(grid[0])) if grid else (None, "")
    between = between_correlation(x, y, *labels, blocks=blocks, name=name)
    single = [
        Statistic(
            value=_correlation(points, request.x, request.y, ranks=ranks).value,
            missing=NOT_INDEPENDENT,
        )
        for ranks in (False, True)
    ]
    correlations: list[tuple[str, int, Statistic, Statistic]] = [
        (BETWEEN, line["n"], between, Statistic()),
        (WITHIN, len(points), _within(points, request.x, request.y, grid), Statistic()),
        (SINGLE, len(points), single[0], single[1]),
    ]
    for over, n, pearson, spearman in correlations:
        yield {
            **dict.fromkeys(line),
            **{name: line[name] for name in ("x", "y", "seeds_least", "seeds_most")},
            "over": over,
            "n": n,
            **_tested("pearson", pearson),
            **_tested("spearman", spearman),
            "missing": pearson.missing,
        }


def _components(points: pd.DataFrame, request: Correlation) -> Iterator[dict[str, Any]]:
    labels = points["group"].to_numpy(), points["seed"].to_numpy()
    for name in (request.x, request.y):
        parts = variance_components(points[name].to_numpy(dtype=float), *labels)
        yield {
            "metric": name,
            "cells": parts.cells,
            "trials": parts.values,
            "variance_cells": parts.own,
            "variance_seed_in_one_cell": parts.rest,
            "variance_seed_in_all_cells": parts.common,
            **estimated("seed_share", parts.share),
            **estimated("reliability", parts.reliability),
            "missing": parts.share.missing,
        }


def _partials(
    cells: pd.DataFrame, request: Correlation, grid: Sequence[str]
) -> Iterator[dict[str, Any]]:
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

    for left_out in chosen:
        columns = cells[list(left_out)]
        levels = pd.get_dummies(columns.astype(str), drop_first=True).to_numpy(dtype=float)
        numbers = columns.select_dtypes(include=["number", "bool"]).dropna()
        if numbers.shape == columns.shape:
            line = without(columns.to_numpy(dtype=float))
        else:
            line = Statistic(missing="a straight line needs numbers")
        yield {
            "left_out": " ".join(left_out),
            **_tested("levels", without(levels)),
            **_tested("line", line),
        }
