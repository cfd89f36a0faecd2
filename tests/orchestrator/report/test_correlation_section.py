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
from search_spaces.study import Correlation
from tests.support.synthetic_results import (
    KEY,
    SEEDED_STUDY,
    csv_records,
    fail,
    make_results,
    report_on,
)

FIRST = "over 72 cells, each the mean of 3 seeds: Pearson r = "


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ReportResult:
    rows, spectra = make_results(SEEDED_STUDY)
    return report_on(rows, tmp_path_factory.mktemp("report"), study=SEEDED_STUDY, spectra=spectra)


def findings_of(report: ReportResult) -> list[str]:
    page = report.path.read_text(encoding="utf-8")
    top = page[page.index('<p class="answer">') : page.index("</section>")]
    return [
        html.unescape(re.sub("<[^>]*>", "", text))
        for text in re.findall("<p class=.answer.>(.*?)</p>|<li>(.*?)</li>", top)
        for text in text
        if text
    ]


def test_first_sentence_gives_the_correlation(
    report: ReportResult,
) -> None:
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
    assert f"{FIRST}{formats.coefficient(r)}, 95% interval {bounds}, p = " in first
    assert first.startswith("No correlation") == (low < 0 < high)
    assert ("went with" in first) == (not low < 0 < high)
    assert second.startswith("All 216 trials are done")
    page = report.path.read_text(encoding="utf-8")
    [contexts] = trials["rank_rows"].unique()
    assert f"Ranks are of log P after {contexts:,} test contexts." in page
    assert page.index('class="answer"') < page.index(
        'id="figure-test_perplexity_against_press_rank"'
    )
    assert page.count('id="figure-test_perplexity_against_press_rank"') == 1


def test_terminal_begins_with_same_sentence(report: ReportResult) -> None:
    console = Console(file=io.StringIO(), width=1000, record=True)
    console.print(summary_group(report))
    lines = console.export_text().splitlines()
    assert lines[0].strip() == findings_of(report)[0]
    assert any(line.strip().startswith("All 216 trials are done") for line in lines)


def test_single_trials_have_no_interval(
    report: ReportResult,
) -> None:
    over = {
        record["over"]: record for record in csv_records(report.path.parent / "correlations.csv")
    }
    single = over["single trials"]
    assert single["n"] == "216" and single["pearson_low"] == single["published_ptb"] == ""
    cells, within = over["cells"], over["seeds of one cell"]
    assert (cells["n"], cells["seeds_least"]) == ("72", "3")
    assert (cells["published_ptb"], cells["published_wikitext-2"]) == ("0.48", "0.53")
    assert cells["independent_low"] and not within["independent_low"]
    assert (within["n"], float(within["pearson_df"])) == ("216", 8), "nine values of c"
    labels = [row[0].text for row in report.answers[0].section.texts[0].body]
    assert labels[2:] == [
        "cells, without the effects of seeds",
        "seeds of one cell",
        "single trials",
    ]
    assert any("are not independent" in text for text in report.answers[0].section.cautions)


def test_correlations_are_exported(
    report: ReportResult,
) -> None:
    cells = csv_records(report.path.parent / "cells.csv")
    assert len(cells) == 72 and {cell["seeds"] for cell in cells} == {"3"}
    rank, perplexity = csv_records(report.path.parent / "variance_components.csv")
    common = formats.deviation(float(rank["variance_seed_in_all_cells"]))
    findings = report.answers[0].section.sentences
    assert any(
        f"standard deviation of this shift is {common} in Press" in text for text in findings
    )
    assert float(perplexity["variance_seed_in_one_cell"]) == pytest.approx(16, rel=0.3), (
        "16 is the variance of the synthetic results"
    )
    partials = csv_records(report.path.parent / "partial_correlations.csv")
    left_out = [record["left_out"] for record in partials]
    assert left_out == ["output_layer.c", "output_layer.k", "output_layer.c output_layer.k"]


def test_incomplete_cells_are_named(tmp_path: Path) -> None:
    rows, _ = make_results(SEEDED_STUDY)
    rows[80] = fail(rows[80], state="failed", cause="why")
    first, second, *_ = findings_of(report_on(rows, tmp_path, study=SEEDED_STUDY))
    assert "over 72 cells, each the mean of 2 to 3 seeds: " in first
    assert second.startswith("215 of 216 trials are done (1 failed)")


def test_single_seed_meets_published_values(
    tmp_path: Path,
) -> None:
    rows, _ = make_results()
    result = report_on(rows, tmp_path, key=replace(KEY, scale="paper", corpus="ptb"))
    section = result.answers[0].section
    assert "over 72 cells, one seed each: " in findings_of(result)[0]
    cells, window = section.sentences[-2:]
    assert "r = +0.48 (PTB), is " in cells and "one seed each" in cells
    assert "published window (test perplexity 56.60 to 57.60)" in window and "PTB" in window
    assert not any("not independent" in text for text in section.cautions)
    assert not (tmp_path / "variance_components.csv").exists()


def test_significant_definitions_are_named(tmp_path: Path) -> None:
    rows, _ = make_results(SEEDED_STUDY)
    study = replace(
        SEEDED_STUDY, analyses=(Correlation(definitions=("press_rank", "stable_rank", "none")),)
    )
    section = report_on(rows, tmp_path, study=study).answers[0].section
    records = csv_records(tmp_path / "definitions.csv")
    assert [record["x"] for record in records] == ["press_rank", "stable_rank"]
    clear = [record for record in records if float(record["p_adjusted"]) < 0.05]
    [finding] = [text for text in section.sentences if "Holm" in text]
    assert "Of 2 definitions" in finding and ("none" in finding) == (not clear)
    assert all(formats.title(record["x"]) in finding for record in clear)
