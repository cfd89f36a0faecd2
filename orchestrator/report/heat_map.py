"""Heat maps: grids of cells, each with a colour for its value and a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.analysis import rows
from orchestrator.report.figures import COLOURS, Drawing, new_panels
from orchestrator.report.hover import name_marks

if TYPE_CHECKING:
    import pandas as pd

CORNERS = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
LETTER_IN = 0.085
DARK = 0.2465
"""Share of the colour scale, from its dark end, on which white text has the higher contrast (WCAG
2)."""


@dataclass(frozen=True, kw_only=True)
class HeatMap(Drawing):
    """A grid of cells."""

    cells: pd.DataFrame
    """One row per cell: `row` and `column` (labels, in order), `value` (None: hatched), `text`
    (inside), and optionally `name` (tooltip)."""
    title: str = ""
    """Title above the map. Without a title, the first row is at the top; with one, at the bottom.
    """
    x: str = ""
    y: str = ""
    limits: tuple[float, float] | None = None
    """Values of the darkest and the lightest colour (default: least and greatest value)."""
    tilted: bool = False
    cell_in: tuple[float, float] = (0.62, 0.34)

    def draw(self) -> Figure:
        """Return the figure."""
        cells = list(rows(self.cells.astype(object).where(self.cells.notna(), None)))
        down = list(dict.fromkeys(cell.row for cell in cells))
        across = list(dict.fromkeys(cell.column for cell in cells))
        letters = max(len(part) for name in down for part in name.split("\n"))
        width_in, height_in = self.cell_in
        figure, [axes] = new_panels(
            1,
            1,
            width_in=max(4.2, 0.6 + LETTER_IN * letters + width_in * len(across)),
            row_in=max(2.1, 1.1 + height_in * len(down)),
        )
        positions = [(across.index(cell.column), down.index(cell.row)) for cell in cells]
        values = np.full((len(down), len(across)), np.nan)
        for cell, (x, y) in zip(cells, positions, strict=True):
            values[y, x] = np.nan if cell.value is None else cell.value
        low, high = self.limits or (np.nanmin(values), np.nanmax(values))
        mesh = axes.pcolormesh(
            np.ma.masked_invalid(values),
            cmap=COLOURS,
            vmin=low,
            vmax=high if high > low else low + 1,
            edgecolors="white",
            linewidth=1,
        )
        axes.patch.set(facecolor="0.93", edgecolor="0.55", hatch="///", linewidth=0)
        for cell, position in zip(cells, positions, strict=True):
            _write(axes, cell, position, mesh)
        tilted: dict[str, Any] = {"rotation": 40, "ha": "right"} if self.tilted else {}
        axes.set_xticks(np.arange(len(across)) + 0.5, across, **tilted)
        axes.set_yticks(np.arange(len(down)) + 0.5, down)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set(xlabel=self.x, ylabel=self.y)
        axes.set_title(self.title, fontsize=11)
        if not self.title:  # read from the top, like a table
            axes.invert_yaxis()
        areas = [np.add(CORNERS, position) for position in positions]
        name_marks(axes, areas, [_name(cell) for cell in cells])
        return figure


def _write(axes: Axes, cell: Any, position: tuple[int, int], mesh: Any) -> None:
    x, y = position
    look: dict[str, Any] = {"fontsize": 7.5}
    if cell.value is not None:
        # A cell keeps its colour on a dark page, and so must its text.
        ink = "white" if mesh.norm(cell.value) < DARK else "black"
        look = {"fontsize": 9, "color": ink, "gid": f"kept-{y}-{x}"}
    elif cell.text:
        look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.text(x + 0.5, y + 0.5, cell.text, ha="center", va="center", **look)


def _name(cell: Any) -> str:
    return getattr(cell, "name", None) or f"{cell.row}, {cell.column}: {cell.text or 'none'}"
