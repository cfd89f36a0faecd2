"""Rank over training on the page, and its numbers in files."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.report.build import ReportResult
from orchestrator.report.sections.section import Section
from search_spaces.study import GridMap, RankOverTraining
from tests.support.synthetic_results import STUDY, make_results, report_on, training
from trainables.trial_folder.outcome import EpochMetrics

Trials = dict[str, list[EpochMetrics]]


def moved(*, lead: float) -> tuple[list[dict[str, Any]], Trials]:
    """The 72 trials, whose loss falls by `lead` of the rank's rise of the epoch before, and by noise."""
    random, epochs = np.random.default_rng(1), {}
    rows, _ = make_results()
    for row in rows:
        rises_T = random.uniform(0.05, 0.5, 9)
        falls_T = random.uniform(0.02, 0.1, 9)
        falls_T[1:] += lead * rises_T[:-1]
        ranks = 40 * np.exp(np.cumsum([0, *rises_T]))
        row["config"]["evaluation"]["epoch_rank_contexts"] = 512
        epochs[row["trial_id"]] = training(np.round(ranks), 6 - np.cumsum([0, *falls_T]))
    return rows, epochs


def section_of(report: ReportResult) -> Section:
    (section,) = [answer.section for answer in report.answers if answer.section.kind == "rank-over-training"]
    return section


def report_with(tmp_path: Path, rows: list[dict[str, Any]], epochs: Trials, *more: Any) -> ReportResult:
    return report_on(rows, tmp_path, study=replace(STUDY, analyses=(*more, RankOverTraining())), epochs=epochs)


def records(report: ReportResult, name: str) -> list[dict[str, Any]]:
    with (report.path.parent / name).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_of_a_rank_that_leads_by_construction_it_is_said_what_it_says_of_perplexity_and_every_number_is_in_files(
    tmp_path: Path,
) -> None:
    rows, epochs = moved(lead=0.3)
    report = report_with(tmp_path, rows, epochs, *STUDY.analyses)
    section = section_of(report)
    # 0.3 rises and noise are uniform, 0.135 and 0.08 wide: r = 0.135 / sqrt(0.135^2 + 0.08^2).
    says = "Press rank in one epoch says more of validation perplexity in the next than the other way round: r = "
    assert re.search(re.escape(says) + r"\+0\.8[5-7]", section.findings[0])
    page = report.path.read_text(encoding="utf-8")
    assert section.findings[0] in page
    assert "measured with more noise, or that persists longer, looks like the one that follows" in page
    press, entropy = records(report, "rank_lead_or_lag.csv")
    assert (press["rank"], press["contexts"], press["trials"], press["pairs"]) == ("press_rank", "512", "72", "576")
    assert float(press["difference_low"]) > 0 and entropy["rank"] == "entropy_rank"
    at_bound = sum((epoch.press_rank or 0) >= 512 for trial in epochs.values() for epoch in trial)
    assert 0 < at_bound == int(press["at_bound"])
    assert any(f"In {at_bound} of 720 epochs Press rank is 512" in text for text in section.cautions)
    lines = [line for line in records(report, "rank_over_training.csv") if line["rank"] == "press_rank"]
    assert len(lines) == 720
    trial = epochs[rows[3]["trial_id"]]
    for line, epoch in zip(lines[30:40], trial, strict=True):
        assert float(line["mean_rank"]) == pytest.approx(epoch.press_rank)
        assert math.log(float(line["mean_valid_perplexity"])) == pytest.approx(epoch.valid_loss)


def test_without_a_lead_it_is_left_open_and_the_scatter_stays_on_top(tmp_path: Path) -> None:
    rows, epochs = moved(lead=0.0)
    report = report_with(tmp_path, rows, epochs, *STUDY.analyses)
    assert (
        "Which of the two says more of the other in the next epoch is left open: r = " in section_of(report).findings[0]
    )
    page = report.path.read_text(encoding="utf-8")
    first, *_ = (part.partition('"')[0] for part in page.split('id="figure-')[1:])
    assert first == "test_perplexity_against_press_rank"
    for name in ("rank_over_training", "rank_lead_or_lag"):
        assert page.count(f'id="figure-{name}"') == 1 and (tmp_path / f"{name}.png").exists()


def test_a_few_settings_of_two_epochs_are_drawn_and_the_rest_is_said_to_be_missing(tmp_path: Path) -> None:
    rows, epochs = moved(lead=0.0)
    short = {row["trial_id"]: epochs[row["trial_id"]][:2] for row in rows[:4]}
    report = report_with(tmp_path, rows, short)
    section = section_of(report)
    assert section.findings == ()
    assert section.cautions[0].startswith(
        "Which of Press rank and perplexity says more of the other cannot be said: no trial has 3"
    )
    assert [drawing.name for drawing in section.drawings] == ["rank_over_training"]
    assert 'id="figure-rank_over_training"' in report.path.read_text(encoding="utf-8")


def test_a_few_settings_have_no_interval_and_so_no_verdict(tmp_path: Path) -> None:
    rows, epochs = moved(lead=0.3)
    few = {row["trial_id"]: epochs[row["trial_id"]] for row in rows[:5]}
    finding = section_of(report_with(tmp_path, rows, few)).findings[0]
    assert "over 5 trials of 5 settings, too few to tell. Which of the two says more of the other" in finding
    assert finding.endswith("an interval needs 10 settings, there are 5.")


def test_without_ranks_of_epochs_there_is_no_section(tmp_path: Path) -> None:
    rows, epochs = moved(lead=0.3)
    bare = {key: [epoch.model_copy(update={"press_rank": None, "entropy_rank": None}) for epoch in trial]
            for key, trial in epochs.items()}  # fmt: skip
    for unranked in (bare, {}):
        report = report_with(tmp_path, rows, unranked, GridMap(row="output_layer.c", column="output_layer.k"))
        assert "rank-over-training" not in [answer.section.kind for answer in report.answers]
