"""Mean spectra of layers' Jacobians, and which of the blog post's claims hold (Orhan 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.analysis.jacobians import (
    FEWEST_SEEDS,
    HALF,
    STRAIGHT_R2,
    STRAIGHTNESS,
    VANISHING,
    JacobianNumbers,
    LayerSpectrum,
    LevelClaim,
    Step,
    StepClaim,
    share_interval,
)
from orchestrator.report import formats
from orchestrator.report.figures import GROUP_COLOURS, GROUP_LINES, Drawing
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, TextTable
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
METHOD = (
    "The Jacobian of each layer is computed exactly, in float64, at each input; its singular values are averaged by "
    "index over the inputs, then over the seeds, each of which is another layer. An interval is 95% of the mean over "
    "seeds, by Student's t, cut off at 0 and 1, which a share cannot exceed. Rules: about half is an interval within "
    f"{HALF.low:g} to {HALF.high:g}, roughly linear an interval of R\N{SUPERSCRIPT TWO} above {STRAIGHT_R2:g} "
    "(exp(\N{MINUS SIGN}x) over 0 to 1 has 0.983); an interval wholly outside did not hold. A comparison of two "
    "layers holds where Welch's test, corrected by Holm over the comparisons of the claim, finds the difference that "
    "was claimed. A claim holds where all its comparisons do; it did not hold where one is significant the other "
    f"way; else it is not decided, nor is any with fewer than {FEWEST_SEEDS} seeds. The condition number without the "
    "zeros grows with the rows that are left, whatever they hold: a dense layer's half has that of a Gaussian matrix "
    "with as many rows. So layers are compared by what theirs has above one of the same shape, with the same rows "
    "set to zero (log10, medians over inputs). A unit whose experts are all off is a row of zeros, whatever the "
    "gates; each expert is on or off like a fair coin, so 2^-K of the rows are expected to be zero. What a "
    "decomposition leaves in the place of these zeros is rounding, and is counted as zero."
)


def jacobian_section(numbers: JacobianNumbers) -> Section:
    """The figure, the claims and the table of zero rows of a JacobianSpectra request."""
    if not numbers.drawn:
        return Section(kind="jacobians", heading="Spectra", findings=("No trial has a spectrum yet.",))
    return Section(
        kind="jacobians",
        heading="Mean singular values, and what was claimed of them",
        findings=tuple(_findings(numbers)),
        tables=(_claims_table(numbers), _zeros_table(numbers)),
        method=METHOD,
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
    for level in numbers.levels:
        yield _level_sentence(level)
    for claim in numbers.steps:
        yield _step_sentence(claim)
    yield _zeros_sentence(numbers.drawn)
    if numbers.request.benchmark:
        yield (
            "All this is about layers that nobody has trained. Whether such layers learn better is another study: "
            f"python sweep.py {numbers.request.benchmark}."
        )


def _level_sentence(claim: LevelClaim) -> str:
    if claim.interval is None or claim.sample.mean is None or claim.seeds < FEWEST_SEEDS:
        return f"{claim.text}: {_outcome(claim)}."
    interval = f"{claim.interval.low:.4g} to {claim.interval.high:.4g}"
    return (
        f"{claim.text}: {claim.outcome}. {formats.capital(_words(claim.metric))} is {claim.sample.mean:.4g} "
        f"(95% interval over {claim.sample.n} seeds {interval})."
    )


def _outcome(claim: LevelClaim | StepClaim) -> str:
    """ "held", "did not hold", or why it is not decided where that is for want of seeds."""
    return f"{claim.outcome}: {counted(claim.seeds, 'seed')}" if claim.seeds < FEWEST_SEEDS else claim.outcome


def _words(metric: str) -> str:
    return WORDS.get(metric) or f"the {formats.title(metric)}"


def _step_sentence(claim: StepClaim) -> str:
    start = f"{claim.text}, by {_words(claim.metric)}: {_outcome(claim)}"
    if claim.seeds < FEWEST_SEEDS:
        return f"{start}."
    others = [_other(step) for step in claim.steps if step.outcome != "held"]
    held = f"{len(claim.steps) - len(others)} of {len(claim.steps)} comparisons are so and significant"
    return f"{start}. {formats.capital(held)}" + (f"; {'; '.join(others)}." if others else ".")


def _other(step: Step) -> str:
    pair = f"{step.group} against {step.baseline}"
    if step.p_adjusted is None:
        return f"{pair} could not be tested ({step.test.missing})"
    p_words = f"Holm-adjusted p {formats.equals(formats.p_value(step.p_adjusted))}"
    what = "goes the other way" if step.decided else "is not significant"
    return f"{pair} {what} (difference {_signed(step.test.difference)}, {p_words})"


def _signed(value: float | None) -> str:
    return formats.number(None) if value is None else f"{value:+.3g}".replace("-", formats.MINUS)


def _zeros_sentence(spectra: Sequence[LayerSpectrum]) -> str:
    known = [each for each in spectra if each.zero_share.mean is not None]
    off = {each.group: abs((each.zero_share.mean or 0.0) - each.expected_zero_share) for each in known}
    enough = [each for each in known if each.zero_share.n >= FEWEST_SEEDS]
    intervals = [(each, share_interval(each.zero_share)) for each in enough if each.zero_share.sd]
    inside = sum(interval is not None and each.expected_zero_share in interval for each, interval in intervals)
    text = "The share of Jacobian rows that are exactly zero is expected to be 2^-K, with either kind of gates; "
    text += f"the means over seeds are at most {max(off.values(), default=0.0):.2g} away from it"
    if intervals:
        text += f", and {inside} of {len(intervals)} 95% intervals contain it"
    return f"{text}{''.join(_left_out(known, enough))}."


def _left_out(known: Sequence[LayerSpectrum], enough: Sequence[LayerSpectrum]) -> Iterator[str]:
    """Which layers have no interval that could contain what is expected, and why."""
    few = [each.group for each in known if each not in enough]
    alike = [each.group for each in enough if not each.zero_share.sd]
    for groups, why in (
        (few, f"fewer than {FEWEST_SEEDS} seeds"),
        (alike, "the same share at every seed, so no interval"),
    ):
        if groups:
            yield f"; left out for having {why}: {len(groups)} of {len(known)} layers ({', '.join(groups)})"


def _claims_table(numbers: JacobianNumbers) -> TextTable:
    body: list[tuple[Cell, ...]] = []
    for level in numbers.levels:
        mean, sd = level.sample.mean, level.sample.sd
        body.append(
            (
                Cell(level.text, kind="name"),
                Cell(_words(level.metric)),
                Cell(formats.spread(level.metric, mean, sd)),
                Cell(_outcome(level), kind="short"),
            )
        )
    for claim in numbers.steps:
        held = sum(step.outcome == "held" for step in claim.steps)
        body.append(
            (
                Cell(claim.text, kind="name"),
                Cell(_words(claim.metric)),
                Cell(f"{held} of {len(claim.steps)} comparisons", kind="short"),
                Cell(_outcome(claim), kind="short"),
            )
        )
    return TextTable(
        caption="The post's claims; it shows figures and prints no numbers to stand beside these",
        head=("claim", "judged by", "found", "outcome"),
        body=tuple(body),
    )


def _zeros_table(numbers: JacobianNumbers) -> TextTable:
    body = []
    for each in numbers.drawn:
        found, interval = each.zero_share, share_interval(each.zero_share)
        shown = f"{interval.low:.5f} to {interval.high:.5f}" if interval and found.sd else DASH
        body.append(
            (
                Cell(each.group, kind="name"),
                Cell(str(each.seeds), number=each.seeds),
                Cell(f"{each.expected_zero_share:.5f}", number=each.expected_zero_share),
                Cell(DASH if found.mean is None else f"{found.mean:.5f}", number=found.mean),
                Cell(shown, kind="short"),
            )
        )
    return TextTable(
        caption="Share of the Jacobian's rows that are exactly zero: units whose experts are all off",
        head=("layer", "seeds", "expected", "mean", "95% interval"),
        body=tuple(body),
    )


def _csv(numbers: JacobianNumbers) -> Iterator[list[Any]]:
    yield ["layer", "gates", "experts", "seeds", "index", "mean_singular_value", "deviation_over_seeds"]
    for each in numbers.drawn:
        assert each.mean is not None
        for index, value in enumerate(each.mean):
            deviation = None if each.deviation is None else float(each.deviation[index])
            yield [each.group, each.gates, each.experts, each.seeds, index + 1, float(value), deviation]


def _steps_csv(numbers: JacobianNumbers) -> Iterator[list[Any]]:
    yield ["claim", "metric", "layer", "against", "difference", "welch_t", "welch_p", "holm_p", "outcome", "missing"]
    for claim in numbers.steps:
        for step in claim.steps:
            test = step.test
            found = [test.difference, test.t, test.p_value, step.p_adjusted, step.outcome, test.missing]
            yield [claim.text, claim.metric, step.group, step.baseline, *found]


def _draw(spectra: Sequence[LayerSpectrum], *, logarithmic: bool) -> Figure:
    """A panel for softmax gates and one for constant gates; the dense layer is in both."""
    size_in = (2 * PANEL_WIDTH_IN, PANEL_HEIGHT_IN)
    figure = Figure(figsize=size_in, facecolor="white", layout="constrained")
    panels = figure.subplots(1, 2, sharex=True)
    for axes, gates in zip(panels, ("softmax", "constant"), strict=True):
        shown = [each for each in spectra if each.gates in ("none", gates)]
        for place, each in enumerate(shown):
            _draw_line(axes, each, place, logarithmic=logarithmic)
        axes.set_title("softmax gates" if gates == "softmax" else "constant gates 1/K", fontsize=10)
        axes.set_xlabel("index of the singular value")
        axes.set_ylabel("mean singular value")
        if logarithmic:
            axes.set_yscale("log")
            axes.set_ylim(bottom=FLOOR)
            axes.yaxis.set_major_formatter("{x:g}")
        else:
            axes.set_ylim(bottom=0)
        if shown:
            axes.legend(frameon=False, fontsize=8)
    return figure


def _draw_line(axes: Axes, each: LayerSpectrum, place: int, *, logarithmic: bool) -> None:
    assert each.mean is not None
    index = np.arange(1, len(each.mean) + 1)
    # Half the floor lies under the axis: a zero has no place on a logarithmic one.
    least = FLOOR / 2 if logarithmic else 0.0
    colour = GROUP_COLOURS[place % len(GROUP_COLOURS)]
    line = GROUP_LINES[place // len(GROUP_COLOURS) % len(GROUP_LINES)]
    name = "dense" if each.gates == "none" else f"K = {each.experts}"
    axes.plot(index, np.maximum(each.mean, least), line, color=colour, linewidth=1.4, label=name)
    if each.deviation is not None:
        low, high = (np.maximum(each.mean + sign * each.deviation, least) for sign in (-1, 1))
        axes.fill_between(index, low, high, color=colour, alpha=0.2, linewidth=0)
