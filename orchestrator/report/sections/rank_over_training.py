"""How rank and validation perplexity move together from epoch to epoch, and which says more of the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from orchestrator.analysis import LeadLag, RankTraining, Statistic
from orchestrator.report import formats
from orchestrator.report.prose import prose
from orchestrator.report.sections.rank_over_training_figures import rank_training_drawings
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, ends, text_table
from orchestrator.words import counted

PERPLEXITY = "valid_perplexity"
MOST_ROWS = 50
OPEN = "Which of the two says more of the other in the next epoch is left open"


def rank_training_section(ranks: Sequence[RankTraining]) -> Section:
    """Findings, tables and figures of a RankOverTraining request; the figures show the first rank."""
    first = ranks[0]
    return Section(
        kind="rank-over-training",
        heading="Rank over training",
        findings=tuple(sentence for numbers in ranks for sentence in _findings(numbers)),
        cautions=tuple(_cautions(first)),
        tables=(_lag_table(ranks), _epoch_table(first)),
        method=prose("method_rank_over_training.txt", averaged=first.averaged),
        files={
            "rank_over_training.csv": csv_lines([record for numbers in ranks for record in _epoch_records(numbers)]),
            "rank_lead_or_lag.csv": csv_lines([_lag_record(numbers) for numbers in ranks]),
        },
        drawings=tuple(rank_training_drawings(first)),
        wide=False,
    )


def _findings(numbers: RankTraining) -> Iterator[str]:
    lag, title = numbers.lead_lag, formats.title(numbers.rank)
    if lag.together.value is not None:
        yield f"{_together(lag, title)} {_lead(lag, title)}"
    if numbers.half_way.told:
        yield _half_sentence(numbers, title)


def _together(lag: LeadLag, title: str) -> str:
    """What changes of one epoch say."""
    r, where = _r(lag.together), f"over {counted(lag.series, 'trial')} of {counted(lag.cells, 'setting')}"
    interval = lag.together.interval
    if interval is None:
        return f"Changes of {title} and falls of validation perplexity in one epoch have {r}, {where}, too few to tell."
    if 0.0 in interval:
        return f"In one epoch, {title} and validation perplexity have no common movement that shows: {r}, {where}."
    assert lag.together.value is not None
    more = "more" if lag.together.value > 0 else "less"
    return (
        f"In an epoch in which a trial's {title} rose more than that of the others, its validation perplexity fell "
        f"{more}: {r}, {where}."
    )


def _lead(lag: LeadLag, title: str) -> str:
    """Which says more of the next epoch of the other, as far as the interval of the difference says."""
    difference, numbers = lag.difference, f"{_r(lag.leads)} for {title} first, {_r(lag.follows)} for perplexity first"
    if difference.interval is None:
        return f"{OPEN}: {numbers}; {difference.missing}."
    apart = f"difference {formats.bounded(difference)}"
    if 0.0 in difference.interval:
        return f"{OPEN}: {numbers}, {apart}, which includes zero."
    leads = difference.interval.low > 0
    front, behind = (lag.leads, lag.follows) if leads else (lag.follows, lag.leads)
    assert front.value is not None and behind.value is not None
    if abs(front.value) < abs(behind.value):
        return (
            f"From one epoch to the next the two go different ways: {numbers}. So few epochs draw both below zero; "
            f"their {apart}, speaks for {title if leads else 'perplexity'} first."
        )
    names = (title, "validation perplexity")
    first, second = names if leads else reversed(names)
    more = f"{formats.capital(first)} in one epoch says more of {second} in the next than the other way round"
    return f"{more}: {numbers}, {apart}."


def _half_sentence(numbers: RankTraining, title: str) -> str:
    half = numbers.half_way
    left = f"; {half.left_out} left out" if half.left_out else ""
    change = "change before averaging" if numbers.averaged else "change"
    return (
        f"{formats.capital(title)} had half of its {change} behind it earlier than the log perplexity "
        f"in {half.rank_first} of {counted(half.told, 'setting')}, later in {half.perplexity_first}, at the same time "
        f"in {half.same}{left}; in the median, {abs(half.lead):.1f} epochs {'earlier' if half.lead >= 0 else 'later'}."
    )


def _r(statistic: Statistic) -> str:
    return f"r = {formats.bounded(statistic)}"


def _cautions(numbers: RankTraining) -> Iterator[str]:
    if numbers.lead_lag.together.value is None:
        missing = numbers.lead_lag.together.missing
        yield f"Which of {formats.title(numbers.rank)} and perplexity says more of the other cannot be said: {missing}."
    else:
        yield (
            "Of two series that go the same way, the one that is measured with more noise, or that persists longer, "
            "tends to look like the one that follows, whichever moves first."
        )
    yield (
        "What moves first need not be a cause of what moves later. What happened within an epoch, or before the first "
        "one ended, is not seen. Trials of one seed read the same text in the same order, and what an epoch brings is "
        "common to them: in how many settings something comes first is no count of independent trials."
    )
    if numbers.at_bound:
        yield (
            f"In {numbers.at_bound} of {counted(numbers.measured, 'epoch')} {formats.title(numbers.rank)} is as much "
            f"as the matrix allows{f', {numbers.bound}' if numbers.bound else ''}: there it can rise no more."
        )


def _lag_table(ranks: Sequence[RankTraining]) -> TextTable:
    rows = []
    for numbers in ranks:
        lag, half = numbers.lead_lag, numbers.half_way
        if not (lag.series or half.told):
            continue
        rows.append(
            {
                "rank": Cell(formats.title(numbers.rank)),
                "trials": lag.series,
                "same epoch: r [95%]": formats.bounded(lag.together),
                "rank first: r [95%]": formats.bounded(lag.leads),
                "perplexity first: r [95%]": formats.bounded(lag.follows),
                "difference [95%]": formats.bounded(lag.difference),
                "half way: rank first / perplexity first / same": " / ".join(
                    map(str, (half.rank_first, half.perplexity_first, half.same))
                ),
            }
        )
    return text_table("Changes from epoch to epoch: a rise of the rank and a fall of log perplexity", rows)


def _epoch_table(numbers: RankTraining) -> TextTable:
    """Means over the settings that have the epoch; of many epochs, every so many up to the last one."""
    title, rows = formats.capital(formats.title(numbers.rank)), []
    epochs = sorted({epoch for path in numbers.paths for epoch in path.epochs})
    step = math.ceil(len(epochs) / MOST_ROWS)
    for epoch in epochs[::-step][::-1]:
        at = [(path, path.epochs.index(epoch)) for path in numbers.paths if epoch in path.epochs]
        rank, perplexity = (
            math.exp(float(np.mean([values[place] for values, place in series])))
            for series in (
                [(path.log_rank_T, place) for path, place in at],
                [(path.log_perplexity_T, place) for path, place in at],
            )
        )
        ranks = [s[place] for path, place in at if (s := path.rank_shares) is not None and place < len(s)]
        falls = [s[place] for path, place in at if (s := path.perplexity_shares) is not None and place < len(s)]
        rows.append(
            {
                "epoch": epoch,
                "settings": len(at),
                title: formats.number(rank, digits=4),
                "validation perplexity": formats.cell(PERPLEXITY, perplexity),
                "share of the rank's change": formats.percent(float(np.mean(ranks)) if ranks else None),
                "share of the log perplexity's": formats.percent(float(np.mean(falls)) if falls else None),
                **({"averaged": "yes" if any(p.averaging[i] for p, i in at) else "no"} if numbers.averaged else {}),
            }
        )
    over = counted(len(numbers.paths), "setting")
    shown = f"; one epoch in {step}, all of them in rank_over_training.csv" if step > 1 else ""
    change = "the change before averaging" if numbers.averaged else "the change"
    return text_table(f"Geometric means over {over}, and mean shares of {change}{shown}", rows)


def _epoch_records(numbers: RankTraining) -> Iterator[dict[str, Any]]:
    for path in numbers.paths:
        rank_shares, perplexity_shares = path.rank_shares, path.perplexity_shares
        for place, epoch in enumerate(path.epochs):
            yield {
                "rank": numbers.rank,
                "group": path.group,
                "seeds": path.seeds,
                "epoch": epoch,
                "averaging": path.averaging[place],
                "mean_rank": math.exp(path.log_rank_T[place]),
                "mean_valid_perplexity": math.exp(path.log_perplexity_T[place]),
                "rank_share": _at(rank_shares, place),
                "log_perplexity_share": _at(perplexity_shares, place),
                "rank_half_epoch": path.rank_half,
                "log_perplexity_half_epoch": path.perplexity_half,
            }


def _at(shares: Sequence[float] | np.ndarray | None, place: int) -> float | None:
    return None if shares is None or place >= len(shares) else float(shares[place])


def _lag_record(numbers: RankTraining) -> dict[str, Any]:
    lag, half = numbers.lead_lag, numbers.half_way
    record: dict[str, Any] = {"rank": numbers.rank, "bound": numbers.bound, "at_bound": numbers.at_bound}
    record |= {"settings": lag.cells, "trials": lag.series, "pairs": lag.pairs}
    for name in ("together", "leads", "follows", "difference"):
        statistic: Statistic = getattr(lag, name)
        record |= {name: statistic.value, **ends(name, statistic.interval)}
    return record | {
        "half_rank_first": half.rank_first,
        "half_perplexity_first": half.perplexity_first,
        "half_same": half.same,
        "half_left_out": half.left_out,
    }
