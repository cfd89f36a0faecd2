"""Rank and validation perplexity by epoch."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.analysis import RankTrainingNumbers, rows
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table
from orchestrator.report.findings import describe
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.prose import cautions, prose
from orchestrator.report.sections.section import Section
from orchestrator.words import counted

if TYPE_CHECKING:
    import pandas as pd

PERPLEXITY = "valid_perplexity"
MOST_ROWS = 50


def rank_training_section(numbers: RankTrainingNumbers) -> Section:
    """Return the section of a RankOverTraining request.

    Findings are about every rank metric; figure, table and cautions are about the first one.
    """
    first, *_ = ranks = list(rows(numbers.ranks))
    epochs = numbers.epochs[numbers.epochs["rank"] == first.rank]
    return Section(
        kind="rank-over-training",
        heading="Rank over training",
        findings=tuple(
            describe("rank_over_training", **vars(rank), averaged=numbers.averaged)
            for rank in ranks
            if rank.compared
        ),
        cautions=cautions("rank_over_training", **vars(first)),
        tables=(
            _table(first, epochs, averaged=numbers.averaged),
            Table(frame=numbers.epochs.drop(columns="colour"), file="rank_over_training.csv"),
        ),
        method=prose("method_rank_over_training.txt", averaged=numbers.averaged),
        drawings=(_drawing(first, epochs, numbers),),
        wide=False,
    )


def _table(rank: Any, epochs: pd.DataFrame, *, averaged: bool) -> Table:
    means = epochs.groupby("epoch", as_index=False).agg(
        settings=("group", "size"),
        mean_rank=("mean_rank", _geometric_mean),
        mean_valid_perplexity=("mean_valid_perplexity", _geometric_mean),
        averaged=("averaging", "any"),
    )
    step = math.ceil(len(means) / MOST_ROWS)
    over = counted(rank.settings, "setting")
    thinning = f"; one epoch in {step} (all: rank_over_training.csv)" if step > 1 else ""
    title = formats.heading(rank.rank)
    perplexity = Column("validation perplexity", partial(formats.cell, PERPLEXITY))
    return Table(
        caption=f"Geometric means over {over}{thinning}",
        frame=means[::-step][::-1],
        columns=[
            "epoch",
            "settings",
            ("mean_rank", Column(title, formats.digits(4))),
            ("mean_valid_perplexity", perplexity),
            *([("averaged", Column("averaged", formats.yes_no))] if averaged else []),
        ],
    )


def _geometric_mean(values: pd.Series[float]) -> float:
    return math.exp(float(np.mean(np.log(values.astype(float)))))


def _drawing(rank: Any, epochs: pd.DataFrame, numbers: RankTrainingNumbers) -> LineFigure:
    title = formats.title(rank.rank)
    colour = formats.title(numbers.colour_by) if numbers.colour_by else ""
    fewest, seeds = min(epochs["seeds"]), max(epochs["seeds"])
    mean = f", the mean of {formats.bounds(fewest, seeds)} seeds" if seeds > 1 else ""
    pale = "; pale points have averaged weights" if numbers.averaged else ""
    return LineFigure(
        name="rank_over_training",
        caption=f"Validation perplexity against {title} from epoch to epoch, one line per setting"
        f"{mean}{f', coloured by {colour}' if colour else ''}. A ring marks the last epoch{pale}.",
        marks=_marks(epochs),
        x=formats.capital(title),
        y={"": "Validation perplexity"},
        groups=numbers.groups,
        colour=colour,
        logarithmic_y={""},
    )


def _marks(epochs: pd.DataFrame) -> pd.DataFrame:
    texts = [
        formats.described(
            f"{epoch.group}, epoch {epoch.epoch}",
            {epoch.rank: epoch.mean_rank, PERPLEXITY: epoch.mean_valid_perplexity},
            trials=epoch.seeds,
        )
        for epoch in rows(epochs)
    ]
    names = {"mean_rank": "x", "mean_valid_perplexity": "y", "averaging": "hollow"}
    return epochs.rename(columns=names).assign(kind="path", text=texts)
