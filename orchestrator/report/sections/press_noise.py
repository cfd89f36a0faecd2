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
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import NOTHING, Section

PRECISIONS = ("float64", "float32")


def press_noise_section(numbers: PressNoiseNumbers) -> Section:
    """Return the section of a PressNoise request."""
    if numbers.noise.empty and numbers.trips.empty:
        return NOTHING
    printed = f"; printed ones are of a {PRINTED_SIZE:,} x {PRINTED_SIZE:,} matrix"
    noise = Table(
        caption="Ranks of an n x n matrix with Gaussian noise of variance c / "
        f"n\N{SUPERSCRIPT TWO}{printed}",
        frame=numbers.noise,
        shown=[name for name in numbers.noise.columns if name != "rank"],
        file="press_noise.csv",
    )
    trips = Table(
        caption=f"Ranks of an n x n matrix after SVD round trips that cut nothing{printed}",
        frame=numbers.trips,
        shown=list(numbers.trips.columns),
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


def _findings(numbers: PressNoiseNumbers) -> Iterator[str]:
    noise, trips = list(rows(numbers.noise)), list(rows(numbers.trips))
    if printed := [line for line in noise if line.printed_press_rank is not None]:
        yield _of_printed(printed)
    for precision in PRECISIONS:
        if lines := [line for line in noise if line.precision == precision]:
            yield from _of_precision(precision, lines)
    if trips:
        yield _of_trips(trips)


def _of_printed(lines: Sequence[Any]) -> str:
    law = max(
        abs(rank_at_printed_size(line.noise_variance) / line.printed_press_rank - 1)
        for line in lines
    )
    middle = min(lines, key=lambda line: abs(line.printed_press_rank - PRINTED_SIZE / 2))
    raw = rank_at_printed_size(
        middle.noise_variance * PRINTED_SIZE**2, sigma_max=PRINTED_SIZE * math.log(PRINTED_SIZE)
    )
    if lines[0].size == PRINTED_SIZE:
        miss = max(abs(line.press_rank / line.printed_press_rank - 1) for line in lines)
        counted = f"and the counted ones differ by at most {miss:.2%}"
    else:
        counted = (
            f"while those counted here are for n = {lines[0].size:,}, for which it predicts others"
        )
    return (
        f"The law for n = {PRINTED_SIZE:,} differs from the {len(lines)} printed Press ranks by at "
        f"most {law:.2%}, {counted}. A log-P matrix that is not divided by its largest singular "
        f"value, which is at least n ln n, cannot give them: at c = {middle.noise_variance:g} the "
        f"law is then at most {raw:.0f}, even for noise of variance c, but "
        f"{middle.printed_press_rank:,} is printed."
    )


def _of_precision(precision: str, lines: Sequence[Any]) -> Iterator[str]:
    size, rank = lines[0].size, lines[0].rank
    misses = [abs(line.press_rank - line.press_rank_predicted) for line in lines]
    agreed = sum(miss <= COUNT_SPREAD for miss in misses)
    yield (
        f"In {precision}, the Press rank of a {size:,} x {size:,} matrix of rank {rank} with noise "
        f"agrees with the quarter-circle law within {COUNT_SPREAD:g} in {agreed} of {len(lines)} "
        f"cases (largest difference {max(misses):.1f}). It counts the noise's singular values as "
        "soon as they exceed the tolerance, even those of tiny weight."
    )
    if full := [line for line in lines if line.press_rank > size / 2]:
        least = full[-1]
        words = ", ".join(
            f"{getattr(least, name)} ({name.removeprefix('effective_rank_')})" for name in RANKS[1:]
        )
        yield (
            f"At c = {least.noise_variance:g} in {precision}, the noise adds about "
            f"{least.noise_variance:g} to a sum of squares above 1. The Press rank is then "
            f"{least.press_rank:,}, and the effective ranks are {words}."
        )
    moved = [
        f"c = {line.noise_variance:g}"
        for line in lines
        if any(getattr(line, name) != getattr(lines[-1], name) for name in RANKS[1:])
    ]
    yield (
        f"In {precision}, effective ranks differ from those of the least noise at "
        f"{', '.join(moved) or 'no c'}."
    )


def _of_trips(trips: Sequence[Any]) -> str:
    first, last = trips[0], trips[-1]
    return (
        f"The Press rank is {last.rank} after "
        f"{sum(trip.press_rank == trip.rank for trip in trips)} of {len(trips)} round trips; Table "
        "14 prints 10 for all ten. The largest singular value that is not counted moves from "
        f"{first.largest_below_in_tolerances:.2f} to {last.largest_below_in_tolerances:.2f} of the "
        "tolerance. It is rounding error, which depends on the matrix and the LAPACK library."
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
        printed_too = ", and the printed ranks of the supplement's matrix" if printed else ""
        yield LineFigure(
            name=f"press_noise_{precision}",
            caption=f"Press rank over c, {precision}: counted, by the quarter-circle law"
            f"{printed_too}, each as a share of the matrix' rows.",
            marks=pd.concat([tidy(marks), curves.dropna(subset=["group"])]),
            x="c: the noise has variance c / n\N{SUPERSCRIPT TWO}",
            y={"": "Press rank / n"},
        )


def _mark(variance: float, rank: int, size: int, source: str) -> dict[str, Any]:
    group, share = f"{source}, n = {size:,}", rank / size
    text = f"{group}, c {variance:g}\nPress rank / n {share:.4g}"
    return {"kind": "mean", "group": group, "x": variance, "y": share, "text": text}
