"""The answer of a grid: what is said first, over what, how sure it is, and the numbers as files."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from orchestrator.report import ReportResult, formats
from orchestrator.report.terminal import summary_group
from search_spaces.study import Correlation, GridMap
from tests.support.synthetic_results import (
    KEY,
    SEEDED_STUDY,
    STUDY,
    csv_records,
    fail,
    make_results,
    report_on,
)

FIRST = "Over 72 cells, each the mean of 3 seeds, Press rank and test perplexity have Pearson r = "


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ReportResult:
    rows, spectra = make_results(SEEDED_STUDY)
    return report_on(rows, tmp_path_factory.mktemp("report"), study=SEEDED_STUDY, spectra=spectra)


def findings_of(report: ReportResult) -> list[str]:
    page = report.path.read_text(encoding="utf-8")
    listed = page[page.index('<ul class="findings">') :]
    return [
        html.unescape(text)
        for text in re.findall("<li>(.*?)</li>", listed[: listed.index("</ul>")])
    ]


def test_a_figure_stands_above_the_first_sentence_which_says_the_correlation_over_what_and_how_sure(
    report: ReportResult,
) -> None:
    """r and its interval from the CSV file of all trials, by their formulas."""
    trials = pd.read_csv(report.path.parent / "trials.csv")
    cells = trials.groupby(["output_layer.c", "output_layer.k"])[
        ["press_rank", "test_perplexity"]
    ].mean()
    r = float(np.corrcoef(cells.T)[0, 1])
    c = cells.index.get_level_values(0)
    without = [np.arctanh(np.corrcoef(cells[c != value].T)[0, 1]) for value in c.unique()]
    half = 2.306004135204166 * np.sqrt(8 / 9 * np.sum((without - np.mean(without)) ** 2))
    low, high = np.tanh(np.arctanh(r) + np.array([-1, 1]) * half)
    first, second, *_ = findings_of(report)
    bounds = f"[{formats.coefficient(low)}, {formats.coefficient(high)}]"
    assert first.startswith(f"{FIRST}{formats.coefficient(r)}, 95% interval {bounds}, p = ")
    assert ("the interval includes zero" in first) == (low < 0 < high)
    assert ("the interval excludes zero" in first) == (not low < 0 < high)
    assert second == "All 216 trials are done."
    page = report.path.read_text(encoding="utf-8")
    [contexts] = trials["rank_rows"].unique()
    assert f"Ranks are of log P after {contexts:,} test contexts." in page
    assert page.index('id="figure-test_perplexity_against_press_rank"') < page.index(first[:40])
    assert page.count('id="figure-test_perplexity_against_press_rank"') == 1


def test_the_terminal_begins_with_the_same_sentence(report: ReportResult) -> None:
    console = Console(file=io.StringIO(), width=1000, record=True)
    console.print(summary_group(report))
    shown = console.export_text().splitlines()
    assert shown[0].strip() == findings_of(report)[0]
    assert {"All 216 trials are done.", *findings_of(report)[2:7]} <= {
        line.strip() for line in shown
    }


def test_single_trials_stand_beside_without_an_interval_and_are_called_what_they_are(
    report: ReportResult,
) -> None:
    over = {
        record["over"]: record for record in csv_records(report.path.parent / "correlations.csv")
    }
    single = over["single trials"]
    assert (single["n"], single["pearson_low"], single["pearson_p"], single["published_ptb"]) == (
        "216",
        "",
        "",
        "",
    )
    assert (over["cells"]["n"], over["cells"]["seeds_least"], over["cells"]["published_ptb"]) == (
        "72",
        "3",
        "0.48",
    )
    within = over["seeds of one cell"]
    assert (bool(over["cells"]["independent_low"]), within["independent_low"]) == (True, "")
    assert (within["n"], float(within["pearson_df"])) == ("216", 8), "nine values of c"
    shown = [[cell.text for cell in row[:2]] for row in report.answers[0].section.texts[0].body]
    assert shown[2:] == [
        ["cells, without what their seeds add", "72"],
        ["seeds of one cell", "216"],
        ["single trials", "216"],
    ]
    assert any("are no independent points" in text for text in report.answers[0].section.cautions)


def test_every_number_of_the_cells_the_seeds_share_and_the_partial_correlations_is_in_a_file(
    report: ReportResult,
) -> None:
    cells = csv_records(report.path.parent / "cells.csv")
    assert len(cells) == 72 and {cell["seeds"] for cell in cells} == {"3"}
    trials = pd.read_csv(report.path.parent / "trials.csv")
    of_first = trials[trials["name"].str.startswith(cells[0]["group"] + " seed=")]
    assert float(cells[0]["test_perplexity"]) == pytest.approx(of_first["test_perplexity"].mean())
    of_seeds = [
        trials[trials["seed"] == seed]["test_perplexity"].mean() for seed in of_first["seed"]
    ]
    rest = of_first["test_perplexity"].to_numpy() - of_seeds
    assert float(cells[0]["test_perplexity_sd"]) == pytest.approx(rest.std(ddof=1))
    shares = {
        record["metric"]: record
        for record in csv_records(report.path.parent / "variance_components.csv")
    }
    common = f"standard deviation of {formats.deviation(float(shares['press_rank']['variance_seed_in_all_cells']))} in Press"
    assert any("cancels between them" in text and common in text for text in findings_of(report))
    perplexity = shares["test_perplexity"]
    assert float(perplexity["variance_seed_in_one_cell"]) == pytest.approx(16, rel=0.3), (
        "as the results were made"
    )
    assert (
        float(perplexity["seed_share_low"])
        < float(perplexity["seed_share"])
        < float(perplexity["seed_share_high"])
    )
    left_out = [
        record["left_out"]
        for record in csv_records(report.path.parent / "partial_correlations.csv")
    ]
    assert left_out == ["output_layer.c", "output_layer.k", "output_layer.c output_layer.k"]


def test_the_grid_shows_cell_means_and_the_spectra_one_trial_a_cell(report: ReportResult) -> None:
    grid, spectra = report.answers[1].section, report.answers[2].section
    assert all(drawing.caption.endswith("each the mean of 3 trials.") for drawing in grid.drawings)
    trials = pd.read_csv(report.path.parent / "trials.csv")
    cell = trials[(trials["output_layer.c"] == -2) & (trials["output_layer.k"] == 1.25)]
    assert grid.written["press_rank_over_c_k.csv"][1][1] == pytest.approx(cell["press_rank"].mean())
    assert all("72 settings, one trial each" in drawing.caption for drawing in spectra.drawings)


def test_cells_with_fewer_seeds_are_said_to_have_them(tmp_path: Path) -> None:
    rows, _ = make_results(SEEDED_STUDY)
    rows[80] = fail(rows[80], state="failed", cause="why")
    first, second, *_ = findings_of(report_on(rows, tmp_path, study=SEEDED_STUDY))
    assert first.startswith("Over 72 cells, each the mean of 2 to 3 seeds, ")
    assert second == "215 of 216 trials are done (1 failed); everything here is over the done ones."


def test_one_seed_at_the_papers_scale_stands_beside_the_published_values_as_ever(
    tmp_path: Path,
) -> None:
    rows, _ = make_results()
    result = report_on(rows, tmp_path, key=replace(KEY, scale="paper", corpus="ptb"))
    section = result.answers[0].section
    assert findings_of(result)[0].startswith(
        "Over 72 cells, one seed each, Press rank and test perplexity have "
    )
    assert section.remarks[0].startswith(
        "Over 72 cells, one seed each: the published +0.48 (PTB) lies "
    )
    assert "published window, test perplexity 56.60 to 57.60" in section.remarks[1]
    assert section.texts[0].body[0][0].text == "all cells" and len(section.texts[0].body) == 2
    assert not any(
        "no independent points" in text or "trained each cell once" in text
        for text in section.cautions
    )
    assert not (tmp_path / "variance_components.csv").exists()


def test_without_a_result_coverage_comes_first(tmp_path: Path) -> None:
    rows = [fail(row, state="planned", cause="") for row in make_results(columns=50)[0]]
    assert findings_of(report_on(rows, tmp_path))[0].startswith("0 of 72 trials are done")


def test_a_grid_over_the_seed_leaves_no_seed_out(tmp_path: Path) -> None:
    """As the study in the docs asks for: the seed differs within a cell, so it is no setting of the
    cell."""
    rows, _ = make_results(SEEDED_STUDY)
    study = replace(
        SEEDED_STUDY, analyses=(Correlation(), GridMap(row="output_layer.c", column="seed"))
    )
    numbers = report_on(rows, tmp_path, study=study).answers[0].numbers
    assert numbers.partials.empty and (numbers.colour_by, numbers.rows) == ("", "")


def test_several_requests_have_files_of_their_own(tmp_path: Path) -> None:
    rows, _ = make_results(SEEDED_STUDY)
    study = replace(STUDY, analyses=(Correlation(), Correlation(x="stable_rank")))
    report_on(rows, tmp_path, study=study)
    assert (tmp_path / "cells.csv").read_text() != (tmp_path / "2_cells.csv").read_text()


def test_where_seeds_agree_that_is_said_and_the_cells_own_correlation_is_given(
    tmp_path: Path,
) -> None:
    rows, _ = make_results(SEEDED_STUDY)
    ranks: dict[str, int] = {}
    for row in rows:
        row["metrics"]["press_rank"] = ranks.setdefault(
            row["name"].partition(" seed=")[0], row["metrics"]["press_rank"]
        )
    findings = report_on(rows, tmp_path, study=SEEDED_STUDY).answers[0].section.findings
    shares = next(
        text for text in findings if text.startswith("Of the variance between cells of one seed")
    )
    assert "the seed makes up 0% (the seeds of a cell do not differ) in Press rank and " in shares
    assert any(
        text.startswith("Without what the seeds add to the means, the cells' own correlation")
        for text in findings
    )
    assert not any("cannot be told from zero" in text for text in findings)


def test_significant_definitions_of_rank_are_named(tmp_path: Path) -> None:
    rows, _ = make_results(SEEDED_STUDY)
    study = replace(
        SEEDED_STUDY, analyses=(Correlation(definitions=("press_rank", "stable_rank", "none")),)
    )
    section = report_on(rows, tmp_path, study=study).answers[0].section
    records = csv_records(tmp_path / "definitions.csv")
    assert [record["x"] for record in records] == ["press_rank", "stable_rank"]
    table = next(table for table in section.texts if "by definition of rank" in table.caption)
    assert [row[0].text for row in table.body] == ["Press rank", "stable rank"]
    clear = [record for record in records if float(record["p_adjusted"]) < 0.05]
    [finding] = [text for text in section.findings if "Holm" in text]
    assert f"over 2 definitions, {'none' if not clear else ''}" in finding
    assert all(formats.title(record["x"]) in finding for record in clear)
