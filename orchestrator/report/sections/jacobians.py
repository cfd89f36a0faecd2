"""Mean spectra of layers' Jacobians, and which claims of the blog post hold (Orhan 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.analysis import (
    FEWEST_SEEDS,
    HALF,
    STRAIGHT_R2,
    JacobianNumbers,
    rows,
)
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table
from orchestrator.report.findings import Finding, Verdict, describe
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import NOTHING, Section

FLOOR = 1e-6
"""Lower end of the logarithmic axis. Smaller means occur only if a value is zero at some inputs."""
PANELS = {"softmax": "softmax gates", "constant": "constant gates 1/K"}


def jacobian_section(numbers: JacobianNumbers) -> Section:
    """Return the section of a JacobianSpectra request."""
    if numbers.spectra.empty:
        return NOTHING
    return Section(
        kind="jacobians",
        heading="Mean singular values, and the claims about them",
        findings=tuple(_findings(numbers)),
        tables=tuple(_tables(numbers)),
        method=prose(
            "method_jacobians.txt",
            low=f"{HALF.low:g}",
            high=f"{HALF.high:g}",
            straight=STRAIGHT_R2,
            fewest=FEWEST_SEEDS,
        ),
        drawings=tuple(_drawings(numbers.spectra)),
    )


def _findings(numbers: JacobianNumbers) -> Iterator[Finding]:
    for claim in rows(numbers.claims):
        verdict = Verdict(
            verdict="too few seeds" if claim.seeds < FEWEST_SEEDS else "not measured",
            metric=claim.metric,
            value=claim.mean,
            n=claim.seeds,
        )
        yield describe("jacobian_claim", [verdict], **vars(claim))
    if not numbers.zeros.empty:
        yield _zero_rows(numbers.zeros)
    if study := numbers.request.benchmark:
        yield describe("untrained", study=study)


def _zero_rows(zeros: pd.DataFrame) -> Finding:
    shares = [row for row in rows(zeros) if row.mean is not None]
    tested = [row for row in shares if row.mean_low is not None]
    inside = (row.mean_low <= row.expected <= row.mean_high for row in tested)
    return describe(
        "zero_rows",
        farthest=max((abs(row.mean - row.expected) for row in shares), default=0.0),
        inside=sum(inside),
        intervals=len(tested),
        fewest=FEWEST_SEEDS,
    )


def _tables(numbers: JacobianNumbers) -> Iterator[Table]:
    plain = {"difference": ("difference", Column("difference", formats.digits(4)))}
    columns = [plain.get(name, name) for name in numbers.steps.columns if name != "seeds"]
    decided = numbers.steps[numbers.steps["seeds"] >= FEWEST_SEEDS] if columns else numbers.steps
    yield Table(
        caption="The comparisons that decide the post's claims. The post shows figures without "
        "numbers",
        frame=decided,
        columns=columns,
    )
    yield Table(frame=numbers.steps, file="steps.csv")
    interval = Column("95% interval", cell=_zeros_interval)
    yield Table(
        caption="Share of the Jacobian's rows that are exactly zero: units whose experts are all "
        "off",
        frame=numbers.zeros,
        columns=[
            "layer",
            "seeds",
            ("expected", Column("expected")),
            ("mean", Column("mean")),
            ("interval", interval),
        ],
    )
    yield Table(frame=numbers.spectra, file="spectra.csv")


def _zeros_interval(row: Any) -> str:
    if row.mean_low is None:
        return formats.DASH
    return f"{row.mean_low:.5f} to {row.mean_high:.5f}"


def _drawings(spectra: pd.DataFrame) -> Iterator[LineFigure]:
    caption = "Mean singular values of the Jacobian over their index, as in the post's figures"
    bands = "bands: one standard deviation over seeds."
    for scale, words in (("linear", ""), ("logarithmic", ", logarithmic")):
        yield LineFigure(
            name=f"jacobian_spectra_{scale}",
            caption=f"{caption}{words}; {bands}",
            marks=_marks(spectra, least=FLOOR if words else 0.0),
            x="index of the singular value",
            y={"": "mean singular value"},
            logarithmic_x=False,
            logarithmic_y={""} if words else (),
        )


def _marks(spectra: pd.DataFrame, *, least: float) -> pd.DataFrame:
    mean = spectra["mean_singular_value"].astype(float)
    deviation = spectra["deviation_over_seeds"].astype(float)
    curves = spectra.assign(
        kind="curve",
        x=spectra["index"],
        y=mean.clip(lower=least),
        low=(mean - deviation).clip(lower=least),
        high=(mean + deviation).clip(lower=least),
        group=spectra["layer"],
    )
    panels = (
        part[part["gates"].isin(["none", gates])].assign(panel=f"{family}, {title}")
        for family, part in curves.groupby("family", sort=False)
        for gates, title in PANELS.items()
    )
    return pd.concat(panels)
