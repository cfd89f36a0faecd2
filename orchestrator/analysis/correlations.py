"""Correlations of two metrics over all cells and inside a window, next to the printed ones.

A cell is all trials of one setting. They are not independent, so correlations are over cell means.
Cells of a grid share row and column effects, so intervals leave out one row at a time and p-values
permute rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import median
from typing import Any, ClassVar

import pandas as pd

from orchestrator.analysis.statistics.correlation import correlate, partial_correlation
from orchestrator.analysis.statistics.estimates import Interval, Statistic
from orchestrator.analysis.statistics.jackknife import over_blocks, permutation_p
from orchestrator.analysis.statistics.variance_components import (
    between_correlation,
    variance_components,
    within_correlation,
)
from orchestrator.analysis.tidy_frames import Families, add_holm, ends, estimate_row, test_row, tidy
from search_spaces.study import Correlation

CELLS, PUBLISHED_WINDOW, BETTER_HALF = "cells", "published", "better half"
BETWEEN, WITHIN, SINGLE = (
    "cells, without the effects of seeds",
    "seeds of one cell",
    "single trials",
)
NOT_INDEPENDENT = "trials of one cell are not independent"


@dataclass(frozen=True, kw_only=True)
class CorrelationNumbers:
    """Answer to Correlation. A correlation NAME has the columns NAME [95%], NAME_p and NAME_df."""

    request: Correlation
    corpus: str
    lines: pd.DataFrame
    """One row per correlation. `over` is the set of points.

    - CELLS: all cells. PUBLISHED_WINDOW and BETTER_HALF: cells inside a window.
    - BETWEEN (needs several seeds, like the next two): cell means without the seeds' contribution.
    - WITHIN: residuals after removing cell and seed means.
    - SINGLE: trials, without an interval.

    `independent` has Fisher's interval, as if grid cells were independent.
    """
    left_out: str
    points: pd.DataFrame
    cells: pd.DataFrame
    """One row per cell. METRIC_sd is the deviation over the seeds of a cell, after removing seed
    effects common to all cells; NaN with one seed."""
    colour_by: str
    """Setting that colours the points; empty for one colour."""
    rows: str
    """Setting of the grid's rows; empty without a grid."""
    definitions: pd.DataFrame
    """Correlations of further rank metrics, each for log P and for log P with centred rows.
    `pearson` is over cells, `within` over seeds of one cell."""
    partials: pd.DataFrame
    """One row per set of removed settings (`left_out`). `levels` removes a mean per value, `line` a
    straight line."""
    components: pd.DataFrame
    """One row per metric if a cell has several seeds; see `variance_components`."""
    families: ClassVar[Families] = {"definitions": ("pearson_p",)}


def correlation_numbers(
    frame: pd.DataFrame,
    request: Correlation,
    *,
    corpus: str,
    scale: str,
    grid: tuple[str, str] | tuple[()] = (),
) -> CorrelationNumbers:
    """Return the correlations over all cells and inside the window.

    The window is a range of y: the published one at paper scale, else the better half. `grid` names
    the row and column settings; partial correlations remove each of them, and both.
    """
    metrics = [request.x, request.y]
    columns = frame.columns.union(metrics, sort=False)
    trials = frame[frame["state"] == "done"].reindex(columns=columns)
    points = trials.dropna(subset=metrics)
    cells = cell_means(points, metrics, grid)
    for metric in dict.fromkeys(metrics):
        deviations = cells["group"].map(_deviations(points, metric)).astype(float)
        cells.insert(list(cells).index(metric) + 1, f"{metric}_sd", deviations)
    grid = grid if set(grid) <= set(cells) else ()
    is_repeated = len(points) > len(cells)
    lines = [_line(cells, request, grid)]
    if len(cells):
        published_window, values = request.windows.get(corpus), list(cells[request.y])
        kind, window = BETTER_HALF, Interval(min(values), median(values))
        if published_window and scale == "paper":
            kind, window = PUBLISHED_WINDOW, Interval(*published_window)
        window_y = cells[request.y].where(cells[request.y].between(*window))
        window_cells = cells.assign(**{request.y: window_y})
        lines.append(_line(window_cells, request, grid, over=kind, window=window))
    if is_repeated:
        lines += _seed_lines(points, request, grid, lines[0])
    numbers = set(cells.select_dtypes(include=["number", "bool"]))
    return CorrelationNumbers(
        request=request,
        corpus=corpus,
        lines=tidy(lines),
        left_out=describe_missing(list(frame["state"]), usable=len(points)),
        points=points,
        cells=cells,
        colour_by=grid[1] if grid and grid[1] in numbers and cells[grid[1]].notna().all() else "",
        rows=grid[0] if grid else "",
        definitions=add_holm(tidy(_definitions(trials, request, grid)), "pearson_p"),
        partials=tidy(_partials(cells, request, grid)),
        components=tidy(variance_components(points, metric) for metric in metrics if is_repeated),
    )


def cell_means(
    points: pd.DataFrame, metrics: Sequence[str], settings: Sequence[str]
) -> pd.DataFrame:
    """Return one row per cell, in plan order: number of seeds, settings and mean metrics.

    Settings that vary within a cell are left out.
    """
    cells = points.groupby("group", sort=False)
    columns = [
        name
        for name in dict.fromkeys(settings)
        if name in points and name not in metrics and (cells[name].nunique(dropna=False) <= 1).all()
    ]
    table = cells[columns].first()
    table.insert(0, "seeds", cells.size())
    return table.join(cells[[*dict.fromkeys(metrics)]].mean()).reset_index()


def _deviations(points: pd.DataFrame, metric: str) -> pd.Series[float]:
    values = points[metric]
    if "seed" in points and len(points):
        seeds = points.pivot_table(index="group", columns="seed", values=metric).dropna().mean()
        values = values - points["seed"].map(seeds - seeds.mean()).fillna(0.0)
    return values.groupby(points["group"]).std()


def describe_missing(states: Sequence[str], *, usable: int) -> str:
    """Return a text like "2 of 72 trials failed, 1 of 72 trials diverged"; "" if all are usable."""
    counts = {word: states.count(word) for word in ("failed", "diverged", "pruned")}
    counts["have not finished"] = states.count("planned") + states.count("running")
    counts["have no value of one or both metrics"] = states.count("done") - usable
    return ", ".join(
        f"{count} of {len(states)} trials {words}" for words, count in counts.items() if count
    )


def _line(
    cells: pd.DataFrame,
    request: Correlation,
    grid: Sequence[str],
    *,
    over: str = CELLS,
    window: Interval | None = None,
) -> dict[str, Any]:
    x, y = request.x, request.y
    points = cells.dropna(subset=[y])
    pearson = _correlation(cells, x, y, grid)
    independent_columns = estimate_row("independent", _correlation(cells, x, y)) if grid else {}
    published_columns = {
        f"published_{corpus}": printed.all_cells if window is None else printed.windowed
        for corpus, printed in request.published.items()
    }
    return {
        "x": x,
        "y": y,
        "over": over,
        **ends("window", window),
        "n": len(points),
        "seeds_least": int(points["seeds"].min()) if len(points) else 1,
        "seeds_most": int(points["seeds"].max()) if len(points) else 1,
        **test_row("pearson", pearson),
        **test_row("spearman", _correlation(cells, x, y, grid, ranks=True)),
        **independent_columns,
        **published_columns,
        "missing": pearson.missing,
    }


def _correlation(
    cells: pd.DataFrame, x: str, y: str, grid: Sequence[str] = (), *, ranks: bool = False
) -> Statistic:
    def estimate(part: pd.DataFrame) -> Statistic:
        return correlate(part[x], part[y], ranks=ranks, names=(x, y))

    points = cells.dropna(subset=[y])
    correlation = estimate(points)
    if not grid or correlation.interval is None:
        return correlation
    statistic = over_blocks(estimate, points, grid[0])
    if ranks or cells.duplicated(list(grid)).any():
        return statistic
    p_value = permutation_p(*(cells[name] for name in (x, y, *grid)))
    return replace(statistic, p_value=p_value, t=None, df=None)


def _definitions(
    trials: pd.DataFrame, request: Correlation, grid: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for definition, prefix in product(request.definitions, ("", "centred_")):
        name = prefix + definition
        if name not in trials or trials[name].isna().all():
            continue
        points = trials.dropna(subset=[name, request.y])
        cells = cell_means(points, (name, request.y), grid)
        r_seed = _within(points, name, request.y, grid) if len(points) > len(cells) else Statistic()
        pearson = _correlation(cells, name, request.y, grid)
        yield {"x": name, **test_row("pearson", pearson), **test_row("within", r_seed)}


def _within(points: pd.DataFrame, x: str, y: str, grid: Sequence[str]) -> Statistic:
    if not grid:
        return within_correlation(points, x, y)
    return over_blocks(lambda part: within_correlation(part, x, y), points, grid[0])


def _seed_lines(
    points: pd.DataFrame, request: Correlation, grid: Sequence[str], line: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    x, y = request.x, request.y
    between_cells = between_correlation(points, x, y, blocks=grid[0] if grid else "group")
    r, rho = (_correlation(points, x, y, ranks=ranks).value for ranks in (False, True))
    for kind, n, pearson, spearman in (
        (BETWEEN, line["n"], between_cells, None),
        (WITHIN, len(points), _within(points, x, y, grid), None),
        (SINGLE, len(points), Statistic(value=r, missing=NOT_INDEPENDENT), rho),
    ):
        yield {
            **{name: line[name] for name in ("x", "y", "seeds_least", "seeds_most")},
            "over": kind,
            "n": n,
            **test_row("pearson", pearson),
            "spearman": spearman,
            "missing": pearson.missing,
        }


def _partials(
    cells: pd.DataFrame, request: Correlation, grid: Sequence[str]
) -> Iterator[dict[str, Any]]:
    def partial(controls: pd.DataFrame) -> Statistic:
        def estimate(part: pd.DataFrame) -> Statistic:
            x, y = (part[name] for name in names)
            return partial_correlation(x, y, controls.loc[part.index], names=names)

        return over_blocks(estimate, cells, grid[0])

    names = (request.x, request.y)
    axes = [name for name in grid if cells[name].nunique() > 1]
    for settings in [[name] for name in axes] + [axes] * (len(axes) > 1):
        columns = cells[settings]
        numbers = columns.select_dtypes(include=["number", "bool"]).dropna()
        line = Statistic(missing="a straight line needs numeric settings")
        if numbers.shape == columns.shape:
            line = partial(columns)
        yield {
            "left_out": " ".join(settings),
            **test_row("levels", partial(pd.get_dummies(columns.astype(str), drop_first=True))),
            **test_row("line", line),
        }
