"""Fields of cells, coloured by their values and with a text each: heat maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from orchestrator.analysis import rows
from orchestrator.report.figures import COLOURS, new_panels
from orchestrator.report.hover import name_marks

if TYPE_CHECKING:
    import pandas as pd

CORNERS = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
"""Of a cell, around it."""
LETTER_IN = 0.085


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """What is drawn."""

    cells: pd.DataFrame
    """A row a cell: `row` and `column` (labels, in their order), `value` (None: hatched), `text`
    (in it), and if they apply `name` (under a pointer) and `trial_id`."""
    title: str = ""
    x: str = ""
    """Label of the columns."""
    y: str = ""
    """Label of the rows."""
    limits: tuple[float, float] | None = None
    """Values of the darkest and the lightest colour; None for the least and the greatest."""
    from_top: bool = False
    """Whether the first row is the top one, else the bottom one."""
    rotation: float = 0
    """Of the labels of the columns, degrees."""
    cell_in: tuple[float, float] = (0.62, 0.34)
    """Width and height of a cell, inches."""


def draw_heat_map(spec: HeatMap) -> Figure:
    """Draw the cells."""
    cells = list(rows(spec.cells.astype(object).where(spec.cells.notna(), None)))
    names = [
        list(dict.fromkeys(getattr(cell, side) for cell in cells)) for side in ("row", "column")
    ]
    down, across = names
    letters = max(len(part) for name in down for part in str(name).split("\n"))
    width_in, height_in = spec.cell_in
    figure, [[axes]] = new_panels(
        1,
        1,
        width_in=max(4.2, 0.6 + LETTER_IN * letters + width_in * len(across)),
        height_in=max(2.2, 1.2 + height_in * len(down)),
    )
    values = np.full((len(down), len(across)), np.nan)
    for cell in cells:
        if cell.value is not None:
            values[down.index(cell.row), across.index(cell.column)] = cell.value
    low, high = spec.limits or (np.nanmin(values), np.nanmax(values))
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(values),
        cmap=COLOURS,
        vmin=low,
        vmax=high if high > low else low + 1,
        edgecolors="white",
        linewidth=1,
    )
    axes.patch.set(facecolor="0.93", edgecolor="0.55", hatch="///", linewidth=0)
    places = [(across.index(cell.column), down.index(cell.row)) for cell in cells]
    for cell, (x, y) in zip(cells, places, strict=True):
        _write(axes, cell, x, y, mesh)
    alignment: dict[str, Any] = {"ha": "right"} if 0 < spec.rotation < 90 else {}
    axes.set_xticks(np.arange(len(across)) + 0.5, across, rotation=spec.rotation, **alignment)
    axes.set_yticks(np.arange(len(down)) + 0.5, down)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel=spec.x, ylabel=spec.y)
    axes.set_title(spec.title, fontsize=11)
    if spec.from_top:
        axes.invert_yaxis()
    name_marks(
        axes,
        [np.add(CORNERS, place) for place in places],
        [_name(cell) for cell in cells],
        [getattr(cell, "trial_id", None) or "" for cell in cells],
    )
    return figure


def _write(axes: Axes, cell: Any, x: int, y: int, mesh: Any) -> None:
    """Write the text of a cell."""
    look: dict[str, Any] = {"fontsize": 7.5}
    if cell.value is not None:
        # A cell is the same on a dark page, and so is its text.
        colour = np.asarray(mesh.to_rgba(cell.value))[:3]
        look = {"fontsize": 9, "color": _ink(colour), "gid": f"kept-{y}-{x}"}
    elif cell.text:
        look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.text(x + 0.5, y + 0.5, cell.text, ha="center", va="center", **look)


def _name(cell: Any) -> str:
    return getattr(cell, "name", None) or f"{cell.row}, {cell.column}: {cell.text or 'none'}"


def _ink(colour: NDArray[np.float64]) -> str:
    """Black or white, whichever has the higher contrast on it (WCAG 2, relative luminance)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"
