"""Press' rank under noise, beside the quarter-circle law and the printed ranks (SM Tables 14 to 16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from orchestrator.analysis import COUNT_SPREAD, PRINTED_SIZE, RANKS, NoisyMatrix, PressNoiseNumbers
from orchestrator.report import formats
from orchestrator.report.figures import ABOVE, Drawing, group_colour, make_logarithmic, new_figure
from orchestrator.report.hover import name_marks
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import csv_lines, record_table
from orchestrator.words import counted

PRECISIONS = ("float64", "float32")


def press_noise_section(numbers: PressNoiseNumbers) -> Section:
    """The tables and the figure of a PressNoise request."""
    if not numbers.noise and not numbers.trips:
        return Section(kind="noise", heading="Ranks under noise", findings=("No matrix was measured yet.",))
    noise, trips = list(map(_noise_record, numbers.noise)), list(_trip_records(numbers))
    beside = [f"{prefix}{name}" for name in RANKS[1:] for prefix in ("", "printed_")]
    shown = ("noise_variance", "precision", "press_rank", "press_rank_predicted", "printed_press_rank", *beside)
    tables = (
        record_table(
            f"Ranks of a {_sizes(numbers.noise)} matrix with Gaussian noise of variance c; printed ones are of a "
            f"{PRINTED_SIZE:,} x {PRINTED_SIZE:,} matrix",
            noise,
            shown,
        ),
        record_table(
            f"Ranks of a {_sizes(numbers.trips)} matrix with Gaussian noise of variance c after SVD round trips",
            trips,
            ("precision", "directions_kept", "noise_variance", "round_trips", *RANKS, "largest_below_in_tolerances"),
        ),
    )
    records = {"press_noise.csv": noise, "round_trips.csv": trips}
    return Section(
        kind="noise",
        heading="Ranks under noise",
        findings=tuple(_findings(numbers)),
        tables=tables,
        method=prose("method_press_noise.txt"),
        files={name: csv_lines(lines) for name, lines in records.items() if lines},
        drawings=tuple(_drawings(numbers)),
    )


def _findings(numbers: PressNoiseNumbers) -> Iterator[str]:
    for precision in PRECISIONS:
        lines = [line for line in numbers.noise if line.precision == precision]
        if lines:
            yield from _of_precision(precision, lines)
    for keeps_all in (False, True):
        alike = [trips for trips in numbers.trips if trips.keeps_all == keeps_all]
        if alike:
            yield _of_trips(alike)


def _of_precision(precision: str, lines: Sequence[NoisyMatrix]) -> Iterator[str]:
    size, rank = lines[0].size, lines[0].rank
    misses = [abs(line.counted[0]["press_rank"] - line.predicted(line.variance)) for line in lines]
    agreed = sum(miss <= COUNT_SPREAD for miss in misses)
    yield (
        f"In {precision}, the Press rank of a {size:,} x {size:,} matrix of rank {rank} with noise is what the "
        f"quarter-circle law predicts within {COUNT_SPREAD:g} in {agreed} of {len(lines)} cases (largest difference "
        f"{max(misses):.1f}): Press' rank counts the noise's singular values as soon as they pass the tolerance, "
        "whatever their weight."
    )
    full = [line for line in lines if line.counted[0]["press_rank"] > size / 2]
    if full:
        least = min(full, key=lambda line: line.variance)
        words = ", ".join(f"{least.counted[0][name]} ({name.removeprefix('effective_rank_')})" for name in RANKS[1:])
        yield (
            f"At c = {least.variance:g} in {precision}, where the noise holds at most {least.noise_share:.1e} of the "
            f"sum of squares, the Press rank is {least.counted[0]['press_rank']:,} and the effective ranks are {words}."
        )
    first = min(lines, key=lambda line: line.variance)
    moved = [line for line in lines if any(line.counted[0][name] != first.counted[0][name] for name in RANKS[1:])]
    where = ", ".join(f"c = {line.variance:g} (at most {line.noise_share:.1e} of the sum of squares)" for line in moved)
    yield f"In {precision}, effective ranks differ from those of the least noise at {where or 'no variance of it'}."


def _of_trips(alike: Sequence[NoisyMatrix]) -> str:
    """Of round trips that keep the same directions; each matrix is held against itself alone."""
    kept = "all directions" if alike[0].keeps_all else "as many directions as the Press rank counts"
    matrices = counted(len(alike), "matrix", "matrices")
    moved = [text for matrix in alike if (text := _what_moved(matrix))]
    below = max(largest for matrix in alike for largest in matrix.largest_below)
    return (
        f"SVD round trips that keep {kept} change a rank of {len(moved)} of {matrices}{': ' if moved else ''}"
        f"{'; '.join(moved)}. The largest singular value that is not counted comes to {below:.2f} times the Press "
        "tolerance."
    )


def _what_moved(matrix: NoisyMatrix) -> str:
    """ "float64, no noise: Press rank from 10 to 11 with trip 5"; empty where no rank moved."""
    changes = [
        f"{formats.title(name)} from {matrix.counted[0][name]:,} to {matrix.counted[trip][name]:,} with trip {trip}"
        for name in RANKS
        if (trip := matrix.first_moved(name))
    ]
    noise = f"c = {matrix.variance:g}" if matrix.variance else "no noise"
    return f"{matrix.precision}, {noise}: {', '.join(changes)}" if changes else ""


def _sizes(matrices: Sequence[NoisyMatrix]) -> str:
    return " or ".join(f"{size:,} x {size:,}" for size in dict.fromkeys(matrix.size for matrix in matrices))


def _noise_record(line: NoisyMatrix) -> dict[str, Any]:
    return {
        "noise_variance": line.variance,
        **{name: getattr(line, name) for name in ("precision", "size", "rank", "sigma_max")},
        **line.counted[0],
        "press_rank_predicted": line.predicted(line.variance),
        **{f"printed_{name}": line.printed.get(name) for name in RANKS},
    }


def _trip_records(numbers: PressNoiseNumbers) -> Iterator[dict[str, Any]]:
    for trips in numbers.trips:
        for trip, (ranks, below) in enumerate(zip(trips.counted, trips.largest_below, strict=True)):
            yield {
                "precision": trips.precision,
                "directions_kept": "all" if trips.keeps_all else "press_rank",
                "noise_variance": trips.variance,
                "size": trips.size,
                "rank": trips.rank,
                "round_trips": trip,
                **ranks,
                "largest_below_in_tolerances": below,
            }


def _drawings(numbers: PressNoiseNumbers) -> Iterator[Drawing]:
    for precision in PRECISIONS:
        # The axis of variances is logarithmic.
        lines = [line for line in numbers.noise if line.precision == precision and line.variance > 0]
        printed = ", and the printed ranks of the supplement's matrix" if any(line.printed for line in lines) else ""
        caption = (
            f"Press rank over the variance of the noise, {precision}: counted, by the quarter-circle law{printed}, "
            "each as a share of the matrix' rows."
        )
        if lines:
            yield Drawing(name=f"press_noise_{precision}", caption=caption, draw=partial(_draw, lines))


def _draw(lines: Sequence[NoisyMatrix]) -> Figure:
    figure, axes = new_figure(top_in=0.6)
    first, least = lines[0], min(lines, key=lambda line: line.variance)
    grid = np.geomspace(lines[-1].variance / 10, lines[0].variance * 10, 400)
    # By the tolerance of the least noise: all lines are of one matrix, whose largest value noise hardly moves.
    law = [least.predicted(c) / first.size for c in grid]
    ours, beside = group_colour(0), group_colour(1)
    axes.plot(grid, law, color=ours, linewidth=1.2, label=f"the law, n = {first.size:,}")
    for whose, n, colour, marker, ranks in (
        ("counted", first.size, ours, "o", {line.variance: line.counted[0]["press_rank"] for line in lines}),
        ("printed", PRINTED_SIZE, beside, "^", {line.variance: line.printed.get("press_rank") for line in lines}),
    ):
        shares = {variance: rank / n for variance, rank in ranks.items() if rank is not None}
        if shares:
            label = f"{whose}, n = {n:,}"
            axes.plot(*zip(*shares.items(), strict=True), marker, color=colour, markeredgecolor="black", label=label)
            names = [f"{label}, c {variance:g}\nPress rank / n {share:.4g}" for variance, share in shares.items()]
            name_marks(axes, shares.items(), names)
    make_logarithmic(axes, "x").set_major_locator(LogLocator(numticks=8))
    axes.set_xlabel("Variance of the noise, c")
    axes.set_ylabel("Press rank / n")
    axes.legend(fontsize=8, **ABOVE)
    return figure
