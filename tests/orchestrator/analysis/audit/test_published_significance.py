"""The papers' own p-values, recomputed from the means and deviations that they print beside them.

Means and deviations are printed to two decimals, so each stands for a range of +-0.005, and the p-value for one
too. All groups have 10 seeds. Sources: supplementary material, Table 1; the paper's Tables 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from orchestrator.analysis.statistics.samples import SampleSummary
from orchestrator.analysis.statistics.significance import students_t, students_t_range, welch_t


@dataclass(frozen=True, kw_only=True)
class Row:
    source: str
    a: tuple[float, float]
    b: tuple[float, float]
    p_value: float

    @property
    def summaries(self) -> tuple[SampleSummary, SampleSummary]:
        (mean_a, sd_a), (mean_b, sd_b) = self.a, self.b
        return SampleSummary(n=10, mean=mean_a, sd=sd_a), SampleSummary(n=10, mean=mean_b, sd=sd_b)


PTB, WIKITEXT_2 = (57.08, 0.10), (64.63, 0.09)
AGREEING = [
    Row(source="SM Table 1, PTB, SS", a=(57.03, 0.15), b=PTB, p_value=3.92e-1),
    Row(source="SM Table 1, PTB, GSS", a=(57.02, 0.13), b=PTB, p_value=2.62e-1),
    Row(source="SM Table 1, PTB, LMS-PLIF", a=(56.81, 0.11), b=PTB, p_value=1.91e-5),
    Row(source="SM Table 1, PTB, MoS", a=(54.88, 0.26), b=PTB, p_value=2.02e-15),
    Row(source="SM Table 1, WikiText-2, SS", a=(64.35, 0.18), b=WIKITEXT_2, p_value=3.46e-4),
    Row(source="SM Table 1, WikiText-2, GSS", a=(64.51, 0.13), b=WIKITEXT_2, p_value=2.74e-2),
    Row(source="SM Table 1, WikiText-2, LMS-PLIF", a=(64.15, 0.17), b=WIKITEXT_2, p_value=2.98e-7),
    Row(source="SM Table 1, WikiText-2, MoS", a=(61.97, 0.43), b=WIKITEXT_2, p_value=2.04e-13),
    Row(source="Table 4, PTB", a=(56.81, 0.11), b=(56.82, 0.09), p_value=8.26e-1),
    Row(source="Table 4, WikiText-2", a=(64.15, 0.17), b=(64.30, 0.17), p_value=6.41e-2),
]
DISAGREEING = Row(source="Table 5", a=(56.39, 0.19), b=(56.45, 0.10), p_value=0.62)


@pytest.mark.parametrize("row", AGREEING, ids=lambda row: row.source)
def test_the_published_p_value_lies_in_the_range_that_the_rounding_allows(row: Row) -> None:
    assert row.p_value in students_t_range(*row.summaries)


@pytest.mark.parametrize("row", AGREEING, ids=lambda row: row.source)
def test_students_test_of_the_printed_numbers_gives_all_three_published_digits(row: Row) -> None:
    found = students_t(*row.summaries)
    assert f"{found.p_value:.2e}" == f"{row.p_value:.2e}"


def test_welchs_test_does_not_so_the_papers_is_students() -> None:
    agreeing = [row for row in AGREEING if f"{welch_t(*row.summaries).p_value:.2e}" == f"{row.p_value:.2e}"]
    assert [row.source for row in agreeing] == ["Table 4, WikiText-2"]


def test_the_p_value_of_table_5_does_not_follow_from_the_numbers_printed_beside_it() -> None:
    allowed = students_t_range(*DISAGREEING.summaries)
    assert students_t(*DISAGREEING.summaries).p_value == pytest.approx(0.389, abs=5e-4)
    assert (allowed.low, allowed.high) == pytest.approx((0.301, 0.484), abs=5e-4)
    assert DISAGREEING.p_value not in allowed
