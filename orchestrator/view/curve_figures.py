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
    """Validation perplexity by epoch, a line a trial; a diamond where weights begin to be averaged."""
    traces = []
    for place, (name, epochs) in enumerate(curves.items()):
        switch = next((epoch.epoch for epoch in epochs if epoch.averaging), None)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": as_text(name),
                "x": [epoch.epoch for epoch in epochs],
                "y": [epoch.valid_perplexity for epoch in epochs],
                "line": line_style(place),
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
            "line": line_style(1 - place),
            "marker": {"size": 4},
        }
        for place, (name, losses) in enumerate(lines.items())
    ]
    figure = _over_epochs(traces, "perplexity", len(epochs))
    switch = next((epoch.epoch for epoch in epochs if epoch.averaging), None)
    if switch is not None:
        add_line(figure, "x", switch - 0.5, "averaged from here")
    return figure


def _over_epochs(traces: Sequence[Mapping[str, Any]], y: str, last: int) -> Figure:
    figure = figure_of(traces, x="epoch", y=y, y_type="log", showlegend=True)
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
                "name": as_text(name),
                "x": encoded(index + 1),
                "y": encoded(values),
                "line": line_style(place),
            }
        )
    figure = figure_of(
        traces, x="index", y="singular value", y_type="linear" if linear else "log", showlegend=len(spectra) > 1
    )
    if tolerance is not None and tolerance > 0:
        add_line(figure, "y", tolerance if linear else math.log10(tolerance), "tolerance of the Press rank")
    return figure


def _thinned(length: int) -> NDArray[np.int64]:
    """Indices that show a descending curve, dense at both ends."""
    if length <= MOST_POINTS:
        return np.arange(length)
    head = np.geomspace(1, length, MOST_POINTS // 2) - 1
    even = np.linspace(0, length - 1, MOST_POINTS // 2)
    return np.unique(np.concatenate([head, even]).astype(np.int64))
