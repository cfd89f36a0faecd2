"""Tooltips of a figure's marks: invisible <title> elements on top of its SVG, without a script.

PNG and PDF files have no tooltips.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

TARGET_PT = 9
"""Minimum width, in points, of the area in which the pointer shows a mark's tooltip."""
POINTS_PT = 72
AREA = ' pointer-events="fill"'


def name_marks(axes: Axes, marks: Iterable[ArrayLike], names: Sequence[str]) -> None:
    """Give each mark a tooltip.

    A mark is a point (x, y), or the (n, 2) points of a curve or, if closed, of an area.
    """
    points = [np.asarray(mark, dtype=float).reshape(-1, 2) for mark in marks]
    named = NamedMarks(list(zip(points, names, strict=True)))
    named.set_in_layout(False)
    axes.add_artist(named)


Mark = tuple[NDArray[np.float64], str]
"""Points in data coordinates, and their tooltip."""


class NamedMarks(Artist):
    """Invisible artist that stores the marks and tooltips of one axes."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        super().__init__()
        self.marks = marks

    def elements(self) -> Iterator[str]:
        """Yield an SVG element for each mark's visible part, positioned as in the last drawing."""
        assert self.axes is not None
        figure = self.axes.get_figure(root=True)
        assert figure is not None
        scale, box = POINTS_PT / figure.dpi, self.axes.bbox.padded(1)
        for points, name in self.marks:
            with np.errstate(
                invalid="ignore", divide="ignore"
            ):  # zero has no position on a logarithmic axis
                points_N2 = self.axes.transData.transform(points)
            points_N2 = points_N2[[box.contains(*point) for point in points_N2]]
            if len(points_N2):
                points_N2 = points_N2 * scale * (1, -1) + (0, POINTS_PT * figure.get_figheight())
                yield _element(points_N2, name)


def _element(points_N2: NDArray[np.float64], name: str) -> str:
    title = f"<title>{html.escape(name)}</title>"
    if len(points_N2) == 1:
        (x, y), r = points_N2[0], TARGET_PT / 2
        return f'<circle{AREA} cx="{x:.1f}" cy="{y:.1f}" r="{r}">{title}</circle>\n'
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points_N2)
    is_area = len(points_N2) > 2 and np.array_equal(points_N2[0], points_N2[-1])
    return f'<path{AREA * is_area} d="M{path}">{title}</path>\n'


def with_marks(document: bytes, figure: Figure) -> bytes:
    """Return the SVG document with the tooltips of its figure.

    Call it right after the figure is drawn: tooltips are placed as in the last drawing.
    """
    elements = "".join(
        element for named in figure.findobj(NamedMarks) for element in named.elements()
    )
    if not elements:
        return document
    look = f'class="marks" fill="none" stroke="none" stroke-width="{TARGET_PT}"'
    group = f'<g {look} pointer-events="stroke">\n{elements}</g>\n'
    return document.replace(b"</svg>", group.encode(errors="backslashreplace") + b"</svg>")
