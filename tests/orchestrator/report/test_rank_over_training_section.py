"""Rank over training on the page, and its numbers in files."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis.frames import flatten
from orchestrator.analysis.rank_over_training import rank_training_numbers
from orchestrator.analysis.statistics.estimates import Interval, Statistic
from orchestrator.analysis.statistics.lead_lag import LeadLag
from orchestrator.report import formats
from orchestrator.report.build import ReportResult
from orchestrator.report.sections.rank_over_training import _lead, rank_training_section
from orchestrator.report.sections.section import Section
from search_spaces.study import GridMap, RankOverTraining
from tests.support.synthetic_results import SEEDED_STUDY, STUDY, csv_records, make_results, report_on, training
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


def test_averaging_is_spoken_of_where_any_trial_averaged() -> None:
    random = np.random.default_rng(0)
    rows, epochs = moved(lead=0.3)
    results = flatten(rows)
    for averaged_from in (None, 6):
        trials = {
            name: training(40 + 10 * np.arange(10) + random.uniform(0, 5, 10), np.linspace(6, 5, 10),
                           averaged_from=averaged_from)
            for name in epochs
        }  # fmt: skip
        section = rank_training_section(rank_training_numbers(results.frame(), trials, RankOverTraining()))
        captions = [*(table.caption for table in section.tables), *(drawing.caption for drawing in section.drawings)]
        heads = [name for table in section.tables for name in table.head]
        words = " ".join([*section.findings, *captions, *heads, section.method])
        assert words.count("averag") == (0 if averaged_from is None else 7)


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
    assert "measured with more noise, or that persists longer, tends to look like the one that follows" in page
    press, entropy = csv_records(report.path.parent / "rank_lead_or_lag.csv")
    assert (press["rank"], press["bound"], press["trials"], press["pairs"]) == ("press_rank", "512", "72", "576")
    assert float(press["difference_low"]) > 0 and entropy["rank"] == "entropy_rank"
    at_bound = sum((epoch.press_rank or 0) >= 512 for trial in epochs.values() for epoch in trial)
    assert 0 < at_bound == int(press["at_bound"])
    assert any(
        f"In {at_bound} of 720 epochs Press rank is as much as the matrix allows, 512: " in text
        for text in section.cautions
    )
    lines = [
        line for line in csv_records(report.path.parent / "rank_over_training.csv") if line["rank"] == "press_rank"
    ]
    assert len(lines) == 720
    trial = epochs[rows[3]["trial_id"]]
    for line, epoch in zip(lines[30:40], trial, strict=True):
        assert float(line["mean_rank"]) == pytest.approx(epoch.press_rank)
        assert math.log(float(line["mean_valid_perplexity"])) == pytest.approx(epoch.valid_loss)


@pytest.mark.parametrize(
    ("leads", "follows", "said"),
    [
        (0.23, -0.20, "Press rank in one epoch says more of validation perplexity in the next"),
        (0.16, -0.33, "speaks for Press rank first."),
        (-0.33, 0.16, "speaks for perplexity first."),
        (-0.20, 0.23, "Validation perplexity in one epoch says more of Press rank in the next"),
    ],
)
def test_what_goes_the_other_way_and_stronger_does_not_say_less(leads: float, follows: float, said: str) -> None:
    apart = leads - follows
    lag = LeadLag(
        cells=27,
        series=81,
        pairs=486,
        together=Statistic(value=0.0),
        leads=Statistic(value=leads),
        follows=Statistic(value=follows),
        difference=Statistic(value=apart, interval=Interval(low=apart - 0.1, high=apart + 0.1)),
    )
    sentence = _lead(lag, "Press rank")
    assert said in sentence
    assert f"{formats.coefficient(leads)} for Press rank first" in sentence


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


def test_how_many_settings_were_half_way_first_adds_up_and_has_no_test(tmp_path: Path) -> None:
    """Settings that share seeds and a course are no independent signs."""
    rows, _ = moved(lead=0.0)
    paths = [((10, 80, 160), (9, 7.5, 5))] * 6 + [((10, 20, 160), (9, 6, 5))] + [((10, 40, 160), (9, 7, 5))] * 2
    epochs = {
        row["trial_id"]: training(*path) for row, path in zip(rows, [*paths, ((10, 11, 10), (9, 6, 5))], strict=False)
    }
    report = report_with(tmp_path, rows, epochs)
    said = next(text for text in section_of(report).findings if "half of its change" in text)
    assert said.endswith(
        "in 6 of 9 settings, later in 1, at the same time in 2; 1 left out; in the median, 0.5 epochs earlier."
    )
    press = csv_records(report.path.parent / "rank_lead_or_lag.csv")[0]
    assert [press[f"half_{name}"] for name in ("rank_first", "perplexity_first", "same", "left_out")] == list("6121")
    assert "sign test" not in report.path.read_text(encoding="utf-8") and "half_p" not in press


def test_the_mean_is_over_all_settings_that_have_the_epoch(tmp_path: Path) -> None:
    """Averaging begins at another epoch in each; seeds are two in one of them."""
    rows, _ = make_results(SEEDED_STUDY)
    two = [row for row in rows if row["name"].startswith(("gss c=-2 k=1.25 ", "gss c=-2 k=1.5 "))][:-1]
    early = training((10, 20, 40, 80), (9, 8, 7, 6), averaged_from=4)
    late = training((10, 80, 80, 80, 160), (9, 6, 5, 5, 5))
    epochs = {row["trial_id"]: early if "k=1.25 " in row["name"] else late for row in two}
    section = section_of(report_with(tmp_path, two, epochs))
    plane, shares = section.drawings
    assert "a line a setting, the mean of 2 to 3 seeds" in plane.caption
    assert shares.caption.endswith("thick: the mean of the settings that have the epoch.")
    [mean] = [line for line in shares.draw().axes[0].lines if line.get_color() == "black"]
    assert list(np.asarray(mean.get_xdata())) == pytest.approx([0, (1 / 2 + 3 / 4) / 2, 1, 1, 1])
    assert list(np.asarray(mean.get_ydata())) == pytest.approx([0, (1 / 2 + 3 / 4) / 2, (1 + 3 / 4) / 2, 3 / 4, 1])


@pytest.mark.parametrize(("epochs", "shown"), [(50, 50), (51, 26), (1000, 50)])
def test_a_page_shows_at_most_50_epochs_with_the_last_one(tmp_path: Path, epochs: int, shown: int) -> None:
    rows, _ = make_results()
    long = training(np.linspace(10, 200, epochs), np.linspace(6, 4, epochs))
    report = report_with(tmp_path, rows[:1], {rows[0]["trial_id"]: long})
    table = section_of(report).tables[1]
    assert (len(table.body), table.body[-1][0].text) == (shown, str(epochs))
    step = math.ceil(epochs / 50)
    assert (f"one epoch in {step}, all of them in rank_over_training.csv" in table.caption) == (step > 1)
    assert len(csv_records(report.path.parent / "rank_over_training.csv")) == 2 * epochs


def test_a_grid_over_what_a_softmax_has_not_leaves_the_lines_uncoloured(tmp_path: Path) -> None:
    rows, epochs = moved(lead=0.3)
    del rows[0]["config"]["output_layer"]["c"]
    report = report_with(tmp_path, rows, epochs, GridMap(row="output_layer.k", column="output_layer.c"))
    assert all("coloured" not in drawing.caption for drawing in section_of(report).drawings)
