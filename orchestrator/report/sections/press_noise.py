"""Press' rank under noise, beside the quarter-circle law and the printed ranks (SM Tables 14 to
16)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from orchestrator.analysis import (
    COUNT_SPREAD,
    PRINTED_SIZE,
    RANKS,
    NoisyMatrix,
    PressNoiseNumbers,
    RoundTrip,
    rank_at_printed_size,
)
from orchestrator.report.figures import ABOVE, Drawing, group_colour, make_logarithmic, new_figure
from orchestrator.report.hover import name_marks
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import csv_lines, record_table

PRECISIONS = ("float64", "float32")


def press_noise_section(numbers: PressNoiseNumbers) -> Section:
    """The tables and the figure of a PressNoise request."""
    noise, trips = list(map(_noise_record, numbers.noise)), [vars(trip) for trip in numbers.trips]
    printed = f"; printed ones are of a {PRINTED_SIZE:,} x {PRINTED_SIZE:,} matrix"
    captions = {
        f"Ranks of an n x n matrix with Gaussian noise of variance c / n\N{SUPERSCRIPT TWO}{printed}": noise,
        f"Ranks of an n x n matrix after SVD round trips that cut nothing{printed}": trips,
    }
    files = {"press_noise.csv": noise, "round_trips.csv": trips}
    return Section(
        kind="noise",
        heading="Ranks under noise",
        findings=tuple(_findings(numbers)) or ("No matrix was measured yet.",),
        tables=tuple(
            record_table(caption, records) for caption, records in captions.items() if records
        ),
        method=prose("method_press_noise.txt"),
        files={name: csv_lines(records) for name, records in files.items() if records},
        drawings=tuple(_drawings(numbers)),
    )


def _findings(numbers: PressNoiseNumbers) -> Iterator[str]:
    if printed := [line for line in numbers.noise if line.printed]:
        yield _of_printed(printed)
    for precision in PRECISIONS:
        if lines := [line for line in numbers.noise if line.precision == precision]:
            yield from _of_precision(precision, lines)
    if numbers.trips:
        yield _of_trips(numbers.trips)


def _of_printed(lines: Sequence[NoisyMatrix]) -> str:
    law = max(
        abs(rank_at_printed_size(line.variance) / line.printed["press_rank"] - 1) for line in lines
    )
    middle = min(lines, key=lambda line: abs(line.printed["press_rank"] - PRINTED_SIZE / 2))
    raw = rank_at_printed_size(
        middle.variance * PRINTED_SIZE**2, sigma_max=PRINTED_SIZE * math.log(PRINTED_SIZE)
    )
    if lines[0].size == PRINTED_SIZE:
        miss = max(
            abs(line.counted["press_rank"] / line.printed["press_rank"] - 1) for line in lines
        )
        counted = f"and the counted ones differ by at most {miss:.2%}"
    else:
        counted = (
            f"while those counted here are for n = {lines[0].size:,}, where the law predicts others"
        )
    return (
        f"The law for n = {PRINTED_SIZE:,} differs from the {len(lines)} printed Press ranks by at "
        f"most {law:.2%}, "
        f"{counted}. A log-P matrix that is not divided by its largest singular value, which is at "
        f"least n ln n, "
        f"cannot give them: at c = {middle.variance:g} the law is then at most {raw:.0f}, even for "
        f"noise of variance "
        f"c, where {middle.printed['press_rank']:,} is printed."
    )


def _of_precision(precision: str, lines: Sequence[NoisyMatrix]) -> Iterator[str]:
    size, rank = lines[0].size, lines[0].rank
    misses = [abs(line.counted["press_rank"] - line.predicted(line.variance)) for line in lines]
    agreed = sum(miss <= COUNT_SPREAD for miss in misses)
    yield (
        f"In {precision}, the Press rank of a {size:,} x {size:,} matrix of rank {rank} with noise "
        f"is what the "
        f"quarter-circle law predicts within {COUNT_SPREAD:g} in {agreed} of {len(lines)} cases "
        f"(largest difference "
        f"{max(misses):.1f}): Press' rank counts the noise's singular values as soon as they pass "
        f"the tolerance, "
        "whatever their weight."
    )
    if full := [line for line in lines if line.counted["press_rank"] > size / 2]:
        least = full[-1]
        words = ", ".join(
            f"{least.counted[name]} ({name.removeprefix('effective_rank_')})" for name in RANKS[1:]
        )
        yield (
            f"At c = {least.variance:g} in {precision}, where the noise adds about "
            f"{least.variance:g} to a sum of "
            f"squares above 1, the Press rank is {least.counted['press_rank']:,} and the effective "
            f"ranks are {words}."
        )
    moved = [
        f"c = {line.variance:g}"
        for line in lines
        if any(line.counted[n] != lines[-1].counted[n] for n in RANKS[1:])
    ]
    yield f"In {precision}, effective ranks differ from those of the least noise at {', '.join(moved) or 'no c'}."


def _of_trips(trips: Sequence[RoundTrip]) -> str:
    first, last = trips[0], trips[-1]
    return (
        f"The Press rank is {last.rank} after "
        f"{sum(trip.press_rank == trip.rank for trip in trips)} of {len(trips)} "
        "round trips; Table 14 prints 10 for all ten. The largest singular value that is not "
        "counted moves from "
        f"{first.largest_below_in_tolerances:.2f} to {last.largest_below_in_tolerances:.2f} of the "
        f"tolerance. It is "
        "rounding error, which depends on the matrix and the LAPACK library."
    )


def _noise_record(line: NoisyMatrix) -> dict[str, Any]:
    ranks = ((name, line.counted[name], line.printed.get(name)) for name in RANKS)
    return {
        "noise_variance": line.variance,
        "precision": line.precision,
        "size": line.size,
        "press_rank_predicted": line.predicted(line.variance),
        "press_rank_predicted_10000": rank_at_printed_size(line.variance) if line.printed else None,
        **{
            key: value
            for name, ours, printed in ranks
            for key, value in ((name, ours), (f"printed_{name}", printed))
        },
    }


def _drawings(numbers: PressNoiseNumbers) -> Iterator[Drawing]:
    for precision in PRECISIONS:
        # The axis of variances is logarithmic.
        lines = [
            line for line in numbers.noise if line.precision == precision and line.variance > 0
        ]
        printed = (
            ", and the printed ranks of the supplement's matrix"
            if any(line.printed for line in lines)
            else ""
        )
        caption = (
            f"Press rank over c, {precision}: counted, by the quarter-circle law{printed}, "
            "each as a share of the matrix' rows."
        )
        if lines:
            yield Drawing(
                name=f"press_noise_{precision}", caption=caption, draw=partial(_draw, lines)
            )


def _draw(lines: Sequence[NoisyMatrix]) -> Figure:
    figure, axes = new_figure(top_in=0.6)
    first, least = lines[0], lines[-1]
    grid = np.geomspace(least.variance / 10, first.variance * 10, 400)
    for colour, whose, n, marker, law, ranks in (
        # By the tolerance of the least noise: all lines are of one matrix, whose largest value
        # noise hardly moves.
        (
            0,
            "counted",
            first.size,
            "o",
            least.predicted,
            {line.variance: line.counted["press_rank"] for line in lines},
        ),
        (
            1,
            "printed",
            PRINTED_SIZE,
            "^",
            rank_at_printed_size,
            {line.variance: line.printed["press_rank"] for line in lines if line.printed},
        ),
    ):
        shares = {variance: rank / n for variance, rank in ranks.items()}
        if shares:
            label, shade = f"{whose}, n = {n:,}", group_colour(colour)
            axes.plot(
                grid,
                [law(c) / n for c in grid],
                linewidth=1.2,
                label=f"the law, n = {n:,}",
                color=shade,
            )
            axes.plot(
                *zip(*shares.items(), strict=True),
                marker,
                markeredgecolor="black",
                label=label,
                color=shade,
            )
            names = [
                f"{label}, c {variance:g}\nPress rank / n {share:.4g}"
                for variance, share in shares.items()
            ]
            name_marks(axes, shares.items(), names)
    make_logarithmic(axes, "x").set_major_locator(LogLocator(numticks=8))
    axes.set_xlabel("c: the noise has variance c / n\N{SUPERSCRIPT TWO}")
    axes.set_ylabel("Press rank / n")
    axes.legend(fontsize=8, **ABOVE)
    return figure
