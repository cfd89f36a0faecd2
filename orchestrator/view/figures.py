"""Figures as plotly takes them, as plain dicts: its own classes would check every number again."""

from __future__ import annotations

import html
import math
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orchestrator.report import title
from orchestrator.view.table import StudyTable
from trainables.trial_folder import EpochMetrics, perplexity

Figure = dict[str, Any]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's but black, which a dark page swallows, and yellow, which a light one does."""
DASHES, SYMBOLS = ("solid", "dash", "dot", "dashdot"), ("circle", "diamond", "square", "cross")
"""One for each round of the colours."""
SCALE = [[place / 4, colour] for place, colour in enumerate(("#3b528b", "#26828e", "#28ae80", "#84d44b", "#fde725"))]
"""Viridis without its darkest quarter, which a dark page swallows."""
MOST_SVG_POINTS = 2_000
"""Of more, WebGL draws them; a browser without it can show no more."""
FEW_EPOCHS = 12
"""So many have a tick each."""
MOST_MARKED = 100
"""Epochs that have a marker each."""
MOST_POINTS = 1_000
"""Of a spectrum: more than a figure has pixels for."""
SMALLEST, LARGEST = 5, 18
"""Diameters of points, in pixels."""


def scatter(table: StudyTable, axes: Mapping[str, str | None], logarithmic: Collection[str] = ()) -> Figure:
    """A point a trial that has both x and y; `customdata` is its id.

    `axes` names the columns of x, y, colour and size; `logarithmic` which of "x" and "y" are.
    """
    x, y, colour, size = (axes[name] for name in ("x", "y", "colour", "size"))
    assert x is not None and y is not None
    places = [place for place in range(len(table.ids)) if _is_shown(table.columns[x][place], table.columns[y][place])]
    by_webgl = len(places) > MOST_SVG_POINTS
    marker: dict[str, Any] = {"size": 6 if by_webgl else 8, "color": COLOURS[0]}
    if not by_webgl:
        marker["line"] = {"width": 1, "color": "#8a8f98"}
    base = {
        "type": "scattergl" if by_webgl else "scatter",
        "mode": "markers",
        "hovertemplate": f"<b>%{{text}}</b><br>{_label(x)} %{{x:.5~g}}<br>{_label(y)} %{{y:.5~g}}<extra></extra>",
    }
    parts: dict[str, list[int]] = {"": places}
    if colour is not None and colour not in table.numeric:
        parts = {}
        for place in places:
            parts.setdefault(str(table.columns[colour][place]), []).append(place)
    diameters = None if size is None else dict(zip(places, _diameters(table.numbers(size)[places]), strict=True))
    traces = []
    for number, (name, members) in enumerate(parts.items()):
        look = dict(marker)
        if len(parts) > 1:
            look |= {"color": _colour(number), "symbol": SYMBOLS[_round(number) % len(SYMBOLS)]}
        elif colour is not None and colour in table.numeric:
            values, bar = _encoded(table.numbers(colour)[members]), {"title": {"text": _label(colour)}}
            look |= {"color": values, "colorscale": SCALE, "colorbar": bar}
        if diameters is not None:
            look["size"] = _encoded([diameters[place] for place in members])
        traces.append(
            {
                **base,
                "name": _text(name),
                "x": _along(table, x, members),
                "y": _along(table, y, members),
                "text": [_text(table.names[place]) for place in members],
                "customdata": [table.ids[place] for place in members],
                "marker": look,
            }
        )
    figure = _figure(
        traces,
        x=_label(x),
        y=_label(y),
        y_type="log" if "y" in logarithmic else "-",
        dragmode="select",
        clickmode="event",
        uirevision=f"{x} {y} {sorted(logarithmic)}",
        showlegend=len(parts) > 1,
    )
    if "x" in logarithmic and x in table.numeric:
        figure["layout"]["xaxis"]["type"] = "log"
    return figure


def _is_shown(*values: Any) -> bool:
    return all(value is not None and not (isinstance(value, float) and not math.isfinite(value)) for value in values)


def _along(table: StudyTable, name: str, places: Sequence[int]) -> Any:
    """A column along an axis: numbers, or texts as they are."""
    if name in table.numeric:
        return _encoded(table.numbers(name)[places])
    return [_text(str(table.columns[name][place])) for place in places]


def _diameters(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas grow in proportion from the least value to the greatest; the smallest where there is none."""
    low, high = (np.nanmin(values), np.nanmax(values)) if np.isfinite(values).any() else (0.0, 0.0)
    shares = np.nan_to_num((values - low) / (high - low)) if high > low else np.zeros(len(values))
    return np.sqrt(SMALLEST**2 + shares * (LARGEST**2 - SMALLEST**2))


def parallel(table: StudyTable, names: Sequence[str], colour: str) -> Figure:
    """Parallel coordinates of these numeric columns, a line a trial that has the colour's number; columns that some of
    them lack are left out."""
    shown = np.isfinite(table.numbers(colour))
    columns = {name: table.numbers(name)[shown] for name in names}
    complete = {name: values for name, values in columns.items() if np.isfinite(values).all()}
    if len(complete) < 2 or not shown.any():
        return empty("Too few numbers are in all trials to draw lines between them.")
    trace = {
        "type": "parcoords",
        "dimensions": [{"label": _label(name), "values": _encoded(values)} for name, values in complete.items()],
        "line": {
            "color": _encoded(table.numbers(colour)[shown]),
            "colorscale": SCALE,
            "showscale": True,
            "colorbar": {"title": {"text": _label(colour)}},
        },
        "labelangle": -12,
    }
    return _figure([trace], margin={"l": 60, "r": 30, "t": 90, "b": 30})


def learning_curves(curves: Mapping[str, Sequence[EpochMetrics]]) -> Figure:
    """Validation perplexity by epoch, a line a trial; a diamond where weights begin to be averaged."""
    traces = []
    for place, (name, epochs) in enumerate(curves.items()):
        switch = next((epoch.epoch for epoch in epochs if epoch.averaging), None)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": _text(name),
                "x": [epoch.epoch for epoch in epochs],
                "y": [epoch.valid_perplexity for epoch in epochs],
                "line": _line(place),
                "marker": {
                    "line": {"width": 0},
                    "opacity": 1,
                    "symbol": ["diamond" if epoch.epoch == switch else "circle" for epoch in epochs],
                    "size": [10 if epoch.epoch == switch else 3 for epoch in epochs],
                },
            }
        )
    last = max((len(epochs) for epochs in curves.values()), default=0)
    return _over_epochs(traces, "validation perplexity", last)


def trial_curve(epochs: Sequence[EpochMetrics]) -> Figure:
    """A trial's perplexities by epoch, and where it switches to averaged weights."""
    # The last is drawn over the others.
    lines = {"training": [e.train_loss for e in epochs], "validation": [e.valid_loss for e in epochs]}
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers" if len(epochs) <= MOST_MARKED else "lines",
            "name": name,
            "x": [epoch.epoch for epoch in epochs],
            "y": [perplexity(loss) for loss in losses],
            "line": _line(1 - place),
            "marker": {"size": 4},
        }
        for place, (name, losses) in enumerate(lines.items())
    ]
    figure = _over_epochs(traces, "perplexity", len(epochs))
    switch = next((epoch.epoch for epoch in epochs if epoch.averaging), None)
    if switch is not None:
        _add_line(figure, "x", switch - 0.5, "averaged from here")
    return figure


def _over_epochs(traces: Sequence[Mapping[str, Any]], y: str, last: int) -> Figure:
    figure = _figure(traces, x="epoch", y=y, y_type="log", showlegend=True)
    if last <= FEW_EPOCHS:
        figure["layout"]["xaxis"]["dtick"] = 1
    return figure


def spectra(spectra: Mapping[str, NDArray[np.float64]], *, linear: bool, tolerance: float | None = None) -> Figure:
    """Singular values, a line a trial; `tolerance` is that of the Press rank."""
    traces = []
    for place, (name, sigma) in enumerate(spectra.items()):
        index = _thinned(len(sigma))
        values = sigma[index] if linear else np.where(sigma[index] > 0, sigma[index], np.nan)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": _text(name),
                "x": _encoded(index + 1),
                "y": _encoded(values),
                "line": _line(place),
            }
        )
    figure = _figure(
        traces, x="index", y="singular value", y_type="linear" if linear else "log", showlegend=len(spectra) > 1
    )
    if tolerance is not None and tolerance > 0:
        _add_line(figure, "y", tolerance if linear else math.log10(tolerance), "tolerance of the Press rank")
    return figure


def _thinned(length: int) -> NDArray[np.int64]:
    """Indices that show a descending curve, dense at both ends."""
    if length <= MOST_POINTS:
        return np.arange(length)
    head = np.geomspace(1, length, MOST_POINTS // 2) - 1
    even = np.linspace(0, length - 1, MOST_POINTS // 2)
    return np.unique(np.concatenate([head, even]).astype(np.int64))


def grid_map(table: StudyTable, row: str, column: str, metric: str) -> Figure:
    """The mean of a metric over the trials of each cell, by two settings."""
    values = table.numbers(metric)
    shown = [
        place
        for place in map(int, np.flatnonzero(np.isfinite(values)))
        if None not in (table.columns[row][place], table.columns[column][place])
    ]
    rows, columns = _levels(table, row, shown), _levels(table, column, shown)
    sums, counts = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for place in shown:
        cell = rows[table.columns[row][place]], columns[table.columns[column][place]]
        sums[cell] += values[place]
        counts[cell] += 1
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    trace = {
        "type": "heatmap",
        "x": [_text(_typed(value)) for value in columns],
        "y": [_text(_typed(value)) for value in rows],
        "z": _encoded(means),
        "customdata": _encoded(counts),
        "colorscale": SCALE,
        "colorbar": {"title": {"text": f"{_label(metric)},<br>mean"}},
        "hovertemplate": f"{_label(row)} %{{y}}, {_label(column)} %{{x}}<br>mean %{{z:.5~g}} of %{{customdata}}"
        "<extra></extra>",
    }
    figure = _figure([trace], x=_label(column), y=_label(row))
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis]["type"] = "category"
    return figure


def _levels(table: StudyTable, name: str, places: Sequence[int]) -> dict[Any, int]:
    """The different values of a setting in their order, with where they come in it."""
    values = {table.columns[name][place] for place in places}
    ordered = sorted(values) if name in table.numeric else sorted(values, key=str)
    return {value: place for place, value in enumerate(ordered)}


def _typed(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def empty(sentence: str) -> Figure:
    """A figure's place with a sentence in it."""
    figure = _figure([])
    figure["layout"] |= {
        "xaxis": {"visible": False},
        "yaxis": {"visible": False},
        "annotations": [
            {"text": _text(sentence), "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
        ],
    }
    return figure


def _figure(
    traces: Sequence[Mapping[str, Any]], *, x: str = "", y: str = "", y_type: str = "-", **layout: Any
) -> Figure:
    # The style sheet has the last word on colours, by the scheme of the page; a saved picture is as it is here.
    return {
        "data": list(traces),
        "layout": {
            "xaxis": {"title": {"text": x, "standoff": 12}, "automargin": True},
            "yaxis": {
                "title": {"text": y, "standoff": 8},
                "type": y_type,
                "automargin": True,
                "exponentformat": "power",
            },
            "margin": {"l": 50, "r": 15, "t": 32, "b": 40},
            "legend": {"orientation": "h", "y": -0.25, "x": 0},
            "font": {"family": "system-ui, sans-serif", "size": 12},
            "paper_bgcolor": "#ffffff",
            "plot_bgcolor": "#ffffff",
            "hoverlabel": {"align": "left"},
            **layout,
        },
    }


def _add_line(figure: Figure, axis: str, value: float, text: str) -> None:
    """A dashed line across the figure, with what it marks. On a logarithmic axis plotly takes a text's place as the
    exponent, and a shape's as the value."""
    logarithmic = figure["layout"][f"{axis}axis"].get("type") == "log"
    at = 10**value if logarithmic else value
    ends = {"x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper"}
    text_at = {"x": value, "y": 1, "yref": "paper", "yanchor": "top", "xanchor": "left"}
    if axis == "y":
        ends = {"y0": at, "y1": at, "x0": 0, "x1": 1, "xref": "paper"}
        text_at = {"y": value, "x": 1, "xref": "paper", "xanchor": "right", "yanchor": "bottom"}
    figure["layout"]["shapes"] = [{"type": "line", **ends, "line": {"dash": "dash", "width": 1, "color": "#888888"}}]
    figure["layout"]["annotations"] = [{"text": text, "showarrow": False, **text_at}]


def _label(name: str) -> str:
    return _text(title(name))


def _text(words: str) -> str:
    """As plotly shows it, which knows some of HTML."""
    return html.escape(words, quote=False)


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _round(place: int) -> int:
    """How often all colours were used before."""
    return place // len(COLOURS)


def _line(place: int) -> dict[str, Any]:
    return {"color": _colour(place), "width": 1.8, "dash": DASHES[_round(place) % len(DASHES)]}


def _encoded(values: ArrayLike) -> dict[str, str]:
    """An array as plotly's page reads it without parsing a number."""
    array = np.ascontiguousarray(values, dtype="<f8")
    shape = {"shape": ",".join(map(str, array.shape))} if array.ndim > 1 else {}
    return {"dtype": "f8", "bdata": b64encode(array.tobytes()).decode(), **shape}
