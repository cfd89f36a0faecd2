"""The true rank of a generated language: which metric finds it, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from matplotlib.figure import Figure

from orchestrator.analysis import PRESS, PRESS_BY_EPS, MatrixRanks, TrueRankNumbers
from orchestrator.report import formats
from orchestrator.report.figures import GROUP_COLOURS, Drawing, new_panels
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, csv_lines, text_table
from orchestrator.words import listed

VARIANTS = {
    "float64": "the exact matrix (float64)",
    "float32": "the matrix rounded to float32",
    "noise": "the matrix with noise of float32's size",
}
MARKERS = "os^vDP*X<>"


def true_rank_section(numbers: TrueRankNumbers) -> Section:
    """Findings, table and figure of a TrueRank request."""
    caption = "Ranks by metric, of the true log-P matrix and of the learned ones; the dashed line is the true rank, "
    caption += f"{numbers.true_rank}."
    return Section(
        kind="true-rank",
        heading=f"Which metric finds the true rank, {numbers.true_rank}?",
        findings=tuple(_findings(numbers)),
        tables=(
            text_table(
                f"Ranks beside the true one, {numbers.true_rank}, and test perplexity above the floor",
                _head(numbers),
                (_cells(line, numbers) for line in (*numbers.truth, *numbers.learned)),
            ),
        ),
        method=prose("method_true_rank.txt"),
        files={"true_rank.csv": csv_lines([_record(line, numbers) for line in (*numbers.truth, *numbers.learned)])},
        drawings=(Drawing(name="true_rank", caption=caption, draw=lambda: _draw(numbers)),),
    )


def _findings(numbers: TrueRankNumbers) -> Iterator[str]:
    yield _truth_sentence(numbers)
    for line in numbers.truth:
        yield _metrics_sentence(line, numbers)
    if any(line.trials for line in numbers.learned):
        yield from _learned_sentences(numbers)
    yield from _floor_sentences(numbers)


def _truth_sentence(numbers: TrueRankNumbers) -> str:
    text = f"The true log-P matrix of this language has rank {numbers.language_rank}"
    rows = f"the rows measured ({numbers.tokens:,} test tokens, {numbers.different_contexts:,} different ones)"
    if numbers.true_rank == numbers.language_rank:
        return f"{text}, and so have {rows} by exact elimination."
    return f"{text}; {rows} have rank {numbers.true_rank}, by exact elimination, and that is what metrics can find."


def _metrics_sentence(line: MatrixRanks, numbers: TrueRankNumbers) -> str:
    """Which metrics give the true rank of one of the truth's matrices, and what the others give."""
    assert line.variant is not None
    right = [formats.title(name) for name, rank in line.ranks.items() if numbers.is_true(rank)]
    wrong = [_shown(name, rank) for name, rank in line.ranks.items() if not numbers.is_true(rank)]
    of = f"Of {VARIANTS[line.variant]}, "
    finders = f"{listed(right)} {'find' if len(right) > 1 else 'finds'}" if right else "no metric finds"
    missed = f"; {'the others give' if right else 'they give'} {listed(wrong)}" if wrong else ""
    return f"{of}{finders} the true rank, {numbers.true_rank}{missed}."


def _learned_sentences(numbers: TrueRankNumbers) -> Iterator[str]:
    measured = [line for line in numbers.learned if line.trials]
    for metric in numbers.metrics:
        values = {line.name: line.ranks[metric] for line in measured}
        ranks = {name: value for name, value in values.items() if value is not None}
        if not ranks:
            continue
        by_value: dict[str, list[str]] = {}
        for name in sorted(ranks, key=ranks.__getitem__):
            by_value.setdefault(formats.spread(metric, ranks[name], None), []).append(name)
        order = ", ".join(f"{' = '.join(names)} {value}" for value, names in by_value.items())
        right = [name for name, value in ranks.items() if numbers.is_true(value)]
        verdict = f"it is the true rank, {numbers.true_rank}, in {listed(right)}" if right else _side(ranks, numbers)
        yield f"{formats.capital(formats.title(metric))} of what was learned: {order}; {verdict}."


def _side(ranks: dict[str, float], numbers: TrueRankNumbers) -> str:
    below = sum(value < numbers.true_rank for value in ranks.values())
    if below in (0, len(ranks)):
        where = "below" if below else "above"
        return f"all are {where} the true rank, {numbers.true_rank}"
    return f"{below} of {len(ranks)} are below the true rank, {numbers.true_rank}, the others above it"


def _floor_sentences(numbers: TrueRankNumbers) -> Iterator[str]:
    here, endless, shares = (
        formats.cell("test_perplexity", value)
        for value in (numbers.floor, numbers.entropy_perplexity, numbers.shares_perplexity)
    )
    yield (
        f"The true distribution itself has test perplexity {here} on the test text that was read (on endless text "
        f"{endless}: no model can expect less), and a model that knows how often each word comes, and no more, "
        f"{shares}."
    )
    learned = [line.perplexity for line in numbers.learned if line.perplexity is not None]
    nothing = sum(perplexity >= numbers.shares_perplexity for perplexity in learned)
    if nothing:
        yield (
            f"{nothing} of {len(learned)} models are no better than that: their ranks are those of models that have "
            "learned nothing of the language."
        )
    above = {line.name: line.excess for line in numbers.learned if line.excess is not None}
    if above:
        excesses = ", ".join(f"{name} {_percent(above[name])}" for name in sorted(above, key=above.__getitem__))
        yield f"Test perplexity above that floor: {excesses}."


def _head(numbers: TrueRankNumbers) -> list[str]:
    ranks = (formats.title(name) for name, _ in _ranks(numbers.truth[0], numbers))
    return ["log-P matrix", *ranks, "test perplexity", "above the floor"]


def _ranks(line: MatrixRanks, numbers: TrueRankNumbers) -> Iterator[tuple[str, float | None]]:
    """By the columns of the table: a learned matrix is float32, and its Press rank of that eps."""
    for metric in numbers.metrics:
        if metric != PRESS:
            yield metric, line.ranks[metric]
            continue
        by_eps = {PRESS_BY_EPS["float32"]: line.ranks.get(PRESS)} if line.variant is None else line.ranks
        yield from ((name, by_eps.get(name)) for name in PRESS_BY_EPS.values())


def _cells(line: MatrixRanks, numbers: TrueRankNumbers) -> Iterator[Cell | str]:
    yield line.name
    for _, rank in _ranks(line, numbers):
        yield Cell(formats.number(rank, digits=4), rank)
    yield Cell(formats.cell("test_perplexity", line.perplexity), line.perplexity)
    yield Cell(DASH if line.excess is None else _percent(line.excess), line.excess)


def _record(line: MatrixRanks, numbers: TrueRankNumbers) -> dict[str, Any]:
    return {
        "matrix": line.name,
        "variant": line.variant or "learned",
        "trials": line.trials,
        "true_rank": numbers.true_rank,
        "language_rank": numbers.language_rank,
        **dict(_ranks(line, numbers)),
        "test_perplexity": line.perplexity,
        "over_floor": line.excess,
        "nats_over_floor": line.excess_nats,
    }


def _shown(name: str, rank: float | None) -> str:
    return f"{formats.title(name)} {formats.number(rank, digits=3)}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}%".replace("-", formats.MINUS)


def _draw(numbers: TrueRankNumbers) -> Figure:
    """A row a metric, ranks on a logarithmic axis, a marker a matrix: the truth's are filled black."""
    rows = [name for name, _ in _ranks(numbers.truth[0], numbers)]
    figure, panels = new_panels(1, 1, width_in=7.6, height_in=1.3 + 0.42 * len(rows))
    axes = panels[0][0]
    axes.axvline(numbers.true_rank, color="#b00020", linestyle="--", linewidth=1.2, zorder=0)
    lines = (*numbers.truth, *(line for line in numbers.learned if line.trials))
    for i, line in enumerate(lines):
        points = [(rank, rows.index(name)) for name, rank in _ranks(line, numbers) if rank]
        learned = i - len(numbers.truth)
        axes.plot(
            [x for x, _ in points],
            # A little apart, so that equal ranks can be told.
            [y + 0.5 * (i / max(1, len(lines) - 1) - 0.5) for _, y in points],
            linestyle="none",
            marker=MARKERS[i % len(MARKERS)],
            color="#000000" if learned < 0 else GROUP_COLOURS[1 + learned % (len(GROUP_COLOURS) - 1)],
            markersize=6,
            markeredgecolor="black",
            markeredgewidth=0.5,
            label=line.name,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(rows)), [formats.capital(formats.title(name)) for name in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("rank")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    return figure
