"""Power laws of the loss, a law for each group, and by what factor of the size each is like the
baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from orchestrator.analysis import SIGNIFICANCE, EqualRank, LawFit, PowerLawNumbers, RankFactor
from orchestrator.report import formats
from orchestrator.report.figures import (
    GROUP_MARKERS,
    Drawing,
    group_colour,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.hover import name_marks
from orchestrator.report.prose import prose
from orchestrator.report.sections.forest import ForestRow, draw_forest
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, ends, text_table
from orchestrator.words import listed

PANEL_WIDTH_IN, PANEL_HEIGHT_IN = 4.0, 3.4
MOST_TICKS = 8
LOSS = "loss (nats per token)"


def power_law_section(numbers: PowerLawNumbers) -> Section:
    """The figures, tables and findings of a PowerLaw request."""
    request = numbers.request
    x = formats.title(request.x)
    fits = [_fit_record(fit, numbers) for fit in numbers.fits]
    drawings = [
        Drawing(
            name=f"loss_over_{x.replace(' ', '_')}",
            caption=f"Test loss against {x}: a dot a trial, marks are means over seeds, lines the laws E + a x^-b with "
            f"their 95% bands.",
            draw=lambda: _draw_laws(numbers),
        )
    ]
    if numbers.factors:
        drawings.append(
            Drawing(
                name=f"factor_of_{x.replace(' ', '_')}",
                caption=f"By what factor of its {x} each head is like {request.baseline}, with 95% intervals; right of "
                "the dashed line it is like a larger one.",
                draw=lambda: draw_forest(
                    _forests(numbers),
                    label=f"times the {x}, {request.baseline} = 1",
                    null=1.0,
                    logarithmic=True,
                ),
            )
        )
    tables = [_law_table(numbers)]
    if numbers.factors:
        tables += [_factor_table(numbers), _equal_table(numbers)]
    return Section(
        kind="power-laws",
        heading=request.title or f"The loss as a power law of the {x}",
        findings=tuple(_findings(numbers)),
        cautions=tuple(_cautions(numbers)),
        tables=tuple(tables),
        remarks=(request.claim,) if request.claim else (),
        method=prose("method_power_laws.txt", x=x, baseline=request.baseline),
        files={
            "power_laws.csv": csv_lines(fits),
            "law_losses.csv": csv_lines(
                list(_point_records(numbers)), ["panel", request.by, request.x]
            ),
            "factors.csv": csv_lines(
                [_factor_record(line, numbers) for line in numbers.factors], ["panel", request.by]
            ),
            "equal_ranks.csv": csv_lines(
                [_equal_record(line, numbers) for line in numbers.equals], ["panel", request.by]
            ),
        },
        drawings=tuple(drawings),
    )


def _findings(numbers: PowerLawNumbers) -> Iterator[str]:
    """What each head's factor is, those that are told from one first; then what the laws themselves
    leave open."""
    x, baseline = formats.title(numbers.request.x), numbers.request.baseline
    for panel in dict.fromkeys(line.panel for line in numbers.factors):
        lines = [line for line in numbers.factors if line.panel == panel]
        apart = [
            line for line in lines if line.p_adjusted is not None and line.p_adjusted < SIGNIFICANCE
        ]
        open_ = [line for line in lines if line not in apart and line.factor.interval is not None]
        rest = [line for line in lines if line.factor.interval is None]
        where = _where(panel)
        if apart:
            shown = listed([f"{line.group} {_factor_words(line)}" for line in apart])
            yield (
                f"{where}at equal loss, {baseline} has another {x} than some groups. It is this "
                f"many times theirs: "
                f"{shown} (95% intervals of these comparisons alone, Holm-adjusted p)."
            )
        if open_:
            shown = listed([f"{line.group} {_factor_words(line)}" for line in open_])
            yield (
                f"{where}at equal loss, no other {x} than {baseline}'s was shown, which does not "
                f"show that they are "
                f"equal: {shown}."
            )
        for line in rest:
            yield f"{where}there is no factor for {line.group} to report: {line.factor.missing}."
    if not numbers.factors:
        yield _no_factor(numbers)


def _no_factor(numbers: PowerLawNumbers) -> str:
    reasons = list(dict.fromkeys(fit.missing for fit in numbers.fits if fit.missing))
    why = (
        f": {reasons[0]}" if reasons else f": no law of {numbers.request.baseline} and another one"
    )
    return f"Nothing can be held against {numbers.request.baseline} yet{why}."


def _factor_words(line: RankFactor) -> str:
    return f"{formats.ranged(line.factor)} ({formats.p_equals(line.p_adjusted)})"


def _cautions(numbers: PowerLawNumbers) -> Iterator[str]:
    fits = numbers.fits
    fitted = sum(fit.limit.value is not None for fit in fits)
    for name, words in (("E", "the limit E"), ("b", "the exponent b")):
        loose = [_law_name(fit) for fit in fits if name in fit.not_pinned]
        if loose:
            yield (
                f"These {len(loose)} of {fitted} laws do not pin {words}, as it or an end of its "
                f"interval lies at a "
                f"bound of the fit: {listed(loose)}."
            )
    bent = [_law_name(fit) for fit in fits if fit.misfit is not None and fit.misfit < SIGNIFICANCE]
    if bent:
        yield (
            f"The law leaves more than the seeds' spread (F-test, p < {SIGNIFICANCE}) of "
            f"{listed(bent)}: its intervals "
            "hold what other seeds would bring, and not that another formula would fit better."
        )
    bent = [
        _law_name(line)
        for line in numbers.factors
        if line.misfit is not None and line.misfit < SIGNIFICANCE
    ]
    if bent:
        yield (
            f"One factor for all sizes is not enough (F-test, p < {SIGNIFICANCE}) for "
            f"{listed(bent)}: there the table "
            "of single sizes says more."
        )
    for panel, p_value in numbers.seed_by_group_p.items():
        if p_value < SIGNIFICANCE:
            yield (
                f"{_where(panel)}a seed shifts some groups at all sizes (F-test, "
                f"{formats.p_equals(p_value)}). The "
                "intervals do not include this effect and are too narrow. With an effect as large "
                "as the rest, 84% of "
                "a factor's intervals contained the truth in simulations."
            )
    if max((point.n for fit in fits for point in fit.points), default=0) == 2:
        yield (
            "With two seeds a size, the intervals of E are wider than they need to be: they "
            "contained the truth in 98 "
            "to 99% of simulations, with three seeds in 97%."
        )
    if any(fit.points and fit.limit.interval is None for fit in fits):
        yield "Laws of one seed a size have no interval, and their factors no test."


def _where(panel: Any) -> str:
    return f"{_panel_name(panel)}: " if panel is not None else ""


def _panel_name(panel: Any) -> str:
    return formats.setting(panel)


def _law_name(line: LawFit | RankFactor) -> str:
    return f"{line.group}" if line.panel is None else f"{line.group} ({_panel_name(line.panel)})"


def _law_table(numbers: PowerLawNumbers) -> TextTable:
    rows: list[dict[str, object]] = [
        _place(fit.panel, fit.group, numbers)
        | {
            "trials": len(fit.trials),
            "sizes": len(fit.points),
            "E [95%]": _cell(fit.limit),
            "b [95%]": _cell(fit.exponent),
            "log a [95%]": _cell(fit.log_factor),
            "misfit p": formats.p_value(fit.misfit),
            "not pinned": ", ".join(fit.not_pinned) or fit.missing or "none",
        }
        for fit in numbers.fits
    ]
    return text_table("Loss in nats per token as E + a x^-b", rows)


def _factor_table(numbers: PowerLawNumbers) -> TextTable:
    x = formats.title(numbers.request.x)
    rows: list[dict[str, object]] = [
        _place(line.panel, line.group, numbers)
        | {
            f"times the {x} [95%]": _cell(line.factor),
            "p": formats.p_value(line.factor.p_value),
            "Holm p": formats.p_value(line.p_adjusted),
            "one factor misfits: p": formats.p_value(line.misfit),
        }
        for line in numbers.factors
    ]
    return text_table(f"By what factor of its {x} each is like {numbers.request.baseline}", rows)


def _equal_table(numbers: PowerLawNumbers) -> TextTable:
    x, baseline = formats.title(numbers.request.x), numbers.request.baseline
    rows: list[dict[str, object]] = [
        _place(line.panel, line.group, numbers)
        | {
            x: Cell(f"{line.x:g}", line.x),
            "loss": Cell(formats.number(line.loss, digits=4), line.loss),
            f"{x} of {baseline} that is like it [95%]": _cell(line.equal),
            "ratio [95%]": _cell(line.ratio),
            "p": formats.p_value(line.ratio.p_value),
            "Holm p": formats.p_value(line.p_adjusted),
            "outside what was trained": "yes" if line.extrapolated else "no",
        }
        for line in numbers.equals
    ]
    caption = (
        f"At single sizes: the {x} at which the law of {baseline}, moved through its trials of "
        f"that size, has the same "
        "loss (\N{INFINITY}: none has)"
    )
    return TextTable(**{**vars(text_table(caption, rows)), "folded": True})


def _place(panel: Any, group: Any, numbers: PowerLawNumbers) -> dict[str, object]:
    request = numbers.request
    name = {
        formats.title(request.by.removesuffix(".name")): Cell(formats.setting(group), kind="name")
    }
    return {"model": Cell(_panel_name(panel), kind="label"), **name} if request.panel else {**name}


def _cell(statistic: Any) -> Cell:
    finite = statistic.value is not None and math.isfinite(statistic.value)
    return Cell(formats.ranged(statistic), statistic.value if finite else None)


def _key(panel: Any, group: Any, numbers: PowerLawNumbers) -> dict[str, Any]:
    return {numbers.request.panel or "panel": panel, numbers.request.by: group}


def _fit_record(fit: LawFit, numbers: PowerLawNumbers) -> dict[str, Any]:
    record = _key(fit.panel, fit.group, numbers) | {
        "trials": len(fit.trials),
        "sizes": len(fit.points),
    }
    for name, statistic in (("E", fit.limit), ("b", fit.exponent), ("log_a", fit.log_factor)):
        record |= {name: statistic.value, **ends(name, statistic.interval)}
    return record | {
        "misfit_p": fit.misfit,
        "not_pinned": " ".join(fit.not_pinned),
        "missing": fit.missing,
    }


def _point_records(numbers: PowerLawNumbers) -> Iterator[dict[str, Any]]:
    for fit in numbers.fits:
        for point in fit.points:
            yield {
                **_key(fit.panel, fit.group, numbers),
                numbers.request.x: point.x,
                "n": point.n,
                "mean_loss": point.mean,
                **ends("mean_loss", point.interval),
            }


def _factor_record(line: RankFactor, numbers: PowerLawNumbers) -> dict[str, Any]:
    return {
        **_key(line.panel, line.group, numbers),
        "baseline": numbers.request.baseline,
        "factor": line.factor.value,
        **ends("factor", line.factor.interval),
        "p": line.factor.p_value,
        "holm_p": line.p_adjusted,
        "misfit_p": line.misfit,
        "missing": line.factor.missing,
    }


def _equal_record(line: EqualRank, numbers: PowerLawNumbers) -> dict[str, Any]:
    return {
        **_key(line.panel, line.group, numbers),
        "baseline": numbers.request.baseline,
        numbers.request.x: line.x,
        "mean_loss": line.loss,
        "equal": line.equal.value,
        **ends("equal", line.equal.interval),
        "ratio": line.ratio.value,
        **ends("ratio", line.ratio.interval),
        "p": line.ratio.p_value,
        "holm_p": line.p_adjusted,
        "extrapolated": line.extrapolated,
        "missing": line.ratio.missing,
    }


def _forests(numbers: PowerLawNumbers) -> Mapping[str, Sequence[ForestRow]]:
    return {
        _panel_name(panel) if panel is not None else "": [
            ForestRow(name=formats.setting(line.group), estimates={"factor": line.factor})
            for line in numbers.factors
            if line.panel == panel
        ]
        for panel in dict.fromkeys(line.panel for line in numbers.factors)
    }


def _draw_laws(numbers: PowerLawNumbers) -> Figure:
    panels = list(dict.fromkeys(fit.panel for fit in numbers.fits))
    groups = list(dict.fromkeys(fit.group for fit in numbers.fits))
    figure, grid = new_panels(
        1,
        len(panels),
        width_in=max(5.6, PANEL_WIDTH_IN * len(panels) + 0.4),
        height_in=PANEL_HEIGHT_IN + 0.4,
    )
    marks: dict[str, Any] = {}
    for axes, panel in zip(grid[0], panels, strict=True):
        for fit in numbers.fits:
            if fit.panel == panel:
                draw_law(axes, fit, groups.index(fit.group), label=formats.setting(fit.group))
        label_sizes(
            axes, [point.x for fit in numbers.fits if fit.panel == panel for point in fit.points]
        )
        axes.set_xlabel(formats.title(numbers.request.x))
        axes.set_ylabel(formats.capital(LOSS))
        if panel is not None:
            axes.set_title(_panel_name(panel), fontsize=10)
        marks |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(
        marks.values(), marks, loc="outside upper center", ncols=4, frameon=False, fontsize=9
    )
    return figure


def label_sizes(axes: Axes, sizes: Sequence[float], name: Literal["x", "y"] = "x") -> None:
    """A logarithmic axis with the sizes that there are, as far as they have room."""
    axis = make_logarithmic(axes, name)
    ticks = sorted(set(sizes))
    ticks = ticks[:: math.ceil(len(ticks) / MOST_TICKS)]
    axis.set_ticks(ticks, [f"{x:g}" if x < 1e5 else f"{x:.2g}" for x in ticks])
    axis.set_minor_locator(NullLocator())


def draw_law(axes: Axes, fit: LawFit, place: int, *, label: str) -> None:
    """Trials as dots, means as marks, the law as a line with its band."""
    colour, marker = group_colour(place), GROUP_MARKERS[place % len(GROUP_MARKERS)]
    dots = [(x, one.value) for x, one in zip(fit.places, fit.trials, strict=True)]
    axes.scatter(
        fit.places, [one.value for one in fit.trials], s=9, color=colour, alpha=0.35, linewidths=0
    )
    names = [f"{one.name}\n{LOSS} {formats.number(one.value)}" for one in fit.trials]
    name_marks(axes, dots, names, [one.trial_id for one in fit.trials])
    axes.plot(
        [point.x for point in fit.points], [point.mean for point in fit.points],
        marker, color=colour, markersize=4.5, label=label,
    )  # fmt: skip
    if fit.band:
        x, law, low, high = zip(*fit.band, strict=True)
        axes.plot(x, law, color=colour, linewidth=1.2)
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
