"""The figures of a report, drawn without a display.

Colours can be told apart by colour-blind readers and in grey print.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from orchestrator.analysis.comparison import Window
from orchestrator.analysis.grid import Grid
from orchestrator.report import formats
from orchestrator.report.svg import inline_svg
from trainables.trial_folder.files import write_file

WIDTH_IN, HEIGHT_IN = 5.6, 4.2
PNG_DPI = 150
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sweep",
    "pdf.fonttype": 42,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,
    "path.simplify_threshold": 0.2,
}
COLOURS = "viridis"
INSIDE, OUTSIDE = "o", "^"
MOST_TICKS = 10


@dataclass(frozen=True, kw_only=True)
class DrawnFigure:
    """One figure: inline SVG for the page, and the files beside it in formats to go on with."""

    name: str
    """File name without its ending."""
    caption: str
    svg: str
    files: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class Points:
    """What a scatter plot shows: one point a trial."""

    x: Sequence[float]
    y: Sequence[float]
    colour: Sequence[float] | None
    """A value per point, or None for one colour."""
    x_title: str
    y_title: str
    colour_title: str = ""


def new_figure(
    *,
    width_in: float = WIDTH_IN,
    height_in: float = HEIGHT_IN,
    left_in: float = 0.75,
    top_in: float = 0.35,
    bottom_in: float = 0.55,
) -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes; margins are fixed, as measuring them costs more than drawing."""
    figure = Figure(figsize=(width_in, height_in), facecolor="white")
    left, bottom, top = left_in / width_in, bottom_in / height_in, 1 - top_in / height_in
    axes = figure.add_axes((left, bottom, 0.98 - left, top - bottom))
    return figure, axes


def save(figure: Figure, out: Path, *, name: str, caption: str) -> DrawnFigure:
    """Write the figure as SVG, PNG and PDF into `out` and return it with its SVG made fit for a page.

    PNG and PDF take most of the time. Each holds the SHA-256 of the SVG that belongs to it, and stays where that is
    still the same.
    """
    svg, png, pdf = (out / f"{name}.{ending}" for ending in ("svg", "png", "pdf"))
    with mpl.rc_context(STYLE):
        drawing = _drawn(figure, "svg", metadata={"Date": None})
        mark = hashlib.sha256(drawing).hexdigest()
        if not _holds(pdf, mark):
            write_file(pdf, _drawn(figure, "pdf", metadata={"CreationDate": None, "Subject": f"SVG {mark}"}))
        if not _holds(png, mark):
            write_file(png, _drawn(figure, "png", dpi=PNG_DPI, metadata={"Source": f"SVG {mark}"}))
    write_file(svg, drawing)
    inline = inline_svg(drawing.decode(), prefix=name, label=caption)
    return DrawnFigure(name=name, caption=caption, svg=inline, files=(svg, png, pdf))


def _drawn(figure: Figure, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, **options)
    return buffer.getvalue()


def _holds(path: Path, mark: str) -> bool:
    return path.exists() and mark.encode() in path.read_bytes()


def scatter(points: Points, *, window: Window | None) -> Figure:
    """Fig. 2 of the paper: x against y, a point a trial, circles where y is in the window, triangles elsewhere."""
    with mpl.rc_context(STYLE):
        figure, axes = new_figure()
        x, y = np.asarray(points.x, dtype=float), np.asarray(points.y, dtype=float)
        inside = np.array([window is None or value in window for value in y], dtype=bool)
        colour = np.asarray(points.colour, dtype=float) if points.colour is not None else np.zeros(len(x))
        norm = Normalize(colour.min(), colour.max()) if len(colour) else Normalize(0, 1)
        for chosen, marker in ((inside, INSIDE), (~inside, OUTSIDE)):
            axes.scatter(
                x[chosen], y[chosen], c=colour[chosen], cmap=COLOURS, norm=norm, marker=marker, s=34,
                edgecolors="black", linewidths=0.5,
            )  # fmt: skip
        if window is not None:
            axes.axhspan(window.low, window.high, color="0.92", zorder=0, linewidth=0)
            axes.legend(
                [
                    Line2D([], [], marker=marker, linestyle="none", color="0.75", markeredgecolor="black")
                    for marker in (INSIDE, OUTSIDE)
                ],
                ["inside the window", "outside"],
                loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderpad=0.1,
            )  # fmt: skip
        axes.set_xlabel(points.x_title)
        axes.set_ylabel(points.y_title)
        if points.colour is not None and len(colour):
            levels = np.unique(colour)
            ticks = levels if len(levels) <= MOST_TICKS else None
            bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=axes, ticks=ticks, pad=0.02)
            bar.set_label(points.colour_title)
        return figure


def heat_map(grid: Grid) -> Figure:
    """A metric over two config values, the number in each cell; cells without one are hatched and say their state."""
    with mpl.rc_context(STYLE):
        height_in = max(2.2, 1.2 + 0.34 * len(grid.rows))
        figure, axes = new_figure(width_in=max(4.2, 1.2 + 0.62 * len(grid.columns)), height_in=height_in)
        values = np.array([[np.nan if cell.value is None else cell.value for cell in row] for row in grid.cells])
        low, high = min(grid.values, default=0.0), max(grid.values, default=1.0)
        norm = Normalize(low, high if high > low else low + 1)
        cmap = mpl.colormaps[COLOURS]
        axes.pcolormesh(np.ma.masked_invalid(values), cmap=cmap, norm=norm, edgecolors="white", linewidth=1)
        for i, row in enumerate(grid.cells):
            for j, cell in enumerate(row):
                if cell.value is None:
                    _hatch(axes, i, j, cell.state)
                    continue
                ink = _ink(cmap, norm(cell.value))
                axes.text(j + 0.5, i + 0.5, formats.cell(grid.metric, cell.value), color=ink, **_CENTRED)
        for ticks, labels, values_of in (
            (axes.set_xticks, axes.set_xticklabels, grid.columns),
            (axes.set_yticks, axes.set_yticklabels, grid.rows),
        ):
            ticks(np.arange(len(values_of)) + 0.5)
            labels([formats.setting(value) for value in values_of])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_xlabel(formats.title(grid.column))
        axes.set_ylabel(formats.title(grid.row))
        axes.set_title(formats.capital(formats.title(grid.metric)), fontsize=11)
        return figure


_CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9}


def _hatch(axes: Axes, i: int, j: int, state: str) -> None:
    axes.add_patch(Rectangle((j, i), 1, 1, facecolor="0.93", edgecolor="0.55", hatch="///", linewidth=0))
    words = {"none": "", "done": "no value"}.get(state, state)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    if words:
        axes.text(j + 0.5, i + 0.5, words, color="black", **(_CENTRED | {"fontsize": 7.5}), bbox=box)


def _ink(cmap: Colormap, position: float) -> str:
    red, green, blue, _ = cmap(float(position))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"
