"""Press' rank under noise, beside the quarter-circle law and the printed ranks (SM Tables 14 to 16)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from orchestrator.analysis import EPSILONS, PRINTED_SIZE, RANKS, NoisyMatrix, PressNoiseNumbers
from orchestrator.report import formats
from orchestrator.report.figures import COLOURS, Drawing, new_figure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, TextTable, text_table
from orchestrator.words import counted
from trainables.measurements import COUNT_SPREAD, rank_with_noise


def press_noise_section(numbers: PressNoiseNumbers) -> Section:
    """The tables and the figure of a PressNoise request."""
    if not numbers.noise and not numbers.trips:
        return Section(kind="noise", heading="Ranks under noise", findings=("No matrix was measured yet.",))
    return Section(
        kind="noise",
        heading="Ranks under noise",
        findings=tuple(_findings(numbers)),
        tables=tuple(table for table in (_noise_table(numbers), _trip_table(numbers)) if table.body),
        method=prose("method_press_noise.txt"),
        files={"press_noise.csv": list(_noise_csv(numbers)), "round_trips.csv": list(_trip_csv(numbers))},
        drawings=_drawings(numbers),
    )


def _findings(numbers: PressNoiseNumbers) -> Iterator[str]:
    for precision in ("float64", "float32"):
        lines = [line for line in numbers.noise if line.precision == precision]
        if lines:
            yield from _of_precision(precision, lines)
    for keeps_all in (False, True):
        alike = [trips for trips in numbers.trips if trips.keeps_all == keeps_all]
        if alike:
            yield _of_trips(alike)


def _of_precision(precision: str, lines: Sequence[NoisyMatrix]) -> Iterator[str]:
    size, rank = lines[0].size, lines[0].rank
    misses = [abs(line.counted[0]["press_rank"] - line.predicted) for line in lines]
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
        words = ", ".join(
            f"{least.counted[0][name]} ({epsilon})" for epsilon, name in zip(EPSILONS, RANKS[1:], strict=True)
        )
        yield (
            f"At c = {least.variance:g} in {precision}, where the noise holds at most {least.noise_share:.1e} of the "
            f"sum of squares, the Press rank is {least.counted[0]['press_rank']:,} and the effective ranks are {words}."
        )
    first = min(lines, key=lambda line: line.variance)
    moved = [line for line in lines if any(line.counted[0][name] != first.counted[0][name] for name in RANKS[1:])]
    if moved:
        where = ", ".join(f"{line.variance:g} (at most {line.noise_share:.1e} of the sum of squares)" for line in moved)
        yield f"In {precision}, effective ranks differ from those of the least noise at c = {where} and nowhere else."
    else:
        yield f"In {precision}, no effective rank differs between the {counted(len(lines), 'variance')} of the noise."


def _of_trips(alike: Sequence[NoisyMatrix]) -> str:
    """Of round trips that keep the same directions; each matrix is held against itself alone."""
    moved = [trips for trips in alike if any(trips.first_moved(name) for name in RANKS)]
    text = (
        f"SVD round trips that keep {_kept(alike[0])} change a rank of {len(moved)} of "
        f"{counted(len(alike), 'matrix', 'matrices')}"
    )
    if moved:
        text += f": {'; '.join(map(_what_moved, moved))}"
    below = max(largest for trips in alike for largest in trips.largest_below)
    text += f". The largest singular value that is not counted comes to {below:.2f} times the Press tolerance"
    if not alike[0].keeps_all:
        text += "; that no rank moves is all but decided by the cut" if not moved else ""
    return f"{text}."


def _kept(trips: NoisyMatrix) -> str:
    return "all directions" if trips.keeps_all else "as many directions as the Press rank counts"


def _what_moved(trips: NoisyMatrix) -> str:
    """ "float64, no noise: Press rank from 10 to 11 with trip 5, no effective rank"."""
    changes = []
    for name in RANKS:
        if trip := trips.first_moved(name):
            before, after = trips.counted[0][name], trips.counted[trip][name]
            changes.append(f"{formats.title(name)} from {before:,} to {after:,} with trip {trip}")
    if not any(trips.first_moved(name) for name in RANKS[1:]):
        changes.append("no effective rank")
    return f"{trips.precision}, {_noise(trips)}: {', '.join(changes)}"


def _noise(trips: NoisyMatrix) -> str:
    return f"c = {trips.variance:g}" if trips.variance else "no noise"


def _noise_table(numbers: PressNoiseNumbers) -> TextTable:
    return text_table(
        f"Ranks of a {_sizes(numbers.noise)} matrix with Gaussian noise of variance c; printed ones, of a "
        f"{PRINTED_SIZE:,} x {PRINTED_SIZE:,} matrix, in columns of their own and in brackets",
        ("c", "precision", *("Press rank", "the law", "printed"), *(f"effective rank ({eps})" for eps in EPSILONS)),
        (
            (
                Cell(f"{line.variance:g}", line.variance),
                line.precision,
                _whole(line.counted[0]["press_rank"]),
                Cell(f"{line.predicted:,.1f}", line.predicted),
                _whole(line.printed.get("press_rank")),
                *(Cell(_beside(line, name), line.counted[0][name]) for name in RANKS[1:]),
            )
            for line in numbers.noise
        ),
    )


def _whole(value: int | None) -> Cell:
    return Cell(DASH if value is None else f"{value:,}", value)


def _beside(line: NoisyMatrix, name: str) -> str:
    return f"{line.counted[0][name]:,}" + (f" ({line.printed[name]})" if name in line.printed else "")


def _trip_table(numbers: PressNoiseNumbers) -> TextTable:
    return text_table(
        f"Ranks of a {_sizes(numbers.trips)} matrix with Gaussian noise of variance c after SVD round trips",
        (
            "precision",
            "directions kept",
            "c",
            "round trips",
            *map(formats.title, RANKS),
            "largest not counted / tolerance",
        ),
        (
            (
                trips.precision,
                Cell("all" if trips.keeps_all else "those counted"),
                Cell(f"{trips.variance:g}", trips.variance),
                trip,
                *map(_whole, ranks.values()),
                Cell(formats.number(below, digits=3), below),
            )
            for trips in numbers.trips
            for trip, (ranks, below) in enumerate(zip(trips.counted, trips.largest_below, strict=True))
        ),
    )


def _sizes(matrices: Sequence[NoisyMatrix]) -> str:
    return " or ".join(f"{size:,} x {size:,}" for size in dict.fromkeys(matrix.size for matrix in matrices))


def _noise_csv(numbers: PressNoiseNumbers) -> Iterator[list[object]]:
    columns = ["noise_variance", "precision", "size", "rank", "sigma_max", *RANKS, "press_rank_predicted"]
    yield [*columns, *(f"printed_{name}" for name in RANKS)]
    for line in numbers.noise:
        shape = [line.variance, line.precision, line.size, line.rank, line.sigma_max]
        yield [*shape, *line.counted[0].values(), line.predicted, *(line.printed.get(name) for name in RANKS)]


def _trip_csv(numbers: PressNoiseNumbers) -> Iterator[list[object]]:
    shape = ["precision", "directions_kept", "noise_variance", "size", "rank"]
    yield [*shape, "round_trips", *RANKS, "largest_below_in_tolerances"]
    for trips in numbers.trips:
        kept = "all" if trips.keeps_all else "press_rank"
        matrix = [trips.precision, kept, trips.variance, trips.size, trips.rank]
        for trip, (ranks, below) in enumerate(zip(trips.counted, trips.largest_below, strict=True)):
            yield [*matrix, trip, *ranks.values(), below]


def _drawings(numbers: PressNoiseNumbers) -> tuple[Drawing, ...]:
    drawings = []
    for precision in ("float64", "float32"):
        # The axis of variances is logarithmic.
        lines = [line for line in numbers.noise if line.precision == precision and line.variance > 0]
        if lines:
            printed = ", and the printed ranks of the supplement's matrix" if precision == "float64" else ""
            caption = (
                f"Press rank over the variance of the noise, {precision}: counted, by the quarter-circle law{printed}, "
                "each as a share of the matrix' rows."
            )
            drawings.append(Drawing(name=f"press_noise_{precision}", caption=caption, draw=partial(_draw, lines)))
    return tuple(drawings)


def _draw(lines: Sequence[NoisyMatrix]) -> Figure:
    figure, axes = new_figure(top_in=0.6)
    ours, beside = (mpl.colormaps[COLOURS](position) for position in (0.1, 0.75))
    first = lines[0]
    tolerance = _tolerance(lines)
    grid = np.geomspace(lines[-1].variance / 10, lines[0].variance * 10, 400)
    law = [rank_with_noise(tolerance, variance=c, size=first.size, rank=first.rank) / first.size for c in grid]
    axes.plot(grid, law, color=ours, linewidth=1.2, label=f"the law, n = {first.size:,}")
    shares = [line.counted[0]["press_rank"] / line.size for line in lines]
    c_values = [line.variance for line in lines]
    axes.plot(c_values, shares, "o", color=ours, markeredgecolor="black", label=f"counted, n = {first.size:,}")
    printed = [line for line in lines if "press_rank" in line.printed]
    if printed:
        shares = [line.printed["press_rank"] / PRINTED_SIZE for line in printed]
        c_values = [line.variance for line in printed]
        label = f"printed, n = {PRINTED_SIZE:,}"
        axes.plot(c_values, shares, "^", color=beside, markeredgecolor="black", label=label)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    # The style leaves mathematical text unparsed, so that no name in a label is taken for it.
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0e}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("Variance of the noise, c")
    axes.set_ylabel("Press rank / n")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderpad=0.1, fontsize=8)
    return figure


def _tolerance(lines: Sequence[NoisyMatrix]) -> float:
    """The matrix' own: all lines are of one matrix, and noise hardly moves its largest singular value."""
    least = min(lines, key=lambda line: line.variance)
    return 0.5 * math.sqrt(2 * least.size + 1) * least.sigma_max * float(np.finfo(least.precision).eps)
