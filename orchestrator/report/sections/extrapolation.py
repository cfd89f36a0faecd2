"""The size below which the loss departs from the power law of larger models."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from orchestrator.analysis import ExtrapolationNumbers, rows, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table, estimate
from orchestrator.report.figures import Drawing
from orchestrator.report.findings import Finding, describe, judge
from orchestrator.report.forest import Forest, estimates
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.prose import cautions, prose
from orchestrator.report.sections.power_laws import LOSS, law_marks
from orchestrator.report.sections.section import Section
from orchestrator.words import listed

VERDICTS = {1: "above the law", -1: "below the law", 0: "no difference shown"}


def extrapolation_section(numbers: ExtrapolationNumbers) -> Section:
    """Return the section of an Extrapolation request."""
    request = numbers.request
    return Section(
        kind="extrapolation",
        heading=request.title or f"Which sizes differ from the law fitted to {_larger(request.x)}?",
        findings=tuple(_findings(numbers)),
        cautions=_cautions(numbers),
        tables=tuple(_tables(numbers)),
        claim=request.claim,
        method=prose("method_extrapolation.txt", x=formats.title(request.x)),
        drawings=tuple(_drawings(numbers)),
        wide=False,
    )


def _findings(numbers: ExtrapolationNumbers) -> Iterator[Finding]:
    x = numbers.request.x
    if numbers.held_out.empty:
        [law] = rows(numbers.laws.fits)
        yield describe("law_unknown", larger=_larger(x), missing=law.missing)
        return
    verdicts = [
        judge(
            row,
            "difference",
            row.bonferroni_p,
            metric="loss",
            groups=(_size(row.x), _larger(x)),
            n=row.n,
            fitted_to=row.fitted_to,
            missing=row.missing,
        )
        for row in rows(numbers.held_out)
    ]
    yield describe("extrapolation", verdicts, x=x)


def _larger(x: str) -> str:
    return "models with more parameters" if x == "parameters" else f"larger {formats.title(x)}s"


def _cautions(numbers: ExtrapolationNumbers) -> tuple[str, ...]:
    if numbers.held_out.empty:
        return ()
    return cautions(
        "extrapolation",
        law=numbers.laws.fits.to_dict("records")[0],
        fitted=len(numbers.fitted),
        detectable=list(numbers.held_out["detectable"].dropna()),
    )


def _size(x: float) -> str:
    return f"{x:g}" if x < 1e5 else f"{x:.3g}"


def _tables(numbers: ExtrapolationNumbers) -> Iterator[Table]:
    [law] = rows(numbers.laws.fits)
    x = formats.title(numbers.request.x)
    names = {"x": numbers.request.x}
    fitted = listed([_size(size) for size in numbers.fitted] or ["none"])
    yield Table(
        caption="Measured loss, and loss predicted from the larger sizes, in nats per token. "
        f"The law fitted to {x} {fitted} has E {estimate(law, 'E')}, b {estimate(law, 'b')}",
        frame=numbers.held_out,
        columns=[
            ("x", Column(x, _size)),
            "n",
            "fitted_to",
            "mean_loss",
            "predicted",
            "difference",
            "p",
            "bonferroni_p",
            "detectable",
            (
                "verdict",
                Column(
                    "verdict",
                    cell=lambda row: (
                        formats.DASH if row.bonferroni_p is None else VERDICTS[row.leaves]
                    ),
                ),
            ),
        ],
        file="extrapolation.csv",
        names=names,
    )
    fit = numbers.laws.fits.drop(columns=["panel", "group", "trials", "sizes"])
    fit.insert(0, "x", numbers.request.x)
    fit.insert(1, "fitted", " ".join(f"{size:g}" for size in numbers.fitted))
    yield Table(frame=fit, file="extrapolation_law.csv")
    points = numbers.laws.points.drop(columns=["panel", "group"])
    yield Table(frame=points, file="extrapolation_losses.csv", names=names)


def _drawings(numbers: ExtrapolationNumbers) -> Iterator[Drawing]:
    x = formats.title(numbers.request.x)
    first = next((row for row in rows(numbers.held_out) if row.leaves), None)
    name = x.replace(" ", "_")
    dots = f"Test loss against {x}. One dot per trial; circles are means over seeds"
    if not numbers.held_out.empty:
        whole = "all sizes" if first is None else "the sizes above the first that differs from it"
        dots += (
            "; crosses are predictions of the law fitted to larger sizes. The line is the law of "
            f"{whole}. Bars and band are 95% intervals"
        )
    marks = [law_marks(numbers.laws).assign(group="mean of the trials")]
    marks += [
        tidy(
            {
                "kind": "prediction",
                "group": "predicted from larger sizes",
                "x": row.x,
                "y": row.predicted,
                "low": row.predicted_low,
                "high": row.predicted_high,
                "text": f"{x} {_size(row.x)}\npredicted "
                + estimate(row, "predicted", formats.digits(4)),
            }
            for row in rows(numbers.held_out)
        )
    ]
    yield LineFigure(
        name=f"law_of_larger_{name}",
        caption=f"{dots}.",
        marks=pd.concat(marks),
        x=x,
        y={"": formats.capital(LOSS)},
        ticks=list(numbers.laws.points["x"]),
    )
    if numbers.held_out.empty:
        return
    yield Forest(
        name=f"off_the_law_of_larger_{name}",
        caption=f"Loss minus the prediction of the law fitted to larger sizes, by {x}, with 95% "
        "intervals. Right of the dashed line, the model is worse than predicted.",
        marks=estimates(numbers.held_out, "difference", name="x"),
        labels={"": "loss minus prediction (nats per token)"},
        null=0.0,
    )
