"""What the report says of pairs, and of counts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.analysis.contrasts import paired_numbers
from orchestrator.analysis.counts import count_numbers
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.statistics.comparisons import compare_pairs
from orchestrator.report.sections.counts import count_section
from orchestrator.report.sections.significance import paired_section
from orchestrator.report.verdicts import paired_verdict
from search_spaces.study import Counts, PairedComparison
from tests.support.synthetic_results import STUDY, done_trial, report_on

NAMES = ("gated", "dense")
DENSE = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
BETTER = [9.0, 18.8, 28.9, 39.1, 48.8, 59.2]
UNCLEAR = [9.0, 21.2, 28.9, 41.1, 48.8, 60.9]


def rows(gated: list[float], dense: list[float]) -> list[dict[str, Any]]:
    return [
        done_trial(group, seed, test_error_percent=value, chosen_learning_rate=0.1 if seed else 0.01)
        for group, values in (("gated", gated), ("dense", dense))
        for seed, value in enumerate(values)
    ]


REQUEST = PairedComparison(baselines={"gated": "dense"}, metric="test_error_percent")


def test_a_significant_difference_says_which_is_lower_and_at_how_many_seeds() -> None:
    text = paired_verdict(compare_pairs(BETTER, DENSE), 0.001, names=NAMES, metric="test_error_percent")
    assert text.startswith(
        "gated has a lower test error (% of variance) than dense at the same seed, by 1.03 in the mean"
    )
    assert "95% interval of this comparison alone" in text and "Holm-adjusted p = 0.001" in text
    assert text.endswith("it is lower at 6 of 6 seeds.")
    turned = paired_verdict(compare_pairs(DENSE, BETTER), 0.001, names=NAMES[::-1], metric="test_error_percent")
    assert turned == text


@pytest.mark.parametrize(
    ("n", "could"), [(6, "6 pairs could have shown with 80% power is"), (4, "at least 5 pairs of")]
)
def test_what_is_not_significant_is_left_open_and_never_called_equal(n: int, could: str) -> None:
    found = compare_pairs(UNCLEAR[:n], DENSE[:n], names=NAMES)
    text = paired_verdict(found, None, names=NAMES, metric="test_error_percent")
    assert "is not significant (p = " in text and "gated minus dense may lie anywhere from" in text
    assert f"gated is lower at {found.lower} of {n} seeds" in text and could in text
    assert not re.search(r"\b(equal|the same|no difference|identical|equivalent)\b", text)


def test_without_spread_nothing_is_concluded() -> None:
    found = compare_pairs(DENSE, DENSE, names=NAMES)
    text = paired_verdict(found, None, names=NAMES, metric="test_error_percent")
    assert text.startswith("Nothing can be concluded about the test error") and "the same in all 6 pairs" in text


def test_the_section_has_a_row_a_comparison_a_file_and_says_who_had_no_partner() -> None:
    section = paired_section(paired_numbers(flatten(rows([*BETTER, 70.0], DENSE)).frame(), REQUEST))
    [line] = section.tables[0].body
    assert [cell.text for cell in line[:3]] == ["gated", "dense", "6"] and line[4].text == "6 of 6"
    assert "1 value has no partner of the same seed" in section.findings[0]
    head, record = section.files["pairs.csv"]
    told = dict(zip(head, record, strict=True))
    assert (told["pairs"], told["pairs_lower"], told["without_partner"]) == (6, 6, 1)
    assert told["paired_p"] == told["holm_p"] and told["mean_baseline"] == 35


def test_counts_are_shown_of_values_that_never_came_up_too() -> None:
    request = Counts(metric="chosen_learning_rate", values=(0.01, 0.1, 0.3))
    section = count_section(count_numbers(flatten(rows(BETTER, DENSE)).frame(), request))
    assert section.tables[0].head == ("model", "0.01", "0.1", "0.3")
    assert [[cell.text for cell in line] for line in section.tables[0].body] == [
        ["gated", "1", "5", "0"],
        ["dense", "1", "5", "0"],
    ]
    assert section.findings == (
        "Of 12 trials, 2 have the least chosen learning rate of the table (0.01), 0 the greatest (0.3).",
    )
    assert section.files["counts.csv"][1] == ["gated", 1, 5, 0]


@pytest.mark.parametrize("state", ["done", "planned"])
def test_both_are_sections_of_a_page(state: str, tmp_path: Path) -> None:
    found = [
        {**row, "state": state, "metrics": row["metrics"] if state == "done" else {}} for row in rows(BETTER, DENSE)
    ]
    study = replace(STUDY, analyses=(REQUEST, Counts(metric="chosen_learning_rate")))
    result = report_on(found, tmp_path, study=study)
    page = result.path.read_text()
    assert page.count('id="pairs"') == page.count('id="counts"') == 1
    assert (tmp_path / "pairs.csv").is_file() and "<td>None" not in page
