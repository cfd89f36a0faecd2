"""The figure of `rank`: the singular values of matrices, and where there are several, their ranks
side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from orchestrator.report import formats
from orchestrator.report.figures import (
    COLOURS,
    GROUP_MARKERS,
    LIMIT,
    Drawing,
    draw_as,
    group_colour,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.hover import name_marks
from orchestrator.report.sections.spectra import shown_indices
from trainables.errors import UserError
from trainables.measurements import RANKS, Spectrum
from trainables.trial_folder import write_file

TITLES = {rank: formats.title(rank) for rank in RANKS} | {
    "kl_rank_bound_1e-1": "KL-rank bound (0.1 nats)"
}
PANEL_WIDTH_IN, HEIGHT_IN = 4.6, 4.0

Ranked = tuple[Mapping[str, Any], Spectrum]
"""What `rank_file` reports, and the singular values."""


@dataclass(frozen=True, kw_only=True)
class RankFigure(Drawing):
    """The figure of matrices."""

    ranked: Sequence[Ranked]
    labels: Sequence[str]
    """What each matrix is called."""
    steps: Sequence[int]
    """Their training steps, ascending, or empty."""

    def draw(self) -> Figure:
        """Return the figure."""
        columns = min(2, len(self.ranked))
        width_in = PANEL_WIDTH_IN * columns
        figure, [panels] = new_panels(1, columns, width_in=width_in, height_in=HEIGHT_IN)
        self._draw_spectra(panels[-1])
        if columns > 1:
            self._draw_ranks(panels[0])
            handles, texts = panels[0].get_legend_handles_labels()
            style: dict[str, Any] = {"ncols": 4, "frameon": False, "fontsize": 8}
            figure.legend(handles, texts, loc="outside upper left", **style)
        return figure

    def _draw_ranks(self, axes: Axes) -> None:
        x = self.steps or range(1, len(self.ranked) + 1)
        reports = [report for report, _ in self.ranked]
        for place, (rank, title) in enumerate(TITLES.items()):
            points = {
                (step, report[rank]): f"{label}\n{title} {report[rank]:,.6g}"
                for step, label, report in zip(x, self.labels, reports, strict=True)
                if report.get(rank) is not None
            }
            if points:
                look: dict[str, Any] = {
                    "color": group_colour(place),
                    "marker": GROUP_MARKERS[place],
                }
                axes.plot(
                    *zip(*points, strict=True), linewidth=1.2, markersize=4, label=title, **look
                )
                name_marks(axes, list(points), list(points.values()))
        full = [min(report["rank_rows"], report["rank_columns"]) for report in reports]
        axes.plot(x, full, color=LIMIT, linestyle="--", linewidth=1, label="full rank")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("rank")
        axes.set_xlabel("training step" if self.steps else "file, in the order given")
        if any(self.steps):
            axes.set_xscale("symlog", linthresh=min(filter(None, self.steps)))
            axes.set_xlim(left=0.7 * self.steps[0])
        else:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.xaxis.set_major_formatter(
            lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
        )

    def _draw_spectra(self, axes: Axes) -> None:
        colours = COLOURS(np.linspace(0, 0.9, len(self.ranked)))
        ends = (0, len(self.ranked) - 1)
        for place, ((report, spectrum), label) in enumerate(
            zip(self.ranked, self.labels, strict=True)
        ):
            indices = shown_indices(len(spectrum.singular_values))
            points = np.column_stack([indices + 1, spectrum.singular_values[indices]])
            shown = label if place in ends else None
            axes.plot(*points.T, color=colours[place], linewidth=1.2, label=shown)
            name_marks(axes, [points], [f"{label}\nPress rank {report['press_rank']:,}"])
        make_logarithmic(axes, "x")
        if any(spectrum.singular_values[0] > 0 for _, spectrum in self.ranked):
            make_logarithmic(axes, "y")
        axes.set_xlabel("index of the singular value")
        axes.set_ylabel("singular value")
        axes.legend(loc="lower left", fontsize=8, frameon=True, edgecolor="0.8")


def write_rank_figure(
    path: Path, ranked: Sequence[Ranked], *, names: Sequence[str], steps: Sequence[int]
) -> None:
    """Write the figure in the format that the path ends in (svg, png, pdf). `names` are those of
    the matrices; `steps` the training steps, ascending, or empty. Raises UserError where it cannot
    be written."""
    labels = [f"step {step:,}" for step in steps] or names
    figure = RankFigure(name=path.stem, caption="", ranked=ranked, labels=labels, steps=steps)
    content = draw_as(figure, path.suffix.removeprefix("."))
    try:
        write_file(path, content, durable=False)
    except OSError as error:
        raise UserError(
            f"The figure cannot be written to {path} ({error.strerror}): name another file with "
            f"--figure."
        ) from error
