"""The figures of a report, drawn without a display.

Colours can be told apart by colour-blind readers and in grey print.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from orchestrator.report.hover import linked, with_marks
from orchestrator.report.palette import GROUP_COLOURS

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
COLOURS = LinearSegmentedColormap.from_list(
    "viridis but its darkest", mpl.colormaps["viridis"](np.linspace(0.25, 1, 256))
)
"""Viridis without its darkest quarter, which a dark page swallows."""
OURS, PRINTED = ("#1b4f8a", "o", "-"), ("#b35900", "^", "--")
"""Colour, marker and line of our values and of published ones."""
PALE = "0.72"
"""Of single trials behind their means."""
LIMIT = "#b00020"
"""Of lines that mark a limit."""
GROUP_LINES = ("-", "--", ":")
GROUP_MARKERS = "os^DvPX*<>"
LEGEND_LETTERS, LEGEND_HANDLE, LEGEND_LINE_IN = 12, 7, 0.18
"""Letters in an inch; width of a mark in letters; height of a line."""
LAYOUT_TABLES = ("GDEF", "GPOS", "GSUB")
"""Of a font, for whoever sets text in it."""
ABOVE: dict[str, Any] = {
    "loc": "lower left",
    "bbox_to_anchor": (0, 1),
    "ncols": 2,
    "frameon": False,
    "borderpad": 0.1,
}
"""Where a legend lies that covers no point."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure to be drawn."""

    name: str
    """File name without its ending."""
    caption: str
    draw: Callable[[], Figure] = field(repr=False)


def new_figure(
    *,
    width_in: float = WIDTH_IN,
    height_in: float = HEIGHT_IN,
    left_in: float = 0.75,
    right_in: float = 0.11,
    top_in: float = 0.35,
    bottom_in: float = 0.55,
) -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes; margins are fixed, as measuring them costs more than
    drawing."""
    figure = Figure(figsize=(width_in, height_in), facecolor="white")
    size = (width_in - left_in - right_in) / width_in, (height_in - bottom_in - top_in) / height_in
    axes = figure.add_axes((left_in / width_in, bottom_in / height_in, *size))
    return figure, axes


def new_panels(
    rows: int, columns: int, *, width_in: float, height_in: float, **sharing: Any
) -> tuple[Figure, list[list[Axes]]]:
    """An empty figure of that size with rows x columns axes, whose margins are measured."""
    figure = Figure(figsize=(width_in, height_in), facecolor="white", layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **sharing).tolist()


def legend_above(figure: Figure) -> None:
    """Put one legend of all axes above them, each label once."""
    named: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    letters = LEGEND_LETTERS * figure.get_figwidth()
    columns = max(1, int(letters // (LEGEND_HANDLE + max(map(len, named), default=0))))
    lines = -(-len(named) // columns)
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE_IN * lines)
    figure.legend(
        named.values(), named, loc="outside upper center", ncols=columns, frameon=False, fontsize=9
    )


def group_colour(place: int) -> str:
    """Of the group at this place among those of a figure; after the last colour comes the first one
    again."""
    return GROUP_COLOURS[place % len(GROUP_COLOURS)]


def group_line(place: int) -> str:
    """Another line for each round of the colours."""
    return GROUP_LINES[place // len(GROUP_COLOURS) % len(GROUP_LINES)]


def make_logarithmic(axes: Axes, name: Literal["x", "y"]) -> Axis:
    """Make the axis logarithmic, its labels as one types numbers: formulas stay unparsed in these
    figures."""
    axes.set(**{f"{name}scale": "log"})
    axis = axes.xaxis if name == "x" else axes.yaxis
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
    return axis


def draw(drawing: Drawing, out: Path) -> dict[str, bytes]:
    """Draw the figure: its files by name, as SVG, and as PNG and PDF where `out` does not hold
    these already.

    PNG and PDF take most of the time. Each holds the SHA-256 of the SVG that belongs to it.
    """
    svg, png, pdf = (f"{drawing.name}.{form}" for form in ("svg", "png", "pdf"))
    with mpl.rc_context(STYLE):
        figure = drawing.draw()
        files = {svg: with_marks(_written(figure, "svg", metadata={"Date": None}), figure)}
        figure.set_layout_engine(
            "none"
        )  # its margins are measured by now, and to measure takes longer than to draw
        mark = hashlib.sha256(files[svg]).hexdigest()
        if not _holds(out / pdf, mark):
            files[pdf] = _written(
                figure, "pdf", metadata={"CreationDate": None, "Subject": f"SVG {mark}"}
            )
        if not _holds(out / png, mark):
            files[png] = _written(figure, "png", dpi=PNG_DPI, metadata={"Source": f"SVG {mark}"})
    return files


def draw_as(drawing: Drawing, form: str) -> bytes:
    """The figure as svg, png or pdf, by itself."""
    with mpl.rc_context(STYLE):
        figure = drawing.draw()
        if form == "svg":
            return with_marks(_written(figure, "svg", metadata={"Date": None}), figure)
        return _written(
            figure,
            form,
            **({"dpi": PNG_DPI} if form == "png" else {"metadata": {"CreationDate": None}}),
        )


def inline_svg(document: str, drawing: Drawing) -> str:
    """The <svg> element of an SVG `document`, ready for HTML.

    Every id and every reference to one starts with the drawing's name, so that two figures on a
    page never share a clip path or marker. Paths keep two decimals, a hundredth of a point. A
    screen reader reads the caption. Greys and the colours that are too dark for a dark page are
    named, "var(--b8b8b8, #b8b8b8)", so that the page's style can have others in their places. The
    XML prologue and the metadata go."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{drawing.name}-\1"', svg)
    svg = re.sub(r'(url\(#|href="#)([^")]+)', rf"\g<1>{drawing.name}-\g<2>", svg)
    svg = re.sub(r'\bd="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
    svg = re.sub(r'(?<=: |=")#([0-9a-f]{6})\b', _named, svg)
    svg = svg.replace("xlink:href=", "href=")
    svg = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", svg)
    # How wide it is in points, for the page's style: in a narrow window a figure shrinks as long as
    # it can be read.
    svg = re.sub(
        r'\swidth="([\d.]+)pt"',
        r' style="--points: \1"',
        re.sub(r'\sheight="[\d.]+pt"', "", svg, count=1),
        count=1,
    )
    return linked(svg).replace(
        "<svg", f'<svg role="img" aria-label="{html.escape(drawing.caption)}"', 1
    )


def _named(colour: re.Match[str]) -> str:
    digits = colour[1]
    is_grey = digits[:2] == digits[2:4] == digits[4:]
    return (
        f"var(--{digits}, #{digits})"
        if is_grey or colour[0] in (OURS[0], PRINTED[0], LIMIT)
        else colour[0]
    )


def _written(figure: Figure, form: str, **options: Any) -> bytes:
    if form == "pdf":
        _embed_no_layout_tables()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, **options)
    return buffer.getvalue()


def _embed_no_layout_tables() -> None:
    """In a PDF all glyphs have their places already, and to cut a font's tables for that down to a
    figure's few glyphs takes longer than to draw it."""
    from fontTools import subset  # a tenth of a second, for PDF alone

    dropped = subset.Options._drop_tables_default
    dropped += [table for table in LAYOUT_TABLES if table not in dropped]


def _holds(path: Path, mark: str) -> bool:
    with contextlib.suppress(OSError):  # where it cannot be read, writing it will say why
        return mark.encode() in path.read_bytes()
    return False
