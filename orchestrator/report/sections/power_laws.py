"""Power laws of the loss by group, and each group's factor of size that equals the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from orchestrator.analysis import SIGNIFICANCE, LawFrames, PowerLawNumbers, rows
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table, with_interval
from orchestrator.report.figures import Drawing
from orchestrator.report.findings import Finding, describe, judge
from orchestrator.report.forest import Forest, estimates
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.words import listed

LOSS = "loss (nats per token)"


def power_law_section(numbers: PowerLawNumbers) -> Section:
    """Return the section of a PowerLaw request."""
    request = numbers.request
    x = formats.title(request.x)
    return Section(
        kind="power-laws",
        heading=request.title or f"The loss as a power law of the {x}",
        findings=tuple(_findings(numbers)),
        cautions=tuple(_cautions(numbers)),
        tables=tuple(_tables(numbers)),
        remarks=(request.claim,) if request.claim else (),
        method=prose("method_power_laws.txt", x=x, baseline=request.baseline),
        drawings=tuple(_drawings(numbers)),
    )


def _findings(numbers: PowerLawNumbers) -> Iterator[Finding]:
    of_request = {"x": numbers.request.x, "baseline": numbers.request.baseline}
    if numbers.factors.empty:
        reasons = [row.missing for row in rows(numbers.laws.fits) if row.missing]
        missing = reasons[0] if reasons else f"no law of {numbers.request.baseline} and another one"
        yield describe("no_factors", **of_request, missing=missing)
        return
    for panel, factors in numbers.factors.groupby("panel", sort=False, dropna=False):
        yield Finding(
            template="size_factors",
            verdicts=tuple(
                judge(
                    row,
                    "factor",
                    row.holm_p,
                    metric=numbers.request.x,
                    groups=(row.group, numbers.request.baseline),
                    null=1.0,
                    missing=row.missing,
                )
                for row in rows(factors)
            ),
            numbers={**of_request, "panel": None if pd.isna(panel) else panel},
        )


def _cautions(numbers: PowerLawNumbers) -> Iterator[str]:
    laws = list(rows(numbers.laws.fits))
    fitted = sum(law.E is not None for law in laws)
    for name, words in (("E", "the limit E"), ("b", "the exponent b")):
        if loose := [_name(law) for law in laws if name in law.not_pinned.split()]:
            yield (
                f"{len(loose)} of {fitted} laws do not determine {words}, which is at a bound of "
                f"the fit, or an end of its interval is: {listed(loose)}."
            )
    if misfits := _misfits(laws):
        yield (
            f"The law misses {listed(misfits)} by more than the seeds' spread (F-test, p < "
            f"{SIGNIFICANCE}). The intervals contain the effect of other seeds, not that of "
            "another formula."
        )
    if misfits := _misfits(rows(numbers.factors)):
        yield (
            f"One factor for all sizes is not enough (F-test, p < {SIGNIFICANCE}) for "
            f"{listed(misfits)}: see the table of single sizes."
        )
    for panel, p_value in numbers.seed_by_group_p.items():
        if p_value < SIGNIFICANCE:
            yield (
                f"{_at(panel)}a seed shifts some groups at all sizes (F-test, "
                f"{formats.p_equals(p_value)}). The intervals do not include this effect and are "
                "too narrow. With an effect as large as the rest, 84% of a factor's intervals "
                "contained the truth in simulations."
            )
    if max(numbers.laws.points["n"], default=0) == 2:
        yield (
            "With two seeds a size, the intervals of E are wider than they need to be: they "
            "contained the truth in 98 to 99% of simulations, with three seeds in 97%."
        )
    if any(law.E_low is None for law in laws):
        yield "Laws of one seed a size have no interval, and their factors no test."


def _misfits(lines: Iterable[Any]) -> list[str]:
    """Return the groups whose law an F-test rejects."""
    return [
        _name(line) for line in lines if line.misfit_p is not None and line.misfit_p < SIGNIFICANCE
    ]


def _at(panel: Any) -> str:
    return "" if panel is None else f"{formats.setting(panel)}: "


def _name(line: Any) -> str:
    return (
        f"{line.group}" if line.panel is None else f"{line.group} ({formats.setting(line.panel)})"
    )


def _tables(numbers: PowerLawNumbers) -> Iterator[Table]:
    request, laws = numbers.request, numbers.laws
    x, baseline = formats.title(request.x), request.baseline
    panel = request.panel or "panel"
    names = {"panel": panel, "group": request.by, "x": request.x}
    of_panel = [("panel", Column("model", formats.setting))] if request.panel else []
    key: list[str | tuple[str, Column]] = [*of_panel, "group"]
    yield Table(
        caption="Loss in nats per token as E + a x^-b",
        frame=laws.fits,
        columns=[*key, "trials", "sizes", "E", "b", "log_a", "misfit_p", NOT_PINNED],
        file="power_laws.csv",
        names=names,
    )
    yield Table(frame=laws.points, file="law_losses.csv", names=names)
    factor = with_interval(f"times the {x}")
    yield Table(
        caption=f"By what factor of its {x} each is like {baseline}",
        frame=numbers.factors,
        columns=[*key, ("factor", factor), "p", "holm_p", ("misfit_p", ONE_FACTOR)],
        file="factors.csv",
        names=names,
    )
    equal = with_interval(f"{x} of {baseline} that is like it")
    yield Table(
        caption=f"At single sizes: the {x} at which the law of {baseline}, moved through its "
        "trials of that size, has the same loss (\N{INFINITY}: none has)",
        frame=numbers.equals,
        columns=[*key, "x", "mean_loss", ("equal", equal), "ratio", "p", "holm_p", "extrapolated"],
        file="equal_ranks.csv",
        names=names,
        folded=True,
    )


NOT_PINNED = (
    "not_pinned",
    Column(
        "not pinned",
        cell=lambda law: law.not_pinned.replace(" ", ", ") or law.missing or "none",
    ),
)
ONE_FACTOR = Column("one factor misfits: p", formats.p_value)


def _drawings(numbers: PowerLawNumbers) -> Iterator[Drawing]:
    request = numbers.request
    x = formats.title(request.x)
    yield LineFigure(
        name=f"loss_over_{x.replace(' ', '_')}",
        caption=f"Test loss against {x}: a dot a trial, marks are means over seeds, lines the laws "
        "E + a x^-b with their 95% bands.",
        marks=law_marks(numbers.laws),
        x=x,
        y={"": formats.capital(LOSS)},
        ticks=list(numbers.laws.points["x"]),
    )
    if numbers.factors.empty:
        return
    panels = [formats.setting(panel or "") for panel in numbers.factors["panel"]]
    yield Forest(
        name=f"factor_of_{x.replace(' ', '_')}",
        caption=f"By what factor of its {x} each head is like {request.baseline}, with 95% "
        "intervals; right of the dashed line it is like a larger one.",
        marks=estimates(numbers.factors, "factor", name="group"),
        labels=dict.fromkeys(panels, f"times the {x}, {request.baseline} = 1"),
        null=1.0,
        logarithmic=True,
    )


def law_marks(laws: LawFrames) -> pd.DataFrame:
    """Return the marks of a figure of laws: trials, means over seeds, and curves with bands."""
    points = laws.points.assign(kind="mean", y=laws.points["mean_loss"])
    trials = laws.trials.assign(
        kind="trial",
        y=laws.trials["loss"],
        text=[f"{one.name}\n{LOSS} {formats.number(one.loss)}" for one in rows(laws.trials)],
    )
    ends = {"low": laws.band["loss_low"], "high": laws.band["loss_high"]}
    curves = laws.band.assign(kind="curve", y=laws.band["loss"], **ends)
    return pd.concat([trials, points, curves])
