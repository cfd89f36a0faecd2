"""The least size at which a metric is as low as asked, by group, and how that size grows with
another setting."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure

from orchestrator.analysis import SIGNIFICANCE, ThresholdLaw, ThresholdNumbers, ThresholdPoint
from orchestrator.report import formats
from orchestrator.report.figures import GROUP_MARKERS, Drawing, group_colour, new_panels
from orchestrator.report.hover import name_marks
from orchestrator.report.prose import prose
from orchestrator.report.sections.power_laws import label_sizes
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, ends, text_table
from orchestrator.words import listed

WIDTH_IN, HEIGHT_IN = 5.6, 4.0
ASIDE = 1.02
"""By what factor of z each group's marks lie beside those of the one before, so that none covers
another."""


def threshold_section(numbers: ThresholdNumbers) -> Section:
    """The figure, tables and findings of a Threshold request."""
    request = numbers.request
    x, z, goal = formats.title(request.x), request.over_name, _goal(numbers)
    return Section(
        kind="thresholds",
        heading=request.title or f"The least {x} with a {goal}",
        findings=tuple(_findings(numbers)),
        cautions=tuple(_cautions(numbers)),
        tables=(_point_table(numbers), _law_table(numbers)),
        remarks=(request.claim,) if request.claim else (),
        method=prose("method_thresholds.txt", x=x, z=z, goal=goal, baseline=request.baseline),
        files={
            "thresholds.csv": csv_lines(
                [_point_record(point, numbers) for point in numbers.points]
            ),
            "threshold_laws.csv": csv_lines([_law_record(law, numbers) for law in numbers.laws]),
        },
        drawings=(
            Drawing(
                name=re.sub(r"\W+", "_", f"least {x} over {z}"),
                caption=f"The least {x} with a {goal} against {z}, with 95% intervals; lines are the laws a {z}^b. "
                f"Hollow: at the least {x} that was trained, where less is enough, or at the "
                f"largest, where more is "
                "needed.",
                draw=lambda: _draw(numbers),
            ),
        ),
    )


def _goal(numbers: ThresholdNumbers) -> str:
    """ "gap to the entropy (nats) of at most 0.1"."""
    return f"{formats.title(numbers.request.metric)} of at most {numbers.request.value:g}"


def _findings(numbers: ThresholdNumbers) -> Iterator[str]:
    """The sizes and where there are none, who needs more or less than the baseline, and the
    laws."""
    request = numbers.request
    x, z = formats.title(request.x), request.over_name
    if widths := list(_sizes(numbers)):
        yield f"The least {x} with a {_goal(numbers)}: {'; '.join(widths)}."
    nowhere = [point for point in numbers.points if not point.is_reached]
    if nowhere:
        shown = listed(
            [
                f"{point.group} at {z} = {point.z:g} ({_words(point.x.value, point)})"
                for point in nowhere
            ]
        )
        yield f"No least {x} with a {_goal(numbers)} lies among those that were trained: {shown}."
    tested = [point for point in numbers.points if point.p_adjusted is not None]
    apart = [
        point
        for point in tested
        if point.p_adjusted is not None and point.p_adjusted < SIGNIFICANCE
    ]
    same = [point for point in tested if point not in apart]
    if apart:
        yield f"Compared with {request.baseline}, the required {x} is: {_ratios(apart, numbers)}."
    if same:
        yield (
            f"No difference from the {x} of {request.baseline} was shown, which does not show that "
            f"they are equal: "
            f"{_ratios(same, numbers)}."
        )
    laws = [law for law in numbers.laws if not law.missing]
    if laws:
        shown = listed([f"{law.group} {formats.ranged(law.exponent)}" for law in laws])
        yield f"As a power law a {z}^b over the {z} tried, that {x} has the exponents b [95%]: {shown}."
    for missing in dict.fromkeys(law.missing for law in numbers.laws if law.missing):
        without = listed([str(law.group) for law in numbers.laws if law.missing == missing])
        yield f"There is no power law over {z} for {without} yet: of {z}, {missing}."


def _sizes(numbers: ThresholdNumbers) -> Iterator[str]:
    """ "softmax 12.2 and 14.9 at V = 500 and 1000", of each group that has any."""
    for group in dict.fromkeys(point.group for point in numbers.points):
        reached = [point for point in numbers.points if point.group == group and point.is_reached]
        if reached:
            sizes = listed([_words(point.x.value, point) for point in reached])
            yield f"{group} {sizes} at {numbers.request.over_name} = {listed([f'{point.z:g}' for point in reached])}"


def _ratios(points: Sequence[ThresholdPoint], numbers: ThresholdNumbers) -> str:
    """ "mos 0.98x [0.91, 1.05] (p = 0.4) at V = 1000; ..."."""
    return "; ".join(
        f"{listed(shown)} at {numbers.request.over_name} = {z:g}"
        for z in dict.fromkeys(point.z for point in points)
        if (shown := [_ratio_words(point) for point in points if point.z == z])
    )


def _ratio_words(point: ThresholdPoint) -> str:
    assert point.ratio is not None
    return f"{point.group} {formats.ranged(point.ratio)} ({formats.p_equals(point.p_adjusted)})"


def _cautions(numbers: ThresholdNumbers) -> Iterator[str]:
    x, z = formats.title(numbers.request.x), numbers.request.over_name
    yield (
        f"The intervals contain the effect of other seeds. They do not contain the error of "
        f"interpolating between two "
        f"trained {x}s, which can be larger, and do not test whether the {x} follows a power of "
        f"{z}. A ratio at "
        f"one {z} can be less affected, as far as the error is common to both layers."
    )
    partly = [
        law
        for law in numbers.laws
        if not law.missing and len(law.fitted) < len(_tried(law.group, numbers))
    ]
    if partly:
        yield (
            f"A law is over those {z} alone at which the value is reached between two {x}s that "
            f"were trained; for "
            f"{listed([str(law.group) for law in partly])} others are left out."
        )


def _tried(group: Any, numbers: ThresholdNumbers) -> list[float]:
    return [point.z for point in numbers.points if point.group == group]


def _words(value: float | None, point: ThresholdPoint) -> str:
    """A size, or in words on which side of all that were trained it lies."""
    if value == 0:
        return f"below {point.places[0]:g}"
    return (
        f"not up to {point.places[-1]:g}" if value == math.inf else formats.number(value, digits=3)
    )


def _x_cell(point: ThresholdPoint) -> Cell:
    interval, text = point.x.interval, _words(point.x.value, point)
    if interval and interval.low < interval.high:
        text += f" [{_words(interval.low, point)}, {_words(interval.high, point)}]"
    return Cell(text, point.x.value if point.is_reached else None)


def _point_table(numbers: ThresholdNumbers) -> TextTable:
    request = numbers.request
    x = formats.title(request.x)
    rows: list[dict[str, object]] = [
        {
            request.over_name: Cell(f"{point.z:g}", point.z, kind="name"),
            formats.title(request.by): Cell(formats.setting(point.group), kind="name"),
            f"{x}s trained": ", ".join(f"{place:g}" for place in point.places),
            "trials": point.trials,
            f"least {x} [95%]": _x_cell(point),
            f"times that of {request.baseline} [95%]": formats.ranged(point.ratio)
            if point.ratio
            else formats.DASH,
            "p": formats.p_value(point.ratio.p_value if point.ratio else None),
            "Holm p": formats.p_value(point.p_adjusted),
        }
        for point in numbers.points
    ]
    return text_table(f"The least {x} with a {_goal(numbers)}", rows)


def _law_table(numbers: ThresholdNumbers) -> TextTable:
    request = numbers.request
    z = request.over_name
    rows: list[dict[str, object]] = [
        {
            formats.title(request.by): Cell(formats.setting(law.group), kind="name"),
            f"fitted to {z}": ", ".join(f"{fitted:g}" for fitted in law.fitted) or formats.DASH,
            "b [95%]": Cell(formats.ranged(law.exponent), law.exponent.value),
            "ln a [95%]": Cell(formats.ranged(law.log_factor), law.log_factor.value),
            "farthest off": formats.DASH if law.off is None else formats.percent(law.off - 1),
            "missing": law.missing or law.exponent.missing or "nothing",
        }
        for law in numbers.laws
    ]
    return text_table(f"That {formats.title(request.x)} as a {z}^b", rows)


def _point_record(point: ThresholdPoint, numbers: ThresholdNumbers) -> dict[str, Any]:
    request, ratio = numbers.request, point.ratio
    return {
        request.over_name: point.z,
        request.by: point.group,
        "trained": " ".join(f"{place:g}" for place in point.places),
        "trials": point.trials,
        request.x: point.x.value,
        **ends(request.x, point.x.interval),
        "baseline": request.baseline,
        "ratio": ratio and ratio.value,
        **ends("ratio", ratio.interval if ratio else None),
        "p": ratio and ratio.p_value,
        "holm_p": point.p_adjusted,
        "missing": point.x.missing,
    }


def _law_record(law: ThresholdLaw, numbers: ThresholdNumbers) -> dict[str, Any]:
    return {
        numbers.request.by: law.group,
        "fitted": " ".join(f"{z:g}" for z in law.fitted),
        "b": law.exponent.value,
        **ends("b", law.exponent.interval),
        "log_a": law.log_factor.value,
        **ends("log_a", law.log_factor.interval),
        "farthest_off": law.off,
        "missing": law.missing or law.exponent.missing,
    }


def _draw(numbers: ThresholdNumbers) -> Figure:
    figure, [[axes]] = new_panels(1, 1, width_in=WIDTH_IN, height_in=HEIGHT_IN)
    x, z = formats.title(numbers.request.x), numbers.request.over_name
    for place, law in enumerate(numbers.laws):
        label, aside = formats.setting(law.group), ASIDE ** (place - (len(numbers.laws) - 1) / 2)
        look = {
            "color": group_colour(place),
            "marker": GROUP_MARKERS[place % len(GROUP_MARKERS)],
            "markersize": 4.5,
        }
        axes.plot([], [], linestyle="none", label=label, **look)
        for point in (point for point in numbers.points if point.group == law.group):
            at, low, high = (_inside(value, point) for value in _drawn(point))
            axes.plot([point.z * aside] * 2, [low, high], color=look["color"], linewidth=1.2)
            face = look["color"] if point.is_reached else "white"
            axes.plot([point.z * aside], [at], markerfacecolor=face, **look)
            name_marks(
                axes,
                [(point.z * aside, at)],
                [f"{label}, {z} = {point.z:g}\n{x} {_x_cell(point).text}"],
            )
        if not law.missing:
            axes.plot(law.fitted, [law.at(z) for z in law.fitted], color=look["color"], linewidth=1)
    label_sizes(axes, [point.z for point in numbers.points])
    label_sizes(axes, [place for point in numbers.points for place in point.places], "y")
    axes.set_xlabel(z)
    axes.set_ylabel(f"least {x}")
    figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure


def _drawn(point: ThresholdPoint) -> tuple[float, float, float]:
    """The value and the ends of its interval, itself where there is none."""
    assert point.x.value is not None
    interval = point.x.interval
    return (point.x.value, interval.low, interval.high) if interval else (point.x.value,) * 3


def _inside(value: float, point: ThresholdPoint) -> float:
    """As near as the places that were trained."""
    return min(max(value, point.places[0]), point.places[-1])
