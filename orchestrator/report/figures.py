"""Figures of a report, drawn without a display.

The colours are distinct for colour-blind readers and in grey print.
"""

from __future__ import annotations

import html
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from orchestrator.report.hover import with_marks
from orchestrator.report.palette import GROUP_COLOURS

PNG_DPI = 150
FORMS: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
"""File format -> metadata for `savefig`. None removes the date, so that equal figures have equal
files."""
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
"""Viridis without its darkest quarter, which is invisible on a dark page."""
OURS, PRINTED = "#1b4f8a", "#b35900"
PALE = "0.72"
LIMIT = "#b00020"
GROUP_LINES = ("-", "--", ":")
"""Line styles of groups. The next one is used each time the colours repeat."""
GROUP_MARKERS = "os^DvPX*<>"
TICKS = {
    2.0: (1.0, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0),
    5.0: (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0),
    50.0: (1.0, 2.0, 3.0, 5.0),
    1000.0: (1.0, 2.0, 5.0),
    math.inf: (1.0,),
}
"""Ticks of a logarithmic axis, as multiples of powers of ten. A key is the largest ratio of the
axis' ends for its ticks."""
LEGEND_LETTERS, LEGEND_HANDLE, LEGEND_LINE_IN = 12, 7, 0.18
"""Sizes in a legend: letters per inch, a mark's width in letters, a line's height in inches."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure as data; each subclass defines how it is drawn."""

    name: str
    """File name without its suffix."""
    caption: str

    def draw(self) -> Figure:
        """Return the drawn figure."""
        raise NotImplementedError


def new_panels(
    count: int, columns: int, *, width_in: float, row_in: float, **sharing: Any
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure of this width and its `count` axes, in rows of `columns` axes.

    Each row is `row_in` inches high.
    """
    rows = -(-count // columns)
    size_in = width_in, row_in * rows + 0.1
    figure = Figure(figsize=size_in, facecolor="white", layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, **sharing).flatten().tolist()
    for unused in panels[count:]:
        unused.set_visible(False)
    return figure, panels[:count]


def legend_above(figure: Figure) -> None:
    """Draw one legend above all axes, with each label once."""
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


def group_colour(index: int) -> str:
    """Return the colour of the group at this index; the colours repeat."""
    return GROUP_COLOURS[index % len(GROUP_COLOURS)]


def make_logarithmic(axes: Axes, name: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers as labels.

    Matplotlib's default labels are formulas, which these figures do not parse.
    """
    axes.set(**{f"{name}scale": "log"})
    axis = axes.xaxis if name == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    subs = next(subs for ratio, subs in TICKS.items() if high <= ratio * low)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def draw(drawing: Drawing, out: Path, *, pdf: bool = False) -> dict[str, bytes]:
    """Draw the figure and return its files by name: an SVG and, with `pdf`, a PDF and a PNG.

    PDF and PNG take most of the time. A PDF or PNG that exists in `out` is drawn again even without
    `pdf`.
    """
    files = {}
    with mpl.rc_context(STYLE):
        figure = drawing.draw()
        _lay_out(figure)
        for form, metadata in FORMS.items():
            name, buffer = f"{drawing.name}.{form}", io.BytesIO()
            if form == "svg" or pdf or (out / name).exists():
                dpi = PNG_DPI if form == "png" else "figure"
                figure.savefig(buffer, format=form, dpi=dpi, metadata=metadata)
                files[name] = buffer.getvalue()
    svg = f"{drawing.name}.svg"
    return files | {svg: with_marks(files[svg], figure)}


def _lay_out(figure: Figure) -> None:
    """Compute the margins once. With a layout engine, `savefig` would draw twice."""
    FigureCanvasSVG(figure)
    figure.set_dpi(72)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)


def inline_svg(document: str, drawing: Drawing) -> str:
    """Return the <svg> element of an SVG document, ready for HTML.

    The drawing's name precedes each id and reference, so that figures on a page do not clash. Paths
    keep two decimals (0.01 pt). Screen readers read the caption. Greys and dark colours become CSS
    variables, such as "var(--b8b8b8, #b8b8b8)", which the page's style can set.
    """
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{drawing.name}-\1"', svg)
    svg = re.sub(r'(url\(#|href="#)([^")]+)', rf"\g<1>{drawing.name}-\g<2>", svg)
    svg = re.sub(r'\bd="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
    svg = re.sub(r'(?<=: |=")#([0-9a-f]{6})\b', _named, svg)
    svg = svg.replace("xlink:href=", "href=")
    svg = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", svg)
    # Width in points, for the page's style: in a narrow window a figure shrinks while it is
    # readable.
    svg = re.sub(r'\swidth="([\d.]+)pt"\sheight="[\d.]+pt"', r' style="--points: \1"', svg, count=1)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(drawing.caption)}"', 1)


def _named(colour: re.Match[str]) -> str:
    digits = colour[1]
    is_grey = digits[:2] == digits[2:4] == digits[4:]
    return (
        f"var(--{digits}, #{digits})"
        if is_grey or colour[0] in (OURS, PRINTED, LIMIT)
        else colour[0]
    )
