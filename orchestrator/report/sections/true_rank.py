"""The true rank of a generated language: which metric finds it, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from matplotlib.figure import Figure

from orchestrator.analysis import PRESS, PRESS_BY_EPS, MatrixRanks, TrueRankNumbers
from orchestrator.report import formats
from orchestrator.report.figures import (
    GROUP_COLOURS,
    GROUP_MARKERS,
    LIMIT,
    Drawing,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.hover import name_marks
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import csv_lines, record_table
from orchestrator.words import listed

VARIANTS = {
    "float64": "the exact matrix (float64)",
    "float32": "the matrix rounded to float32",
    "noise": "the matrix with noise of float32's size",
}


def true_rank_section(numbers: TrueRankNumbers) -> Section:
    """Findings, table and figure of a TrueRank request."""
    lines, true = (*numbers.truth, *numbers.learned), numbers.true_rank
    caption = f"Ranks by metric, of the true log-P matrix and of the learned ones; the dashed line is the true rank, {true}."
    records = [_record(line, numbers) for line in lines]
    columns = (
        "matrix",
        *(name for name, _ in _ranks(lines[0], numbers)),
        "test_perplexity",
        "over_floor",
    )
    return Section(
        kind="true-rank",
        heading=f"Which metric finds the true rank, {true}?",
        findings=tuple(_findings(numbers)),
        tables=(
            record_table(
                f"Ranks beside the true one, {true}, and test perplexity above the floor",
                records,
                columns,
            ),
        ),
        method=prose("method_true_rank.txt"),
        files={"true_rank.csv": csv_lines(records)},
        drawings=(Drawing(name="true_rank", caption=caption, draw=lambda: _draw(numbers)),),
    )


def _findings(numbers: TrueRankNumbers) -> Iterator[str]:
    tokens, contexts = numbers.exact["rank_rows"], numbers.exact["different_contexts"]
    yield (
        f"The true log-P matrix of this language has rank {numbers.exact['language_rank']:.0f}; "
        f"the rows measured "
        f"({tokens:,.0f} test tokens, {contexts:,.0f} different ones) have rank "
        f"{numbers.true_rank}, by exact elimination, and that is what metrics can find."
    )
    for line in numbers.truth:
        yield _metrics_sentence(line, numbers)
    yield from _learned_sentences(numbers)
    yield from _floor_sentences(numbers)


def _metrics_sentence(line: MatrixRanks, numbers: TrueRankNumbers) -> str:
    """Which metrics give the true rank of one of the truth's matrices, and what the others give."""
    assert line.variant is not None
    right = [formats.title(name) for name, rank in line.ranks.items() if numbers.is_true(rank)]
    others = [
        f"{formats.title(name)} {formats.number(rank, digits=3)}"
        for name, rank in line.ranks.items()
        if not numbers.is_true(rank)
    ]
    found = f"Of {VARIANTS[line.variant]}, the true rank, {numbers.true_rank}, is found by {listed(right or ['no metric'])}"
    return f"{found}; other ranks: {listed(others)}." if others else f"{found}."


def _learned_sentences(numbers: TrueRankNumbers) -> Iterator[str]:
    for metric in numbers.metrics:
        values = {line.name: line.ranks[metric] for line in numbers.learned if line.trials}
        ranks = {name: value for name, value in values.items() if value is not None}
        if ranks:
            right = listed(
                [name for name, value in ranks.items() if numbers.is_true(value)] or ["none"]
            )
            title = formats.capital(formats.title(metric))
            order = formats.ranked(ranks)
            yield f"{title} of what was learned: {order}; the true rank, {numbers.true_rank}, in {right}."


def _floor_sentences(numbers: TrueRankNumbers) -> Iterator[str]:
    here, endless, shares = (
        formats.cell("test_perplexity", numbers.exact[f"{whose}_perplexity"])
        for whose in ("test", "entropy", "shares")
    )
    yield (
        f"The true distribution itself has test perplexity {here} on the test text that was read "
        f"(on endless text "
        f"{endless}: no model can expect less), and a model that knows how often each word comes, "
        f"and no more, "
        f"{shares}."
    )
    learned = [line.perplexity for line in numbers.learned if line.perplexity is not None]
    nothing = sum(perplexity >= numbers.exact["shares_perplexity"] for perplexity in learned)
    if nothing:
        yield (
            f"{nothing} of {len(learned)} models are no better than that: their ranks are those of "
            f"models that have "
            "learned nothing of the language."
        )
    above = {line.name: line.excess for line in numbers.learned if line.excess is not None}
    if above:
        yield f"Test perplexity in multiples of that floor: {formats.ranked(above, decimals=3)}."


def _ranks(line: MatrixRanks, numbers: TrueRankNumbers) -> Iterator[tuple[str, float | None]]:
    """By the columns of the table: a learned matrix is float32, and its Press rank of that eps."""
    for metric in numbers.metrics:
        if metric != PRESS:
            yield metric, line.ranks[metric]
            continue
        by_eps = (
            {PRESS_BY_EPS["float32"]: line.ranks.get(PRESS)} if line.variant is None else line.ranks
        )
        yield from ((name, by_eps.get(name)) for name in PRESS_BY_EPS.values())


def _record(line: MatrixRanks, numbers: TrueRankNumbers) -> dict[str, Any]:
    return {
        "matrix": line.name,
        "variant": line.variant or "learned",
        "trials": line.trials,
        "true_rank": numbers.true_rank,
        "language_rank": int(numbers.exact["language_rank"]),
        **dict(_ranks(line, numbers)),
        "test_perplexity": line.perplexity,
        "over_floor": line.excess,
        "nats_over_floor": None if line.excess is None else math.log(line.excess),
    }


def _draw(numbers: TrueRankNumbers) -> Figure:
    """A row a metric, ranks on a logarithmic axis, a marker a matrix: the truth's are filled
    black."""
    rows = [name for name, _ in _ranks(numbers.truth[0], numbers)]
    figure, panels = new_panels(1, 1, width_in=7.6, height_in=1.3 + 0.42 * len(rows))
    axes = panels[0][0]
    axes.axvline(numbers.true_rank, color=LIMIT, linestyle="--", linewidth=1.2, zorder=0)
    lines = (*numbers.truth, *(line for line in numbers.learned if line.trials))
    for i, line in enumerate(lines):
        points = [(rank, rows.index(name)) for name, rank in _ranks(line, numbers) if rank]
        learned = i - len(numbers.truth)
        # A little apart, so that equal ranks can be told.
        ys = [y + 0.5 * (i / max(1, len(lines) - 1) - 0.5) for _, y in points]
        axes.scatter(
            [x for x, _ in points],
            ys,
            marker=GROUP_MARKERS[i % len(GROUP_MARKERS)],
            color="#000000"
            if learned < 0
            else GROUP_COLOURS[1 + learned % (len(GROUP_COLOURS) - 1)],
            edgecolors="black",
            linewidths=0.5,
            label=line.name,
        )
        names = [formats.described(line.name, {rows[row]: rank}) for rank, row in points]
        name_marks(axes, [(x, y) for (x, _), y in zip(points, ys, strict=True)], names)
    make_logarithmic(axes, "x")
    axes.set_yticks(range(len(rows)), [formats.capital(formats.title(name)) for name in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("rank")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    return figure
