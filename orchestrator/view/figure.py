"""What figures are made of, as plotly takes them: plain dicts, as its own classes would check every
number again."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orchestrator.report import title

Figure = dict[str, Any]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's but black, which a dark page swallows, and yellow, which a light one does."""
DASHES, SYMBOLS = ("solid", "dash", "dot", "dashdot"), ("circle", "diamond", "square", "cross")
"""One for each round of the colours."""
SCALE = [
    [place / 4, colour]
    for place, colour in enumerate(("#3b528b", "#26828e", "#28ae80", "#84d44b", "#fde725"))
]
"""Viridis without its darkest quarter, which a dark page swallows."""


def figure_of(
    traces: Sequence[Mapping[str, Any]],
    *,
    x: str = "",
    y: str = "",
    y_type: str = "-",
    **layout: Any,
) -> Figure:
    """These traces with the titles of their axes; `layout` goes before what all figures have."""
    # The style sheet has the last word on colours, by the scheme of the page; a saved picture is as
    # it is here.
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
            # Of figures over the same axes this is the same: see `parts.graph_again`.
            "uirevision": f"{x} {y} {y_type}",
            **layout,
        },
    }


def empty(sentence: str) -> Figure:
    """A figure's place with a sentence in it."""
    figure = figure_of([])
    figure["layout"] |= {
        "xaxis": {"visible": False},
        "yaxis": {"visible": False},
        "annotations": [
            {
                "text": as_text(sentence),
                "showarrow": False,
                "xref": "paper",
                "yref": "paper",
                "x": 0.5,
                "y": 0.5,
            }
        ],
    }
    return figure


def add_line(figure: Figure, axis: str, value: float, text: str) -> None:
    """A dashed line across the figure, with what it marks. On a logarithmic axis plotly takes a
    text's place as the exponent, and a shape's as the value."""
    logarithmic = figure["layout"][f"{axis}axis"].get("type") == "log"
    at = 10**value if logarithmic else value
    ends = {"x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper"}
    text_at = {"x": value, "y": 1, "yref": "paper", "yanchor": "top", "xanchor": "left"}
    if axis == "y":
        ends = {"y0": at, "y1": at, "x0": 0, "x1": 1, "xref": "paper"}
        text_at = {"y": value, "x": 1, "xref": "paper", "xanchor": "right", "yanchor": "bottom"}
    figure["layout"]["shapes"] = [
        {"type": "line", **ends, "line": {"dash": "dash", "width": 1, "color": "#888888"}}
    ]
    figure["layout"]["annotations"] = [{"text": text, "showarrow": False, **text_at}]


def label(name: str) -> str:
    """What an axis says of the column of that name."""
    return as_text(title(name))


def as_text(words: str) -> str:
    """As plotly shows it, which knows some of HTML."""
    return html.escape(words, quote=False)


def colour_at(place: int) -> str:
    """That of the trace at this place among others."""
    return COLOURS[place % len(COLOURS)]


def round_of(place: int) -> int:
    """How often all colours were used before."""
    return place // len(COLOURS)


def line_style(place: int) -> dict[str, Any]:
    """That of the trace at this place: of twenty-four no two look the same."""
    return {"color": colour_at(place), "width": 1.8, "dash": DASHES[round_of(place) % len(DASHES)]}


def encoded(values: ArrayLike) -> dict[str, str]:
    """An array as plotly's page reads it without parsing a number."""
    array = np.ascontiguousarray(values, dtype="<f8")
    shape = {"shape": ",".join(map(str, array.shape))} if array.ndim > 1 else {}
    return {"dtype": "f8", "bdata": b64encode(array.tobytes()).decode(), **shape}
