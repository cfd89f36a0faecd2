"""Figures of a few trials, a line for each: learning curves and spectra."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.view.figure import Figure, add_line, as_text, encoded, figure_of, line_style
from trainables.trial_folder import EpochMetrics, perplexity

FEW_EPOCHS = 12
"""So many have a tick each."""
MOST_MARKED = 100
"""Epochs that have a marker each."""
MOST_POINTS = 1_000
"""Of a spectrum: more than a figure has pixels for."""


def learning_curves(curves: Mapping[str, Sequence[EpochMetrics]]) -> Figure:
    """Validation perplexity by epoch, a line a trial; a diamond where weights begin to be
    averaged."""
    traces = []
    for place, (name, epochs) in enumerate(curves.items()):
        curve = _curve(name, epochs, [epoch.valid_loss for epoch in epochs], place)
        traces += _with_switch(curve, _switch(epochs))
    last = max((len(epochs) for epochs in curves.values()), default=0)
    return _over_epochs(traces, "validation perplexity", last)


def trial_curve(epochs: Sequence[EpochMetrics]) -> Figure:
    """A trial's perplexities by epoch, and where it switches to averaged weights."""
    # The last is drawn over the others.
    lines = {
        "training": [e.train_loss for e in epochs],
        "validation": [e.valid_loss for e in epochs],
    }
    traces = [
        _curve(name, epochs, losses, 1 - place)
        for place, (name, losses) in enumerate(lines.items())
    ]
    figure = _over_epochs(traces, "perplexity", len(epochs))
    if (switch := _switch(epochs)) is not None:
        add_line(figure, "x", epochs[switch].epoch - 0.5, "averaged from here")
    return figure


def _curve(
    name: str, epochs: Sequence[EpochMetrics], losses: Sequence[float], place: int
) -> dict[str, Any]:
    """The perplexities of these losses in the style of this place, with a marker an epoch where
    there are few."""
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(epochs) <= MOST_MARKED else "lines",
        "name": as_text(name),
        "x": [epoch.epoch for epoch in epochs],
        "y": [perplexity(loss) for loss in losses],
        "line": line_style(place),
        "marker": {"size": 4},
    }


def _with_switch(curve: dict[str, Any], switch: int | None) -> list[dict[str, Any]]:
    """The curve with a diamond at the epoch of this index, which is a trace of its own where epochs
    have no markers."""
    if switch is None:
        return [curve]
    if "markers" in curve["mode"]:
        at_switch = [index == switch for index in range(len(curve["x"]))]
        marker = {
            "symbol": ["diamond" if at else "circle" for at in at_switch],
            "size": [10 if at else 4 for at in at_switch],
            "line": {"width": 0},
            "opacity": 1,
        }
        return [{**curve, "marker": marker}]
    point = {
        "mode": "markers",
        "x": [curve["x"][switch]],
        "y": [curve["y"][switch]],
        "showlegend": False,
    }
    marker = {"symbol": "diamond", "size": 10, "color": curve["line"]["color"]}
    group = {"legendgroup": f"{curve['name']}"}
    return [{**curve, **group}, {**curve, **group, **point, "marker": marker}]


def _switch(epochs: Sequence[EpochMetrics]) -> int | None:
    """The index of the first epoch with averaged weights."""
    return next((index for index, epoch in enumerate(epochs) if epoch.averaging), None)


def _over_epochs(traces: Sequence[Mapping[str, Any]], y: str, last: int) -> Figure:
    figure = figure_of(traces, x="epoch", y=y, y_type="log", showlegend=True)
    # Else plotly says 7 where it means 700.
    figure["layout"]["yaxis"] |= {"tickformat": "~g", "tickfont": {"size": 10}}
    if last <= FEW_EPOCHS:
        figure["layout"]["xaxis"]["dtick"] = 1
    return figure


def spectra(
    spectra: Mapping[str, NDArray[np.float64]], *, linear: bool, tolerance: float | None = None
) -> Figure:
    """Singular values, a line a trial; `tolerance` is that of the Press rank."""
    traces = []
    for place, (name, sigma) in enumerate(spectra.items()):
        index = _thinned(len(sigma))
        values = sigma[index] if linear else np.where(sigma[index] > 0, sigma[index], np.nan)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": as_text(name),
                "x": encoded(index + 1),
                "y": encoded(values),
                "line": line_style(place),
            }
        )
    figure = figure_of(
        traces,
        x="index",
        y="singular value",
        y_type="linear" if linear else "log",
        showlegend=len(spectra) > 1,
    )
    if tolerance is not None and tolerance > 0:
        add_line(
            figure,
            "y",
            tolerance if linear else math.log10(tolerance),
            "tolerance of the Press rank",
        )
    return figure


def _thinned(length: int) -> NDArray[np.int64]:
    """Indices that show a descending curve, dense at both ends."""
    if length <= MOST_POINTS:
        return np.arange(length)
    head = np.geomspace(1, length, MOST_POINTS // 2) - 1
    even = np.linspace(0, length - 1, MOST_POINTS // 2)
    return np.unique(np.concatenate([head, even]).astype(np.int64))
