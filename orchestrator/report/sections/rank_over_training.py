"""Rank and validation perplexity from epoch to epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from orchestrator.analysis import RankTraining
from orchestrator.report import formats
from orchestrator.report.prose import prose
from orchestrator.report.sections.rank_over_training_figures import rank_training_drawing
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import TextTable, csv_lines, text_table
from orchestrator.words import counted

PERPLEXITY = "valid_perplexity"
MOST_ROWS = 50


def rank_training_section(ranks: Sequence[RankTraining]) -> Section:
    """Return the section of a RankOverTraining request; figure, table and cautions are those of the
    first rank."""
    first = ranks[0]
    return Section(
        kind="rank-over-training",
        heading="Rank over training",
        findings=tuple(_finding(numbers) for numbers in ranks if numbers.compared),
        cautions=tuple(_cautions(first)),
        tables=(_epoch_table(first),),
        method=prose("method_rank_over_training.txt", averaged=first.averaged),
        files={
            "rank_over_training.csv": csv_lines(
                [record for numbers in ranks for record in _epoch_records(numbers)]
            ),
        },
        drawings=(rank_training_drawing(first),),
        wide=False,
    )


def _finding(numbers: RankTraining) -> str:
    change = "change before averaging" if numbers.averaged else "change"
    return (
        f"{formats.capital(formats.title(numbers.rank))} made half of its {change} earlier than "
        f"log perplexity did "
        f"in {numbers.rank_earlier} of {counted(numbers.compared, 'setting')}."
    )


def _cautions(numbers: RankTraining) -> Iterator[str]:
    if numbers.compared:
        yield (
            "What moves first need not cause what moves later. Settings share their seeds and "
            "texts, so they are no "
            "independent cases."
        )
    if numbers.at_bound:
        yield (
            f"In {numbers.at_bound} of {counted(numbers.measured, 'epoch')} "
            f"{formats.title(numbers.rank)} is as much "
            f"as the matrix allows{f', {numbers.bound}' if numbers.bound else ''}: there it can "
            f"rise no more."
        )


def _epoch_table(numbers: RankTraining) -> TextTable:
    """Return means over the settings that have the epoch; of many epochs, one in `step` up to the
    last one."""
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
        rows.append(
            {
                "epoch": epoch,
                "settings": len(at),
                title: formats.number(rank, digits=4),
                "validation perplexity": formats.cell(PERPLEXITY, perplexity),
                **(
                    {"averaged": "yes" if any(p.averaging[i] for p, i in at) else "no"}
                    if numbers.averaged
                    else {}
                ),
            }
        )
    over = counted(len(numbers.paths), "setting")
    shown = f"; one epoch in {step}, all of them in rank_over_training.csv" if step > 1 else ""
    return text_table(f"Geometric means over {over}{shown}", rows)


def _epoch_records(numbers: RankTraining) -> Iterator[dict[str, Any]]:
    for path in numbers.paths:
        for place, epoch in enumerate(path.epochs):
            yield {
                "rank": numbers.rank,
                "group": path.group,
                "seeds": path.seeds,
                "epoch": epoch,
                "averaging": path.averaging[place],
                "mean_rank": math.exp(path.log_rank_T[place]),
                "mean_valid_perplexity": math.exp(path.log_perplexity_T[place]),
                "rank_half_epoch": path.rank_half,
                "log_perplexity_half_epoch": path.perplexity_half,
            }
