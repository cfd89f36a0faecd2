"""Figures of all trials of a study: the scatter, parallel coordinates and the grid map."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.store import OPEN
from orchestrator.view.figure import (
    COLOURS,
    SCALE,
    SYMBOLS,
    Figure,
    as_text,
    colour_at,
    empty,
    encoded,
    figure_of,
    label,
    round_of,
)
from orchestrator.view.parts import SHORT_ID
from orchestrator.view.table import StudyTable

MOST_SVG_POINTS = 2_000
"""Of more, WebGL draws them; a browser without it can show no more."""
ROOM_OF_NUMBERS = 70
"""Beside an axis, in pixels."""
SMALLEST, LARGEST = 5, 18
"""Diameters of points, in pixels."""


def scatter(
    table: StudyTable,
    axes: Mapping[str, str | None],
    logarithmic: Collection[str] = (),
    shown: Sequence[int] | None = None,
) -> Figure:
    """A point a trial that has both x and y, or a sentence where no trial has; `customdata` is the
    start of its id.

    `axes` names the columns of x, y, colour and size; `logarithmic` which of "x" and "y" are;
    `shown` the places of the trials that may have a point, all of them where it is None. A text
    stands on an axis where `StudyTable.levels` has it, whatever is shown."""
    x, y, colour, size = (axes[name] for name in ("x", "y", "colour", "size"))
    if x is None or y is None or not {x, y} <= table.columns.keys():
        return empty("No trial is done yet.")
    places = np.flatnonzero(_is_there(table, x) & _is_there(table, y)).tolist()
    if shown is not None:
        places = sorted({*places} & {*shown})
    by_webgl = len(places) > MOST_SVG_POINTS
    marker: dict[str, Any] = {"size": 6 if by_webgl else 8, "color": COLOURS[0]}
    if not by_webgl:
        marker["line"] = {"width": 1, "color": "#8a8f98"}
    base = {
        "type": "scattergl" if by_webgl else "scatter",
        "mode": "markers",
        "hovertemplate": f"<b>%{{text}}</b><br>{label(x)} %{{x:.5~g}}<br>{label(y)} %{{y:.5~g}}<extra></extra>",
    }
    groups = _groups(table, colour, places)
    diameters = (
        None
        if size is None
        else dict(zip(places, _diameters(table.numbers(size)[places]), strict=True))
    )
    traces = []
    for number, (name, members) in enumerate(groups.items()):
        look = dict(marker)
        if len(groups) > 1:
            look |= {"color": colour_at(number), "symbol": SYMBOLS[round_of(number) % len(SYMBOLS)]}
        elif colour in table.numeric and _has_several(values := table.numbers(colour)[members]):
            look |= {
                "color": encoded(values),
                "colorscale": SCALE,
                "colorbar": {"title": {"text": label(colour)}},
            }
        if diameters is not None:
            look["size"] = encoded([diameters[place] for place in members])
        traces.append(
            {**base, "name": as_text(name), **_points(table, x, y, members), "marker": look}
        )
    figure = figure_of(
        traces,
        x=label(x),
        y=label(y),
        y_type="log" if "y" in logarithmic else "-",
        dragmode="select",
        clickmode="event",
        uirevision=f"{x} {y} {sorted(logarithmic)}",
        showlegend=len(groups) > 1,
    )
    if "x" in logarithmic and x in table.numeric:
        figure["layout"]["xaxis"]["type"] = "log"
    for name, axis in ((x, "xaxis"), (y, "yaxis")):
        if name not in table.numeric:
            levels = [as_text(text) for text in table.levels(name)]
            figure["layout"][axis] |= {
                "type": "category",
                "categoryorder": "array",
                "categoryarray": levels,
            }
    if by_webgl and {x, y} <= set(
        table.numeric
    ):  # to make room for its numbers plotly would draw all points twice
        figure["layout"]["margin"]["l"] = ROOM_OF_NUMBERS
        for axis in ("xaxis", "yaxis"):
            figure["layout"][axis]["automargin"] = False
    return figure


def _groups(table: StudyTable, colour: str | None, places: Sequence[int]) -> dict[str, list[int]]:
    """The places by the texts that colour them; all of them where numbers do, or nothing."""
    if colour is None or colour in table.numeric:
        return {"": list(places)}
    groups: dict[str, list[int]] = {}
    for place in places:
        groups.setdefault(str(table.columns[colour][place]), []).append(place)
    return groups


def _points(table: StudyTable, x: str, y: str, places: Sequence[int]) -> dict[str, Any]:
    return {
        "x": _along(table, x, places),
        "y": _along(table, y, places),
        "text": [as_text(table.names[place]) for place in places],
        "customdata": [table.ids[place][:SHORT_ID] for place in places],
    }


def _has_several(values: NDArray[np.float64]) -> bool:
    """Whether a scale of colours says anything of them."""
    return len(np.unique(values[np.isfinite(values)])) > 1


def _is_there(table: StudyTable, name: str) -> NDArray[np.bool_]:
    """Whether a trial has a value in this column that has a place on an axis."""
    if name in table.numeric:
        return np.isfinite(table.numbers(name))
    return np.array([value is not None for value in table.columns[name]], dtype=bool)


def _along(table: StudyTable, name: str, places: Sequence[int]) -> Any:
    """A column along an axis: numbers, or texts as they are."""
    if name in table.numeric:
        return encoded(table.numbers(name)[places])
    return [as_text(str(table.columns[name][place])) for place in places]


def _diameters(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas grow in proportion from the least value to the greatest; the smallest where there is
    none."""
    low, high = (np.nanmin(values), np.nanmax(values)) if np.isfinite(values).any() else (0.0, 0.0)
    shares = np.nan_to_num((values - low) / (high - low)) if high > low else np.zeros(len(values))
    return np.sqrt(SMALLEST**2 + shares * (LARGEST**2 - SMALLEST**2))


def parallel(table: StudyTable, names: Sequence[str], colour: str) -> Figure:
    """Parallel coordinates of these numeric columns, a line a trial that has the colour's number;
    columns that some of them lack are left out."""
    shown = np.isfinite(table.numbers(colour))
    columns = {name: table.numbers(name)[shown] for name in names}
    complete = {name: values for name, values in columns.items() if np.isfinite(values).all()}
    if len(complete) < 2 or not shown.any():
        return empty("Too few numbers are in all trials to draw lines between them.")
    trace = {
        "type": "parcoords",
        "dimensions": [
            {"label": label(name), "values": encoded(values)} for name, values in complete.items()
        ],
        "line": {
            "color": encoded(table.numbers(colour)[shown]),
            "colorscale": SCALE,
            "showscale": True,
            "colorbar": {"title": {"text": label(colour)}},
        },
        "labelangle": -12,
    }
    return figure_of(
        [trace], margin={"l": 60, "r": 30, "t": 90, "b": 30}, uirevision=f"over {[*complete]}"
    )


def grid_map(table: StudyTable, row: str, column: str, metric: str) -> Figure:
    """The mean of a metric over the trials of each cell, by two settings. Trials that have not
    ended have their cells, too: the axes are the same when they end."""
    values = table.numbers(metric)
    has_place = _is_there(table, row) & _is_there(table, column)
    shown = np.flatnonzero(has_place & np.isfinite(values)).tolist()
    may_come = np.isin(table.ends["state"], OPEN)
    on_axes = np.flatnonzero(has_place & (np.isfinite(values) | may_come)).tolist()
    rows, columns = _levels(table, row, on_axes), _levels(table, column, on_axes)
    sums, counts = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for place in shown:
        cell = rows[_level(table, row, place)], columns[_level(table, column, place)]
        sums[cell] += values[place]
        counts[cell] += 1
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    trace = {
        "type": "heatmap",
        "x": [as_text(_typed(value)) for value in columns],
        "y": [as_text(_typed(value)) for value in rows],
        "z": encoded(means),
        "customdata": encoded(counts),
        "colorscale": SCALE,
        "colorbar": {"title": {"text": f"{label(metric)},<br>mean"}},
        "hovertemplate": f"{label(row)} %{{y}}, {label(column)} %{{x}}<br>mean %{{z:.5~g}} of %{{customdata}}"
        "<extra></extra>",
    }
    axes = f"{column} {trace['x']} {row} {trace['y']}"
    figure = figure_of([trace], x=label(column), y=label(row), uirevision=axes)
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis]["type"] = "category"
    return figure


def _levels(table: StudyTable, name: str, places: Sequence[int]) -> dict[Any, int]:
    """The different values of a setting in their order, with where they come in it."""
    values = {_level(table, name, place) for place in places}
    return {value: place for place, value in enumerate(sorted(values))}


def _level(table: StudyTable, name: str, place: int) -> Any:
    """A number, or the text of what is none, such as a list."""
    value = table.columns[name][place]
    return value if name in table.numeric else str(value)


def _typed(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
