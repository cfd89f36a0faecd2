"""Power laws of the loss by group, and the size at which the baseline has the same loss."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from orchestrator.analysis import LawFrames, PowerLawNumbers, rows
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table, with_interval
from orchestrator.report.figures import Drawing
from orchestrator.report.findings import Finding, describe, judge
from orchestrator.report.forest import Forest, estimates
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.prose import cautions, prose
from orchestrator.report.sections.section import Section

LOSS = "loss (nats per token)"


def power_law_section(numbers: PowerLawNumbers) -> Section:
    """Return the section of a PowerLaw request."""
    request = numbers.request
    x = formats.title(request.x)
    return Section(
        kind="power-laws",
        heading=request.title or f"The loss as a power law of the {x}",
        findings=tuple(_findings(numbers)),
        cautions=cautions(
            "power_laws",
            laws=numbers.laws.fits.to_dict("records"),
            factors=numbers.factors.to_dict("records"),
            seed_by_group_p=numbers.seed_by_group_p,
            most_seeds=max(numbers.laws.points["n"], default=0),
        ),
        tables=tuple(_tables(numbers)),
        claim=request.claim,
        method=prose("method_power_laws.txt", x=x, baseline=request.baseline),
        drawings=tuple(_drawings(numbers)),
    )


def _findings(numbers: PowerLawNumbers) -> Iterator[Finding]:
    of_request = {"x": numbers.request.x, "baseline": numbers.request.baseline}
    if numbers.factors.empty:
        reasons = [row.missing for row in rows(numbers.laws.fits) if row.missing]
        missing = reasons[0] if reasons else "fewer than two groups have a law"
        yield describe("no_factors", **of_request, missing=missing)
        return
    yield describe(
        "size_factors",
        (
            judge(
                row,
                "factor",
                row.holm_p,
                metric=numbers.request.x,
                groups=(row.group, numbers.request.baseline),
                null=1.0,
                panel=row.panel,
                missing=row.missing,
            )
            for row in rows(numbers.factors)
        ),
        **of_request,
    )


def _tables(numbers: PowerLawNumbers) -> Iterator[Table]:
    request, laws = numbers.request, numbers.laws
    x, baseline = formats.title(request.x), request.baseline
    panel = request.panel or "panel"
    names = {"panel": panel, "group": request.by, "x": request.x}
    of_panel = [("panel", Column("model", formats.setting))] if request.panel else []
    key: list[str | tuple[str, Column]] = [*of_panel, "group"]
    yield Table(
        caption="Fitted laws: loss in nats per token = E + a x^-b",
        frame=laws.fits,
        columns=[*key, "trials", "sizes", "E", "b", "log_a", "misfit_p", NOT_PINNED],
        file="power_laws.csv",
        names=names,
    )
    yield Table(frame=laws.points, file="law_losses.csv", names=names)
    factor = with_interval("factor")
    yield Table(
        caption=f"For the same loss, {baseline} needs this factor times the {x} of the group",
        frame=numbers.factors,
        columns=[*key, ("factor", factor), "p", "holm_p", ("misfit_p", ONE_FACTOR)],
        file="factors.csv",
        names=names,
    )
    equal = with_interval(f"{x} of {baseline} with the same loss")
    yield Table(
        caption=f"At single sizes: the {x} that {baseline} needs for the same loss (\N{INFINITY}: "
        f"none is enough). The law of {baseline} is shifted to its mean loss at that size",
        frame=numbers.equals,
        columns=[*key, "x", "mean_loss", ("equal", equal), "ratio", "p", "holm_p", "extrapolated"],
        file="equal_ranks.csv",
        names=names,
        folded=True,
    )


NOT_PINNED = (
    "not_pinned",
    Column(
        "not determined",
        cell=lambda law: law.not_pinned.replace(" ", ", ") or law.missing or "none",
    ),
)
ONE_FACTOR = Column("misfit of one factor: p", formats.p_value)


def _drawings(numbers: PowerLawNumbers) -> Iterator[Drawing]:
    request = numbers.request
    x = formats.title(request.x)
    yield LineFigure(
        name=f"loss_over_{x.replace(' ', '_')}",
        caption=f"Test loss against {x}. One dot per trial; large marks are means over seeds; "
        "lines are the laws E + a x^-b with 95% bands.",
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
        caption=f"For the same loss, {request.baseline} needs this factor times the {x} of the "
        f"group, with 95% intervals. Right of the dashed line, {request.baseline} needs more.",
        marks=estimates(numbers.factors, "factor", name="group"),
        labels=dict.fromkeys(panels, f"factor of {x}"),
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
