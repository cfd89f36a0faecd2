"""Figures of the pages. The style sheet adapts their colours to dark pages, on screen only."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.io as pio
from numpy.typing import NDArray
from plotly.graph_objects import Figure
from plotly.graph_objs.layout import Template

from orchestrator.analysis import shown_indices
from orchestrator.report import GROUP_COLOURS, title
from orchestrator.view.trials import StudyTrials
from orchestrator.words import SHORT_ID
from trainables.trial_folder import Epoch

COLOURS = GROUP_COLOURS[:0:-1]
"""Group colours without black, which is invisible on a dark page."""
DASHES, SYMBOLS = ("solid", "dash", "dot", "dashdot"), ("circle", "diamond", "square", "cross")
"""Styles of lines and points. The next style is used each time the colours repeat."""
SCALE = px.colors.sequential.Viridis[2:]
SMALLEST_PX, USUAL_PX, LARGEST_PX = 5, 7, 18
"""Diameters of points."""
MOST_MARKED, FEW_EPOCHS = 100, 12
"""Up to `MOST_MARKED` epochs, curves have a marker per epoch. Up to `FEW_EPOCHS`, the axis has a
tick per epoch."""
WIDE_RANGE = 10
"""Curves whose largest value is more than this multiple of the smallest have a logarithmic axis."""
SPREAD = ("lowest", "highest", "seeds")
"""Columns of a mean that the pointer shows after its value."""
BAND_OPACITY = 0.3
AXIS = {"automargin": True, "exponentformat": "power"}
STYLE = {
    "xaxis": AXIS,
    "yaxis": AXIS,
    "margin": {"l": 50, "r": 15, "t": 32, "b": 40},
    "legend": {"orientation": "h", "y": -0.25, "x": 0},
    "font": {"family": "system-ui, sans-serif", "size": 12},
    "paper_bgcolor": "#ffffff",
    "plot_bgcolor": "#ffffff",
    "hoverlabel": {"align": "left"},
}
pio.templates["sweeps"] = Template(layout=STYLE)
pio.templates.default = "sweeps"
px.defaults.color_continuous_scale = SCALE
px.defaults.color_discrete_sequence = COLOURS
px.defaults.symbol_sequence = [symbol for symbol in SYMBOLS for _ in COLOURS]
px.defaults.line_dash_sequence = [dash for dash in DASHES for _ in COLOURS]


def empty_figure(sentence: str) -> Figure:
    """Return a figure with one sentence."""
    figure = Figure()
    figure.update_xaxes(visible=False).update_yaxes(visible=False)
    return figure.add_annotation(
        text=as_text(sentence), showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5
    )


def scatter(
    trials: StudyTrials,
    axes: Mapping[str, str | None],
    logarithmic: Collection[str] = (),
    shown: Sequence[str] | None = None,
) -> Figure:
    """Return a figure of the trials that have x and y, or a sentence if none has both.

    `axes` names the columns of x, y, colour and size; `logarithmic` may have "x" and "y". Only
    trials whose ids are in `shown` have a point (default: all). A point's `customdata` is the
    trial's short id.
    """
    x, y, colour, size = (axes[name] for name in ("x", "y", "colour", "size"))
    if x not in trials.frame or y not in trials.frame:
        return empty_figure("No trial is done yet.")
    points = trials.of(shown).dropna(subset=[x, y])
    if colour in trials.numbers and points[colour].nunique() < 2:
        colour = None
    kinds = colour if colour in trials.texts else None
    figure = px.scatter(
        _escaped(points).assign(area=_areas(points[size]) if size else None),
        x=x,
        y=y,
        color=colour,
        symbol=kinds,
        size="area" if size else None,
        size_max=LARGEST_PX,
        log_x="x" in logarithmic and x in trials.numbers,
        log_y="y" in logarithmic,
        hover_name="name",
        hover_data={size: True, "area": False} if size else None,
        custom_data=[points.index.str[:SHORT_ID]],
        labels={name: as_text(title(name)) for name in (x, y, colour, size) if name},
        category_orders={
            name: [*map(as_text, trials.frame[name].dropna().unique())]
            for name in (x, kinds)
            if name in trials.texts
        },
    )
    figure.update_layout(
        dragmode="select", clickmode="event", uirevision=f"{x} {y} {sorted(logarithmic)}"
    )
    if not size:
        figure.update_traces(marker_size=USUAL_PX)
    return figure.update_traces(marker_line={"width": 1, "color": "#8a8f98"})


def _areas(values: pd.Series[float]) -> pd.Series[float]:
    low, high = values.min(), values.max()
    shares = (values - low) / (high - low) if high > low else values * 0
    return SMALLEST_PX**2 + shares.fillna(0) * (LARGEST_PX**2 - SMALLEST_PX**2)


def learning_curves(
    trials: Mapping[str, Sequence[Epoch]], metric: str | None = None, *, related: bool = False
) -> Figure:
    """Return a figure of a metric by epoch, with a line per key of `trials`.

    If a key has epochs of several trials, the line is their mean at each epoch, with a band from
    the lowest to the highest. By default, the metric is the first that the trials report. A diamond
    marks the start of averaging. If `related`, there is one trial, and a line for each metric whose
    name ends in the same word, such as train_loss and valid_loss.
    """
    metrics = curve_metrics(trials)
    if not metrics:
        return empty_figure("No epoch has ended yet, or these trials do not train.")
    metric = metric if metric in metrics else metrics[0]
    y, kind = title(metric), metric.rpartition("_")[2]
    shown = [one for one in metrics if related and one.rpartition("_")[2] == kind] or [metric]
    rows = [
        (
            as_text(title(one) if related else name),
            epoch.epoch,
            numbers[one],
            one == metric and getattr(epoch, "averaging", False),
        )
        for name, epochs in trials.items()
        for epoch in epochs
        for numbers in [epoch.numbers]
        for one in shown
        if one in numbers
    ]
    points = pd.DataFrame(rows, columns=["line", "epoch", y, "averaged"])
    is_wide = points[y].max() > WIDE_RANGE * points[y].min() > 0
    lines = points.sort_values("epoch", kind="stable").groupby(["line", "epoch"], sort=False)
    points = lines.agg({y: ["mean", "min", "max", "size"], "averaged": "all"})
    points = points.set_axis([y, *SPREAD, "averaged"], axis="columns").reset_index()
    longest, has_bands = points["line"].value_counts().max(), bool(points["seeds"].max() > 1)
    figure = _lines(points, "epoch", y, longest <= MOST_MARKED, is_wide, SPREAD * has_bands)
    for line in figure.data * has_bands:
        band = points[points["line"] == line.name]
        figure.add_scatter(
            x=[*band["epoch"], *band["epoch"][::-1]],
            y=[*band["highest"], *band["lowest"][::-1]],
            mode="lines",
            line={"width": 0, "color": line.line.color},
            fill="toself",
            opacity=BAND_OPACITY,
            hoverinfo="skip",
            legendgroup=line.name,
            showlegend=False,
        )
    # By default plotly labels 700 as 7.
    figure.update_yaxes(tickformat="~g", tickfont_size=10)
    if longest <= FEW_EPOCHS:
        figure.update_xaxes(dtick=1)
    averaging = points[points["averaged"]].drop_duplicates("line")
    return figure.add_scatter(
        x=averaging["epoch"],
        y=averaging[y],
        mode="markers",
        marker={"symbol": "diamond", "size": 10, "color": "#8a8f98"},
        name="averaging starts",
        visible=len(averaging) > 0,
    )


def curve_metrics(trials: Mapping[str, Sequence[Epoch]]) -> list[str]:
    """Return the metrics that the trials' epochs have."""
    names = (name for epochs in trials.values() for epoch in epochs for name in epoch.numbers)
    return list(dict.fromkeys(names))


def spectra(
    trials: Mapping[str, NDArray[np.float64] | None], tolerance: float | None = None
) -> Figure:
    """Return a figure of singular values by index, with the Press rank's `tolerance`."""
    lines = [
        pd.DataFrame({"line": as_text(name), "index": index + 1, "singular value": sigma[index]})
        for name, sigma in trials.items()
        if sigma is not None
        for index in [shown_indices(len(sigma))]
    ]
    if not lines:
        return empty_figure("No trial has a spectrum yet.")
    figure = _lines(pd.concat(lines), "index", "singular value")
    if tolerance:
        figure.add_hline(
            tolerance,
            name="tolerance of the Press rank",
            line={"dash": "dash", "width": 1, "color": "#888888"},
            showlegend=True,
        )
    return figure


def _lines(
    points: pd.DataFrame,
    x: str,
    y: str,
    markers: bool = False,
    logarithmic: bool = True,
    hover: Sequence[str] = (),
) -> Figure:
    figure = px.line(
        points,
        x=x,
        y=y,
        log_y=logarithmic,
        color="line",
        line_dash="line",
        hover_data=hover,
        markers=markers,
        render_mode="svg",
    )
    return figure.update_layout(legend_title_text="", uirevision=y)


def _escaped(frame: pd.DataFrame) -> pd.DataFrame:
    texts = frame.select_dtypes(exclude="number")
    return frame.assign(**texts.apply(lambda column: column.map(as_text, na_action="ignore")))


def as_text(words: str) -> str:
    """Escape text, because plotly interprets some HTML."""
    return html.escape(words, quote=False)
