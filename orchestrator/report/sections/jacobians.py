"""Mean spectra of layers' Jacobians, and which of the blog post's claims hold (Orhan 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.analysis import (
    FEWEST_SEEDS,
    HALF,
    STRAIGHT_R2,
    Interval,
    JacobianNumbers,
    LayerClaim,
    LayerSpectrum,
    Step,
    share_interval,
)
from orchestrator.report import formats
from orchestrator.report.figures import (
    Drawing,
    group_colour,
    group_line,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.formats import DASH
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, record_table, text_table
from orchestrator.words import counted
from trainables.errors import PROGRAM

PANEL_WIDTH_IN, PANEL_HEIGHT_IN = 4.2, 3.4
FLOOR = 1e-6
"""Of the logarithmic axis: smaller means come from inputs where the singular value is 0."""


def jacobian_section(numbers: JacobianNumbers) -> Section:
    """The figure, the claims and the table of zero rows of a JacobianSpectra request."""
    if not numbers.spectra:
        return Section(
            kind="jacobians", heading="Spectra", findings=("No trial has a spectrum yet.",)
        )
    steps = [_step_record(claim, step) for claim in numbers.claims for step in claim.steps]
    decided = [
        _step_record(claim, step)
        for claim in numbers.claims
        if _enough(claim)
        for step in claim.steps
    ]
    caption = "Mean singular values of the Jacobian over their index, after the post's two figures"
    bands = "bands: one standard deviation over seeds."
    return Section(
        kind="jacobians",
        heading="Mean singular values, and what was claimed of them",
        findings=tuple(_findings(numbers)),
        tables=(
            record_table(
                "The comparisons that decide the post's claims; it shows figures and prints no "
                "number",
                decided,
            ),
            _zeros_table(numbers),
        ),
        method=prose(
            "method_jacobians.txt",
            low=f"{HALF.low:g}",
            high=f"{HALF.high:g}",
            straight=STRAIGHT_R2,
            fewest=FEWEST_SEEDS,
        ),
        files={
            "spectra.csv": csv_lines(list(_spectra_records(numbers))),
            "steps.csv": csv_lines(steps),
        },
        drawings=tuple(
            Drawing(
                name=f"jacobian_spectra_{scale}",
                caption=f"{caption}{words}; {bands}",
                draw=partial(_draw, numbers.spectra, logarithmic_y=bool(words)),
            )
            for scale, words in (("linear", ""), ("logarithmic", ", logarithmic"))
        ),
    )


def _findings(numbers: JacobianNumbers) -> Iterator[str]:
    for claim in numbers.claims:
        yield f"{claim.text} ({formats.title(claim.metric)}): {_outcome(claim)}.{_details(claim)}"
    yield _zeros_sentence(numbers.spectra)
    if numbers.request.benchmark:
        yield (
            "All this is about layers that nobody has trained. Whether such layers learn better is "
            "another study: "
            f"{PROGRAM} {numbers.request.benchmark}."
        )


def _enough(claim: LayerClaim) -> bool:
    return claim.seeds >= FEWEST_SEEDS


def _outcome(claim: LayerClaim) -> str:
    """ "held", "did not hold", or why it is not decided where that is for want of seeds."""
    return claim.outcome if _enough(claim) else f"{claim.outcome}: {counted(claim.seeds, 'seed')}"


def _details(claim: LayerClaim) -> str:
    if not _enough(claim):
        return ""
    if claim.interval and claim.sample:
        interval = f"{claim.interval.low:.4g} to {claim.interval.high:.4g}"
        return f" The mean is {claim.sample.mean:.4g} (95% interval over {claim.seeds} seeds {interval})."
    held = sum(step.outcome == "held" for step in claim.steps)
    return f" {held} of {len(claim.steps)} comparisons are so and significant."


def _step_record(claim: LayerClaim, step: Step) -> dict[str, Any]:
    return {
        "claim": claim.text,
        "metric": claim.metric,
        "layer": step.group,
        "against": step.baseline,
        "difference": step.test.value,
        "welch_t": step.test.t,
        "welch_p": step.test.p_value,
        "holm_p": step.p_adjusted,
        "outcome": step.outcome,
        "missing": step.test.missing,
    }


def _zeros_sentence(layers: Sequence[LayerSpectrum]) -> str:
    means = [(layer.zero_share.mean, layer.expected_zero_share) for layer in layers]
    off = max((abs(mean - expected) for mean, expected in means if mean is not None), default=0.0)
    intervals = [
        (interval, layer.expected_zero_share)
        for layer in layers
        if (interval := _zeros_interval(layer))
    ]
    inside = sum(expected in interval for interval, expected in intervals)
    return (
        "The share of Jacobian rows that are exactly zero is expected to be 2^-K, with either kind "
        "of gates; the means "
        f"over seeds are at most {off:.2g} away from it, and {inside} of the {len(intervals)} "
        f"intervals in the table "
        f"contain it. Fewer than {FEWEST_SEEDS} seeds have none, nor have seeds of the same share."
    )


def _zeros_interval(layer: LayerSpectrum) -> Interval | None:
    share = layer.zero_share
    return share_interval(share) if share.n >= FEWEST_SEEDS and share.sd else None


def _zeros_table(numbers: JacobianNumbers) -> TextTable:
    rows = []
    for layer in numbers.spectra:
        interval, mean, expected = (
            _zeros_interval(layer),
            layer.zero_share.mean,
            layer.expected_zero_share,
        )
        rows.append(
            {
                "layer": layer.group,
                "seeds": layer.seeds,
                "expected": Cell(formats.number(expected), expected),
                "mean": Cell(formats.number(mean), mean),
                "95% interval": f"{interval.low:.5f} to {interval.high:.5f}" if interval else DASH,
            }
        )
    return text_table(
        "Share of the Jacobian's rows that are exactly zero: units whose experts are all off", rows
    )


def _spectra_records(numbers: JacobianNumbers) -> Iterator[dict[str, Any]]:
    for layer in numbers.spectra:
        for index, value in enumerate(layer.mean):
            yield {
                "layer": layer.group,
                "gates": layer.gates,
                "experts": layer.experts,
                "seeds": layer.seeds,
                "index": index + 1,
                "mean_singular_value": float(value),
                "deviation_over_seeds": None
                if layer.deviation is None
                else float(layer.deviation[index]),
            }


def _draw(spectra: Sequence[LayerSpectrum], *, logarithmic_y: bool) -> Figure:
    """A panel for softmax gates and one for constant gates; the dense layer is in both."""
    figure, panels = new_panels(
        1, 2, width_in=2 * PANEL_WIDTH_IN, height_in=PANEL_HEIGHT_IN, sharex=True
    )
    titles = {"softmax": "softmax gates", "constant": "constant gates 1/K"}
    for axes, (gates, title) in zip(panels[0], titles.items(), strict=True):
        layers = [layer for layer in spectra if layer.gates in ("none", gates)]
        short = [_short_name(layer) for layer in layers]
        for place, (layer, name) in enumerate(zip(layers, short, strict=True)):
            # Half the floor lies under the axis: a zero has no place on a logarithmic one.
            shown = name if short.count(name) == 1 else layer.group
            _draw_line(axes, layer, place, name=shown, least=FLOOR / 2 if logarithmic_y else 0.0)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("index of the singular value")
        axes.set_ylabel("mean singular value")
        if logarithmic_y:
            make_logarithmic(axes, "y")
        axes.set_ylim(bottom=FLOOR if logarithmic_y else 0)
        if layers:
            axes.legend(frameon=False, fontsize=8)
    return figure


def _short_name(layer: LayerSpectrum) -> str:
    return "dense" if layer.gates == "none" else f"K = {layer.experts}"


def _draw_line(axes: Axes, layer: LayerSpectrum, place: int, *, name: str, least: float) -> None:
    index, colour = np.arange(1, len(layer.mean) + 1), group_colour(place)
    axes.plot(
        index,
        np.maximum(layer.mean, least),
        group_line(place),
        color=colour,
        linewidth=1.4,
        label=name,
    )
    if layer.deviation is not None:
        low, high = (np.maximum(layer.mean + sign * layer.deviation, least) for sign in (-1, 1))
        axes.fill_between(index, low, high, color=colour, alpha=0.2, linewidth=0)
