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
    STRAIGHTNESS,
    VANISHING,
    JacobianNumbers,
    LayerClaim,
    LayerSpectrum,
    Step,
    share_interval,
)
from orchestrator.report import formats
from orchestrator.report.figures import GROUP_COLOURS, GROUP_LINES, Drawing, new_panels
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, TextTable, text_table
from orchestrator.words import counted

PANEL_WIDTH_IN, PANEL_HEIGHT_IN = 4.2, 3.4
FLOOR = 1e-6
"""Of the logarithmic axis: smaller means come from inputs where the singular value is 0."""
WORDS = {
    VANISHING: "the share of singular values of at most 1e-3 of the largest",
    "vanishing_1e-1": "the share of at most 1e-1 of the largest",
    "log10_condition_excess": "the condition number without the singular values that are zero, over that of a Gaussian "
    "matrix with as many rows",
    STRAIGHTNESS: "R\N{SUPERSCRIPT TWO} of a straight line through the first half of the mean spectrum",
}


def jacobian_section(numbers: JacobianNumbers) -> Section:
    """The figure, the claims and the table of zero rows of a JacobianSpectra request."""
    if not numbers.drawn:
        return Section(kind="jacobians", heading="Spectra", findings=("No trial has a spectrum yet.",))
    return Section(
        kind="jacobians",
        heading="Mean singular values, and what was claimed of them",
        findings=tuple(_findings(numbers)),
        tables=(_claims_table(numbers), _zeros_table(numbers)),
        method=prose(
            "method_jacobians.txt",
            low=f"{HALF.low:g}",
            high=f"{HALF.high:g}",
            straight=STRAIGHT_R2,
            fewest=FEWEST_SEEDS,
        ),
        files={"spectra.csv": list(_csv(numbers)), "steps.csv": list(_steps_csv(numbers))},
        drawings=tuple(
            Drawing(
                name=f"jacobian_spectra_{'logarithmic' if logarithmic else 'linear'}",
                caption="Mean singular values of the Jacobian over their index, after the post's two figures"
                + (", logarithmic" if logarithmic else "")
                + "; bands: one standard deviation over seeds.",
                draw=partial(_draw, numbers.drawn, logarithmic=logarithmic),
            )
            for logarithmic in (False, True)
        ),
    )


def _findings(numbers: JacobianNumbers) -> Iterator[str]:
    for claim in numbers.claims:
        yield _step_sentence(claim) if claim.steps else _level_sentence(claim)
    yield _zeros_sentence(numbers.drawn)
    if numbers.request.benchmark:
        yield (
            "All this is about layers that nobody has trained. Whether such layers learn better is another study: "
            f"python sweep.py {numbers.request.benchmark}."
        )


def _level_sentence(claim: LayerClaim) -> str:
    if claim.interval is None or claim.sample is None or claim.seeds < FEWEST_SEEDS:
        return f"{claim.text}: {_outcome(claim)}."
    interval = f"{claim.interval.low:.4g} to {claim.interval.high:.4g}"
    return (
        f"{claim.text}: {claim.outcome}. {formats.capital(_words(claim.metric))} is {claim.sample.mean:.4g} "
        f"(95% interval over {claim.seeds} seeds {interval})."
    )


def _outcome(claim: LayerClaim) -> str:
    """ "held", "did not hold", or why it is not decided where that is for want of seeds."""
    return f"{claim.outcome}: {counted(claim.seeds, 'seed')}" if claim.seeds < FEWEST_SEEDS else claim.outcome


def _words(metric: str) -> str:
    return WORDS.get(metric) or f"the {formats.title(metric)}"


def _step_sentence(claim: LayerClaim) -> str:
    start = f"{claim.text}, by {_words(claim.metric)}: {_outcome(claim)}"
    if claim.seeds < FEWEST_SEEDS:
        return f"{start}."
    failing = [_not_held(step) for step in claim.steps if step.outcome != "held"]
    held = f"{len(claim.steps) - len(failing)} of {len(claim.steps)} comparisons are so and significant"
    return f"{start}. {formats.capital(held)}" + (f"; {'; '.join(failing)}." if failing else ".")


def _not_held(step: Step) -> str:
    pair = f"{step.group} against {step.baseline}"
    if step.p_adjusted is None:
        return f"{pair} could not be tested ({step.test.missing})"
    p_words = f"Holm-adjusted p {formats.equals(formats.p_value(step.p_adjusted))}"
    what = "goes the other way" if step.outcome == "did not hold" else "is not significant"
    return f"{pair} {what} (difference {_signed(step.test.value)}, {p_words})"


def _signed(value: float | None) -> str:
    return formats.number(None) if value is None else f"{value:+.3g}".replace("-", formats.MINUS)


def _zeros_sentence(layers: Sequence[LayerSpectrum]) -> str:
    measured = [layer for layer in layers if layer.zero_share.mean is not None]
    off = [abs((layer.zero_share.mean or 0.0) - layer.expected_zero_share) for layer in measured]
    enough = [layer for layer in measured if layer.zero_share.n >= FEWEST_SEEDS]
    intervals = [(layer, share_interval(layer.zero_share)) for layer in enough if layer.zero_share.sd]
    inside = sum(interval is not None and layer.expected_zero_share in interval for layer, interval in intervals)
    text = "The share of Jacobian rows that are exactly zero is expected to be 2^-K, with either kind of gates; "
    text += f"the means over seeds are at most {max(off, default=0.0):.2g} away from it"
    if intervals:
        text += f", and {inside} of {len(intervals)} 95% intervals contain it"
    few = [layer.group for layer in measured if layer not in enough]
    alike = [layer.group for layer in enough if not layer.zero_share.sd]
    for groups, why in (
        (few, f"fewer than {FEWEST_SEEDS} seeds"),
        (alike, "the same share at every seed, so no interval"),
    ):
        if groups:
            text += f"; left out for having {why}: {len(groups)} of {len(measured)} layers ({', '.join(groups)})"
    return f"{text}."


def _claims_table(numbers: JacobianNumbers) -> TextTable:
    rows: list[Sequence[object]] = []
    for claim in numbers.claims:
        held = sum(step.outcome == "held" for step in claim.steps)
        result: Cell | str = f"{held} of {len(claim.steps)} comparisons"
        if claim.sample:
            result = Cell(formats.spread(claim.metric, claim.sample.mean, claim.sample.sd))
        rows.append((claim.text, Cell(_words(claim.metric)), result, _outcome(claim)))
    return text_table(
        "The post's claims; it shows figures and prints no numbers to stand beside these",
        ("claim", "judged by", "found", "outcome"),
        rows,
    )


def _zeros_table(numbers: JacobianNumbers) -> TextTable:
    rows = []
    for layer in numbers.drawn:
        share, interval = layer.zero_share, share_interval(layer.zero_share)
        shares = [
            Cell(DASH if value is None else f"{value:.5f}", value) for value in (layer.expected_zero_share, share.mean)
        ]
        ends = f"{interval.low:.5f} to {interval.high:.5f}" if interval and share.sd else DASH
        rows.append((layer.group, layer.seeds, *shares, ends))
    return text_table(
        "Share of the Jacobian's rows that are exactly zero: units whose experts are all off",
        ("layer", "seeds", "expected", "mean", "95% interval"),
        rows,
    )


def _csv(numbers: JacobianNumbers) -> Iterator[list[Any]]:
    yield ["layer", "gates", "experts", "seeds", "index", "mean_singular_value", "deviation_over_seeds"]
    for layer in numbers.drawn:
        assert layer.mean is not None
        for index, value in enumerate(layer.mean):
            deviation = None if layer.deviation is None else float(layer.deviation[index])
            yield [layer.group, layer.gates, layer.experts, layer.seeds, index + 1, float(value), deviation]


def _steps_csv(numbers: JacobianNumbers) -> Iterator[list[Any]]:
    yield ["claim", "metric", "layer", "against", "difference", "welch_t", "welch_p", "holm_p", "outcome", "missing"]
    for claim in numbers.claims:
        for step in claim.steps:
            test = [step.test.value, step.test.t, step.test.p_value, step.p_adjusted]
            yield [claim.text, claim.metric, step.group, step.baseline, *test, step.outcome, step.test.missing]


def _draw(spectra: Sequence[LayerSpectrum], *, logarithmic: bool) -> Figure:
    """A panel for softmax gates and one for constant gates; the dense layer is in both."""
    figure, panels = new_panels(1, 2, width_in=2 * PANEL_WIDTH_IN, height_in=PANEL_HEIGHT_IN, sharex=True)
    for axes, gates in zip(panels[0], ("softmax", "constant"), strict=True):
        layers = [layer for layer in spectra if layer.gates in ("none", gates)]
        for place, layer in enumerate(layers):
            _draw_line(axes, layer, place, logarithmic=logarithmic)
        axes.set_title("softmax gates" if gates == "softmax" else "constant gates 1/K", fontsize=10)
        axes.set_xlabel("index of the singular value")
        axes.set_ylabel("mean singular value")
        if logarithmic:
            axes.set_yscale("log")
            axes.set_ylim(bottom=FLOOR)
            axes.yaxis.set_major_formatter("{x:g}")
        else:
            axes.set_ylim(bottom=0)
        if layers:
            axes.legend(frameon=False, fontsize=8)
    return figure


def _draw_line(axes: Axes, layer: LayerSpectrum, place: int, *, logarithmic: bool) -> None:
    assert layer.mean is not None
    index = np.arange(1, len(layer.mean) + 1)
    # Half the floor lies under the axis: a zero has no place on a logarithmic one.
    least = FLOOR / 2 if logarithmic else 0.0
    colour = GROUP_COLOURS[place % len(GROUP_COLOURS)]
    line = GROUP_LINES[place // len(GROUP_COLOURS) % len(GROUP_LINES)]
    name = "dense" if layer.gates == "none" else f"K = {layer.experts}"
    axes.plot(index, np.maximum(layer.mean, least), line, color=colour, linewidth=1.4, label=name)
    if layer.deviation is not None:
        low, high = (np.maximum(layer.mean + sign * layer.deviation, least) for sign in (-1, 1))
        axes.fill_between(index, low, high, color=colour, alpha=0.2, linewidth=0)
