"""Line plots of trials as SVG text: a page a trial has no time for matplotlib, which gives its
ticks alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import NDArray

from orchestrator.report.prose import template

WIDTH, HEIGHT = 480, 290
LEFT, RIGHT, TOP, BOTTOM = 74, 470, 12, 242
"""Where the axes lie."""
FEWEST_TICKS = 3
NO_POINTS = np.empty((0, 2))


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis from the least to the greatest of its values, positive ones if it is logarithmic."""

    label: str
    values: NDArray[np.float64]
    logarithmic: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value shown."""
        low, high = float(self.values.min()), float(self.values.max())
        if low < high:
            return low, high
        return (low / 2, high * 2) if self.logarithmic else (low - 1, high + 1)

    def places(self, values: NDArray[np.float64], start: int, end: int) -> list[float]:
        """Return where the values lie on an axis between these places."""
        ends = np.array(self.ends)
        if self.logarithmic:
            values, ends = np.log(values), np.log(ends)
        places: list[float] = np.round(np.interp(values, ends, [start, end]), 1).tolist()
        return places

    def ticks(self, start: int, end: int) -> list[tuple[str, float]]:
        """Return round numbers and their places."""
        low, high = self.ends
        locators = [LogLocator(), LogLocator(subs=(1.0, 2.0, 5.0))] if self.logarithmic else []
        for locator in [*locators, MaxNLocator(6, integer=not self.logarithmic)]:
            ticks = np.asarray(locator.tick_values(low, high))
            ticks = ticks[(ticks >= low) & (ticks <= high)]
            if len(ticks) >= FEWEST_TICKS:
                break
        return [
            (f"{tick:g}", place)
            for tick, place in zip(ticks, self.places(ticks, start, end), strict=True)
        ]


Line = tuple[str, NDArray[np.float64]]
"""How a line is drawn, "first", "second" or "limit", and its points, (n, 2)."""


def plot(
    x: Axis,
    y: Axis,
    lines: Sequence[Line],
    *,
    label: str,
    points: NDArray[np.float64] = NO_POINTS,
    names: Sequence[str] = (),
) -> str:
    """Return the <svg> element, in the page's colours, with lines and points with a name each; a
    screen reader reads `label`."""

    def placed(points: NDArray[np.float64]) -> list[tuple[float, float]]:
        across, down = x.places(points[:, 0], LEFT, RIGHT), y.places(points[:, 1], BOTTOM, TOP)
        return list(zip(across, down, strict=True))

    return template("plot.html.j2").render(
        x=x,
        y=y,
        x_ticks=x.ticks(LEFT, RIGHT),
        y_ticks=y.ticks(BOTTOM, TOP),
        lines=[(kind, " ".join(map("%s,%s".__mod__, placed(line)))) for kind, line in lines],
        points=list(zip(placed(points), names, strict=True)),
        label=label,
        box=(LEFT, RIGHT, TOP, BOTTOM, WIDTH, HEIGHT),
    )
