"""Where the loss of narrow models leaves the power law that is fitted to wider ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from matplotlib.figure import Figure

from orchestrator.analysis import SIGNIFICANCE, ExtrapolationNumbers, HeldOut
from orchestrator.report import formats
from orchestrator.report.figures import LIMIT, Drawing, new_panels
from orchestrator.report.hover import name_marks
from orchestrator.report.prose import prose
from orchestrator.report.sections.forest import ForestRow, draw_forest
from orchestrator.report.sections.power_laws import LOSS, draw_law, label_sizes
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, ends, text_table
from orchestrator.words import counted, listed

WIDTH_IN, HEIGHT_IN = 5.6, 3.6


def extrapolation_section(numbers: ExtrapolationNumbers) -> Section:
    """The figures, the table and the findings of an Extrapolation request."""
    request = numbers.request
    x = formats.title(request.x)
    return Section(
        kind="extrapolation",
        heading=request.title or f"Where the loss leaves the law of {_larger(request.x)}",
        findings=tuple(_findings(numbers)),
        cautions=tuple(_cautions(numbers)),
        tables=(_table(numbers),) if numbers.held_out else (),
        remarks=(request.claim,) if request.claim else (),
        method=prose("method_extrapolation.txt", x=x),
        files={
            "extrapolation.csv": csv_lines(
                [_record(line, request.x) for line in numbers.held_out], [request.x]
            ),
            "extrapolation_law.csv": csv_lines([_law_record(numbers)]),
            "extrapolation_losses.csv": csv_lines(
                [
                    {
                        request.x: point.x,
                        "n": point.n,
                        "mean_loss": point.mean,
                        **ends("mean_loss", point.interval),
                    }
                    for point in numbers.fit.points
                ]
            ),
        },
        drawings=tuple(_drawings(numbers)),
        wide=False,
    )


def _drawings(numbers: ExtrapolationNumbers) -> Iterator[Drawing]:
    x = formats.title(numbers.request.x)
    name = x.replace(" ", "_")
    dots = f"Test loss against {x}: a dot a trial, circles are means over seeds"
    if numbers.held_out:
        whole = "of the sizes above the first that leaves it" if numbers.first else "of all sizes"
        dots += f"; crosses are what the law of larger sizes predicts, and the line is the law {whole}, 95% each"
    yield Drawing(name=f"law_of_larger_{name}", caption=f"{dots}.", draw=lambda: _draw(numbers))
    if numbers.held_out:
        rows = [
            ForestRow(name=_size(line.x), estimates={"": line.difference})
            for line in numbers.held_out
        ]
        yield Drawing(
            name=f"off_the_law_of_larger_{name}",
            caption=f"Loss less what the law of larger sizes predicts, by {x}, with 95% intervals; right of the "
            "dashed line the model is worse than predicted.",
            draw=lambda: draw_forest(
                {"": rows}, label="loss less the law's (nats per token)", null=0.0
            ),
        )


def _findings(numbers: ExtrapolationNumbers) -> Iterator[str]:
    """Where the loss first leaves the law, from wide to narrow, then where it was not told apart
    from it."""
    x, larger, first = formats.title(numbers.request.x), _larger(numbers.request.x), numbers.first
    if not numbers.held_out:
        yield f"Where the loss leaves the law of {larger} cannot be said: {numbers.fit.missing}."
        return
    if first is not None:
        side, words = ("above", "worse") if first.leaves > 0 else ("below", "better")
        yield (
            f"From large to small, the loss first leaves the law of all {larger} at {x} "
            f"{_size(first.x)}: it is "
            f"{formats.ranged(first.difference)} nats per token {side} what {first.fitted} larger "
            f"sizes predict "
            f"(Bonferroni-adjusted {formats.p_equals(first.p_adjusted)}), {words} than the law."
        )
    later = [line for line in numbers.held_out if line.leaves and line is not first]
    if later:
        yield f"Held against the same law, it is also away from it at {x} {_told(later)}, in nats per token."
    same = [line for line in numbers.held_out if not line.leaves and line.difference.interval]
    if same:
        yield (
            f"The loss is not told apart from the law of {larger} at {x} {_told(same)}, in nats "
            f"per token, which "
            "does not show that it follows the law there."
        )
    without = [line for line in numbers.held_out if not line.difference.interval]
    if without:
        shown = listed([f"{_size(line.x)} {formats.ranged(line.difference)}" for line in without])
        why = without[0].difference.missing
        yield f"Without an interval, as {why}, the loss less what the law of {larger} predicts is, by {x}: {shown}."


def _larger(x: str) -> str:
    """ "larger width", "larger numbers of parameters"."""
    return "larger numbers of parameters" if x == "parameters" else f"larger {formats.title(x)}"


def _told(lines: list[HeldOut]) -> str:
    """ "16 by 0.12 [0.08, 0.16] (p = 0.002)"."""
    return listed(
        [
            f"{_size(line.x)} by {formats.ranged(line.difference)} "
            f"({formats.p_equals(line.p_adjusted)})"
            for line in lines
        ]
    )


def _cautions(numbers: ExtrapolationNumbers) -> Iterator[str]:
    fit = numbers.fit
    if not numbers.held_out:
        return
    if fit.misfit is not None and fit.misfit < SIGNIFICANCE:
        yield (
            f"The law leaves more than the seeds' spread of the sizes that it was fitted to "
            f"(F-test, "
            f"{formats.p_equals(fit.misfit)}): what it says beyond them is doubtful."
        )
    if fit.not_pinned:
        yield (
            f"{counted(len(numbers.fitted), 'size')} do not pin {listed(fit.not_pinned)}, as it or "
            f"an end of its "
            "interval lies at a bound of the fit."
        )
    detectable = [line.detectable for line in numbers.held_out if line.detectable is not None]
    if detectable:
        low, high = (formats.number(end, digits=2) for end in (min(detectable), max(detectable)))
        yield (
            f"The tests can find a true difference of {low} to {high} nats per token, depending on "
            f"the size: in "
            "simulations they found it in 59 to 75% of cases. Smaller ones would mostly be missed."
        )
    yield (
        "The intervals contain the effect of other seeds. They do not contain the effect of "
        "another formula, or of "
        "another learning rate at each size."
    )


def _size(x: float) -> str:
    return f"{x:g}" if x < 1e5 else f"{x:.3g}"


def _table(numbers: ExtrapolationNumbers) -> TextTable:
    x = formats.title(numbers.request.x)
    words = {1: "above the law", -1: "below the law", 0: "not told apart"}
    rows = [
        {
            x: Cell(_size(line.x), line.x, kind="name"),
            "trials": line.n,
            "fitted to": line.fitted,
            "loss": Cell(formats.number(line.loss, digits=4), line.loss),
            "the law's [95%]": Cell(formats.ranged(line.predicted, digits=4), line.predicted.value),
            "difference [95%]": Cell(formats.ranged(line.difference), line.difference.value),
            "p": formats.p_value(line.difference.p_value),
            "Bonferroni p": formats.p_value(line.p_adjusted),
            "detectable": Cell(formats.number(line.detectable, digits=2), line.detectable),
            "verdict": words[line.leaves] if line.p_adjusted is not None else formats.DASH,
        }
        for line in numbers.held_out
    ]
    fit = numbers.fit
    law = f"E {formats.ranged(fit.limit)}, b {formats.ranged(fit.exponent)}"
    over = f"{x} {listed([_size(size) for size in numbers.fitted])}"
    return text_table(
        f"Each size against the law of larger ones, in nats per token; that over {over} has {law}",
        rows,
    )


def _record(line: HeldOut, x: str) -> dict[str, Any]:
    return {
        x: line.x,
        "n": line.n,
        "fitted_to": line.fitted,
        "mean_loss": line.loss,
        "predicted": line.predicted.value,
        **ends("predicted", line.predicted.interval),
        "difference": line.difference.value,
        **ends("difference", line.difference.interval),
        "p": line.difference.p_value,
        "bonferroni_p": line.p_adjusted,
        "detectable": line.detectable,
        "missing": line.difference.missing,
    }


def _law_record(numbers: ExtrapolationNumbers) -> dict[str, Any]:
    fit = numbers.fit
    return {
        "x": numbers.request.x,
        "fitted": " ".join(f"{size:g}" for size in numbers.fitted),
        "E": fit.limit.value,
        **ends("E", fit.limit.interval),
        "b": fit.exponent.value,
        **ends("b", fit.exponent.interval),
        "log_a": fit.log_factor.value,
        **ends("log_a", fit.log_factor.interval),
        "misfit_p": fit.misfit,
        "not_pinned": " ".join(fit.not_pinned),
        "missing": fit.missing,
    }


def _draw(numbers: ExtrapolationNumbers) -> Figure:
    figure, [[axes]] = new_panels(1, 1, width_in=WIDTH_IN, height_in=HEIGHT_IN)
    draw_law(axes, numbers.fit, 0, label="mean of the trials")
    if numbers.first:
        least = numbers.fit.points[0].x
        axes.axvspan(
            least / 1.1,
            math.sqrt(numbers.first.x * numbers.fitted[0]),
            color="0.92",
            zorder=0,
            linewidth=0,
        )
    for line in numbers.held_out:
        value, interval = line.predicted.value, line.predicted.interval
        if value is not None:
            bars = [[value - interval.low], [interval.high - value]] if interval else None
            axes.errorbar(
                [line.x], [value], yerr=bars, fmt="x", color=LIMIT, markersize=6, elinewidth=1,
                label="predicted from larger sizes" if line is numbers.held_out[0] else "_",
            )  # fmt: skip
            predicted = f"predicted {formats.ranged(line.predicted, digits=4)}"
            name_marks(
                axes,
                [(line.x, value)],
                [f"{formats.title(numbers.request.x)} {_size(line.x)}\n{predicted}"],
            )
    axes.legend(frameon=False, fontsize=9)
    label_sizes(axes, [point.x for point in numbers.fit.points])
    axes.set_xlabel(formats.title(numbers.request.x))
    axes.set_ylabel(formats.capital(LOSS))
    return figure
