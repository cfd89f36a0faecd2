"""Press rank under noise, next to the quarter-circle law and printed ranks (SM Tables 14 to 16)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from orchestrator.analysis import (
    COUNT_SPREAD,
    PRINTED_SIZE,
    RANKS,
    PressNoiseNumbers,
    rank_at_printed_size,
    rows,
    tidy,
)
from orchestrator.report.columns import Table
from orchestrator.report.findings import Finding, describe
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import NOTHING, Section

PRECISIONS = ("float64", "float32")


def press_noise_section(numbers: PressNoiseNumbers) -> Section:
    """Return the section of a PressNoise request."""
    if numbers.noise.empty and numbers.trips.empty:
        return NOTHING
    printed = f"; printed ranks are of a {PRINTED_SIZE:,} x {PRINTED_SIZE:,} matrix"
    noise = Table(
        caption="Ranks of an n x n matrix with Gaussian noise of variance c / "
        f"n\N{SUPERSCRIPT TWO}{printed}",
        frame=numbers.noise,
        columns=[name for name in numbers.noise.columns if name != "rank"],
        file="press_noise.csv",
    )
    trips = Table(
        caption=f"Ranks of an n x n matrix after SVD round trips that remove nothing{printed}",
        frame=numbers.trips,
        columns=list(numbers.trips.columns),
        file="round_trips.csv",
    )
    return Section(
        kind="noise",
        heading="Ranks under noise",
        findings=tuple(_findings(numbers)),
        tables=(noise, trips),
        method=prose("method_press_noise.txt"),
        drawings=tuple(_drawings(numbers)),
    )


def _findings(numbers: PressNoiseNumbers) -> Iterator[Finding]:
    noise, trips = list(rows(numbers.noise)), list(rows(numbers.trips))
    if printed := [line for line in noise if line.printed_press_rank is not None]:
        yield _of_printed(printed)
    for precision in PRECISIONS:
        if lines := [line for line in noise if line.precision == precision]:
            yield from _of_precision(precision, lines)
    if trips:
        yield describe(
            "round_trips",
            rank=trips[-1].rank,
            equal=sum(trip.press_rank == trip.rank for trip in trips),
            trips=len(trips),
            first=trips[0].largest_below_in_tolerances,
            last=trips[-1].largest_below_in_tolerances,
        )


def _of_printed(lines: Sequence[Any]) -> Finding:
    middle = min(lines, key=lambda line: abs(line.printed_press_rank - PRINTED_SIZE / 2))
    law = (
        abs(rank_at_printed_size(line.noise_variance) / line.printed_press_rank - 1)
        for line in lines
    )
    is_same_size = lines[0].size == PRINTED_SIZE
    counted = (abs(line.press_rank / line.printed_press_rank - 1) for line in lines)
    return describe(
        "printed_noise_ranks",
        printed_size=PRINTED_SIZE,
        printed=len(lines),
        law_off=max(law),
        size=lines[0].size,
        counted_off=max(counted) if is_same_size else None,
        middle=middle.noise_variance,
        printed_rank=middle.printed_press_rank,
        undivided=rank_at_printed_size(
            middle.noise_variance * PRINTED_SIZE**2,
            sigma_max=PRINTED_SIZE * math.log(PRINTED_SIZE),
        ),
    )


def _of_precision(precision: str, lines: Sequence[Any]) -> Iterator[Finding]:
    moved = [
        line.noise_variance
        for line in lines
        if any(getattr(line, name) != getattr(lines[-1], name) for name in RANKS[1:])
    ]
    misses = [abs(line.press_rank - line.press_rank_predicted) for line in lines]
    yield describe(
        "noise_law",
        precision=precision,
        size=lines[0].size,
        rank=lines[0].rank,
        within=COUNT_SPREAD,
        agreed=sum(miss <= COUNT_SPREAD for miss in misses),
        cases=len(lines),
        farthest=max(misses),
        moved=moved,
    )
    if full := [line for line in lines if line.press_rank > lines[0].size / 2]:
        ranks = [
            (name.removeprefix("effective_rank_"), getattr(full[-1], name)) for name in RANKS[1:]
        ]
        yield describe(
            "least_filling_noise",
            precision=precision,
            variance=full[-1].noise_variance,
            press_rank=full[-1].press_rank,
            effective_ranks=ranks,
        )


def _drawings(numbers: PressNoiseNumbers) -> Iterator[LineFigure]:
    for precision in dict.fromkeys(numbers.laws["precision"]):
        laws = numbers.laws[numbers.laws["precision"] == precision]
        of_precision = (line for line in rows(numbers.noise) if line.precision == precision)
        lines = [line for line in of_precision if line.noise_variance > 0]
        marks = [
            _mark(line.noise_variance, line.press_rank, line.size, "counted") for line in lines
        ]
        printed = [line for line in lines if line.printed_press_rank is not None]
        marks += [
            _mark(line.noise_variance, line.printed_press_rank, PRINTED_SIZE, "printed")
            for line in printed
        ]
        named = {mark["group"].rpartition(" ")[2]: mark["group"] for mark in marks}
        sizes = laws["size"].map("{:,}".format)
        curves = laws.assign(
            kind="curve", group=sizes.map(named), x=laws["noise_variance"], y=laws["share"]
        )
        printed_too = ", and ranks that the supplement prints" if printed else ""
        yield LineFigure(
            name=f"press_noise_{precision}",
            caption=f"Press rank over c in {precision}, as a share of the matrix' rows. Points: "
            f"counted ranks{printed_too}. Curves: predictions of the quarter-circle law.",
            marks=pd.concat([tidy(marks), curves.dropna(subset=["group"])]),
            x="c: the noise has variance c / n\N{SUPERSCRIPT TWO}",
            y={"": "Press rank / n"},
        )


def _mark(variance: float, rank: int, size: int, source: str) -> dict[str, Any]:
    group, share = f"{source}, n = {size:,}", rank / size
    text = f"{group}, c {variance:g}\nPress rank / n {share:.4g}"
    return {"kind": "mean", "group": group, "x": variance, "y": share, "text": text}
