from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis import flatten, rank_training_numbers
from orchestrator.report import ReportResult
from orchestrator.report.sections.rank_over_training import rank_training_section
from orchestrator.report.sections.section import Section
from search_spaces.study import RankOverTraining
from tests.support.synthetic_results import (
    STUDY,
    csv_records,
    make_results,
    report_on,
    training,
)
from trainables.trial_folder import EpochMetrics

Trials = dict[str, list[EpochMetrics]]


def moved() -> tuple[list[dict[str, Any]], Trials]:
    random, epochs = np.random.default_rng(1), {}
    rows, _ = make_results()
    for row in rows:
        rises_T, falls_T = random.uniform(0.05, 0.5, 9), random.uniform(0.02, 0.1, 9)
        ranks = 40 * np.exp(np.cumsum([0, *rises_T]))
        row["config"]["evaluation"]["epoch_rank_contexts"] = 512
        epochs[row["trial_id"]] = training(np.round(ranks), 6 - np.cumsum([0, *falls_T]))
    return rows, epochs


def section_of(report: ReportResult) -> Section:
    (section,) = [
        answer.section for answer in report.answers if answer.section.kind == "rank-over-training"
    ]
    return section


def report_with(
    tmp_path: Path, rows: list[dict[str, Any]], epochs: Trials, *more: Any
) -> ReportResult:
    return report_on(
        rows, tmp_path, study=replace(STUDY, analyses=(*more, RankOverTraining())), epochs=epochs
    )


def test_averaging_is_mentioned_if_used() -> None:
    rows, epochs = moved()
    frame = flatten(rows).frame()
    for averaged_from in (None, 6):
        ranks, losses = 40 + 10 * np.arange(10), np.linspace(6, 5, 10)
        trials = dict.fromkeys(epochs, training(ranks, losses, averaged_from=averaged_from))
        numbers = rank_training_numbers(frame, trials, RankOverTraining())
        assert numbers is not None
        section = rank_training_section(numbers)
        [table], [drawing] = section.texts, section.drawings
        words = [*section.sentences, *table.head, drawing.caption, section.method]
        assert " ".join(words).count("averag") == (0 if averaged_from is None else 5)


def test_files_have_every_figure_number(tmp_path: Path) -> None:
    rows, epochs = moved()
    report = report_with(tmp_path, rows, epochs, *STUDY.analyses)
    at_bound = sum((epoch.press_rank or 0) >= 512 for trial in epochs.values() for epoch in trial)
    assert at_bound > 0
    assert (
        f"In {at_bound} of 720 epochs, Press rank has the largest value that the matrix allows, 512"
        in section_of(report).cautions[-1]
    )
    lines = [
        line
        for line in csv_records(report.path.parent / "rank_over_training.csv")
        if line["rank"] == "press_rank"
    ]
    assert len(lines) == 720
    trial = epochs[rows[3]["trial_id"]]
    for line, epoch in zip(lines[30:40], trial, strict=True):
        assert float(line["mean_rank"]) == pytest.approx(epoch.press_rank)
        assert math.log(float(line["mean_valid_perplexity"])) == pytest.approx(epoch.valid_loss)


@pytest.mark.parametrize(("epochs", "row_count"), [(50, 50), (51, 26), (1000, 50)])
def test_page_shows_50_epochs(tmp_path: Path, epochs: int, row_count: int) -> None:
    rows, _ = make_results()
    long = training(np.linspace(10, 200, epochs), np.linspace(6, 4, epochs))
    report = report_with(tmp_path, rows[:1], {rows[0]["trial_id"]: long})
    table = section_of(report).texts[0]
    assert (len(table.body), table.body[-1][0].text) == (row_count, str(epochs))
    step = math.ceil(epochs / 50)
    assert (f"one epoch in {step} (all: rank_over_training.csv)" in table.caption) == (step > 1)
    assert len(csv_records(report.path.parent / "rank_over_training.csv")) == 2 * epochs
