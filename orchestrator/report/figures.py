"""The figures of a report, drawn without a display.

Colours can be told apart by colour-blind readers and in grey print.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from orchestrator.report.svg import inline_svg
from trainables.trial_folder import write_file

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
GROUP_COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#0072b2")
"""Okabe and Ito's, which colour-blind readers tell apart."""
GROUP_LINES = ("-", "--", ":")


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure to be drawn."""

    name: str
    """File name without its ending."""
    caption: str
    draw: Callable[[], Figure] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class DrawnFigure:
    """One figure: inline SVG for the page, and the files beside it in formats to go on with."""

    name: str
    """File name without its ending."""
    caption: str
    svg: str
    files: tuple[Path, ...]


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


def new_panels(
    rows: int, columns: int, *, width_in: float, height_in: float, **sharing: Any
) -> tuple[Figure, NDArray[np.object_]]:
    """An empty figure of that size with rows x columns axes, whose margins are measured."""
    figure = Figure(figsize=(width_in, height_in), facecolor="white", layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **sharing)


def name_cells(axes: Axes, columns: Sequence[str], rows: Sequence[str], *, rotation: float = 0) -> None:
    """Name the columns and rows of a field of cells, of which the first is at 0 to 1, and take its frame away."""
    alignment: dict[str, Any] = {"ha": "right"} if 0 < rotation < 90 else {}
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=rotation, **alignment)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def save(drawing: Drawing, out: Path) -> DrawnFigure:
    """Draw the figure, write it as SVG, PNG and PDF into `out` and return it with its SVG made fit for a page.

    PNG and PDF take most of the time. Each holds the SHA-256 of the SVG that belongs to it, and stays where that is
    still the same.
    """
    svg, png, pdf = (out / f"{drawing.name}.{ending}" for ending in ("svg", "png", "pdf"))
    with mpl.rc_context(STYLE):
        figure = drawing.draw()
        document = _written(figure, "svg", metadata={"Date": None})
        mark = hashlib.sha256(document).hexdigest()
        if not _holds(pdf, mark):
            write_file(pdf, _written(figure, "pdf", metadata={"CreationDate": None, "Subject": f"SVG {mark}"}))
        if not _holds(png, mark):
            write_file(png, _written(figure, "png", dpi=PNG_DPI, metadata={"Source": f"SVG {mark}"}))
    write_file(svg, document)
    inline = inline_svg(document.decode(), prefix=drawing.name, label=drawing.caption)
    return DrawnFigure(name=drawing.name, caption=drawing.caption, svg=inline, files=(svg, png, pdf))


def check_figure(figure: Figure) -> None:
    """Raise what `save` would: some faults show in one of the formats alone."""
    with mpl.rc_context(STYLE):
        for form, options in (("svg", {}), ("pdf", {}), ("png", {"dpi": PNG_DPI})):
            _written(figure, form, **options)


def _written(figure: Figure, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, **options)
    return buffer.getvalue()


def _holds(path: Path, mark: str) -> bool:
    return path.exists() and mark.encode() in path.read_bytes()
