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


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What an axis shows."""

    label: str
    low: float
    high: float
    logarithmic: bool = False
    whole: bool = False
    """Whether it is labelled with whole numbers alone."""

    def share(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far along the axis they lie, 0 to 1."""
        if self.logarithmic:
            return np.asarray(np.log(values / self.low) / np.log(self.high / self.low))
        return np.asarray((values - self.low) / (self.high - self.low))

    def ticks(self) -> NDArray[np.float64]:
        """Round numbers, a few."""
        locators = [LogLocator(), LogLocator(subs=(1.0, 2.0, 5.0))] if self.logarithmic else []
        for locator in [*locators, MaxNLocator(6, integer=self.whole)]:
            values = np.asarray(locator.tick_values(self.low, self.high))
            values = values[(values >= self.low) & (values <= self.high)]
            if len(values) >= FEWEST_TICKS:
                break
        return values


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A line, or points with a name each."""

    points: NDArray[np.float64]
    """(n, 2)."""
    names: Sequence[str] = ()
    kind: str = "first"
    """ "first", "second" or "limit": how it is drawn."""


def spanned(
    label: str, values: NDArray[np.float64], *, logarithmic: bool = False, whole: bool = False
) -> Axis:
    """The axis that shows all of them, positive ones where it is logarithmic."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = (low / 2, high * 2) if logarithmic else (low - 1, high + 1)
    return Axis(label=label, low=low, high=high, logarithmic=logarithmic, whole=whole)


def plot(x: Axis, y: Axis, curves: Sequence[Curve], *, label: str) -> str:
    """The <svg> element, in the page's colours; a screen reader reads `label`."""
    places = [
        list(
            zip(
                _along(x, curve.points[:, 0], LEFT, RIGHT),
                _along(y, curve.points[:, 1], BOTTOM, TOP),
                strict=True,
            )
        )
        for curve in curves
    ]
    drawn = list(zip(curves, places, strict=True))
    return template("plot.html.j2").render(
        x=x,
        y=y,
        x_ticks=_labelled(x, LEFT, RIGHT),
        y_ticks=_labelled(y, BOTTOM, TOP),
        lines=[
            (curve.kind, " ".join(map("%s,%s".__mod__, line)))
            for curve, line in drawn
            if not curve.names
        ],
        points=[
            named
            for curve, line in drawn
            for named in zip(line, curve.names, strict=bool(curve.names))
        ],
        label=label,
        box=(LEFT, RIGHT, TOP, BOTTOM, WIDTH, HEIGHT),
    )


def _along(axis: Axis, values: NDArray[np.float64], start: int, end: int) -> list[float]:
    places: list[float] = np.round(start + (end - start) * axis.share(values), 1).tolist()
    return places


def _labelled(axis: Axis, start: int, end: int) -> list[tuple[str, float]]:
    ticks = axis.ticks()
    return [
        (f"{tick:g}", place)
        for tick, place in zip(ticks, _along(axis, ticks, start, end), strict=True)
    ]
