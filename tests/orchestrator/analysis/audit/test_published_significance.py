"""The papers' own p-values, recomputed from the means and deviations that they print beside them.

Means and deviations are printed to two decimals, so each stands for a range of +-0.005, and the p-value for one
too. All groups have 10 seeds. Sources: supplementary material, Table 1; the paper's Tables 4 and 5.
"""

from __future__ import annotations

import pytest

from orchestrator.analysis.statistics.samples import SampleSummary
from orchestrator.analysis.statistics.significance import students_t, students_t_range, welch_t

PTB, WIKITEXT_2 = (57.08, 0.10), (64.63, 0.09)
PRINTED = {
    "SM Table 1, PTB, SS": ((57.03, 0.15), PTB, 3.92e-1),
    "SM Table 1, PTB, GSS": ((57.02, 0.13), PTB, 2.62e-1),
    "SM Table 1, PTB, LMS-PLIF": ((56.81, 0.11), PTB, 1.91e-5),
    "SM Table 1, PTB, MoS": ((54.88, 0.26), PTB, 2.02e-15),
    "SM Table 1, WikiText-2, SS": ((64.35, 0.18), WIKITEXT_2, 3.46e-4),
    "SM Table 1, WikiText-2, GSS": ((64.51, 0.13), WIKITEXT_2, 2.74e-2),
    "SM Table 1, WikiText-2, LMS-PLIF": ((64.15, 0.17), WIKITEXT_2, 2.98e-7),
    "SM Table 1, WikiText-2, MoS": ((61.97, 0.43), WIKITEXT_2, 2.04e-13),
    "Table 4, PTB": ((56.81, 0.11), (56.82, 0.09), 8.26e-1),
    "Table 4, WikiText-2": ((64.15, 0.17), (64.30, 0.17), 6.41e-2),
}


def summaries(source: str) -> tuple[SampleSummary, SampleSummary]:
    (mean_a, sd_a), (mean_b, sd_b), _ = PRINTED[source]
    return SampleSummary(n=10, mean=mean_a, sd=sd_a), SampleSummary(n=10, mean=mean_b, sd=sd_b)


@pytest.mark.parametrize("source", PRINTED)
def test_students_test_of_the_printed_numbers_gives_all_three_published_digits(source: str) -> None:
    printed = PRINTED[source][-1]
    assert f"{students_t(*summaries(source)).p_value:.2e}" == f"{printed:.2e}"
    assert printed in students_t_range(*summaries(source))


def test_welchs_test_does_not_so_the_papers_is_students() -> None:
    p_values = {source: welch_t(*summaries(source)).p_value for source in PRINTED}
    agreeing = [source for source, p_value in p_values.items() if f"{p_value:.2e}" == f"{PRINTED[source][-1]:.2e}"]
    assert agreeing == ["Table 4, WikiText-2"]


def test_the_p_value_of_table_5_does_not_follow_from_the_numbers_printed_beside_it() -> None:
    table5 = SampleSummary(n=10, mean=56.39, sd=0.19), SampleSummary(n=10, mean=56.45, sd=0.10)
    allowed = students_t_range(*table5)
    assert students_t(*table5).p_value == pytest.approx(0.389, abs=5e-4)
    assert (allowed.low, allowed.high) == pytest.approx((0.301, 0.484), abs=5e-4)
    assert 0.62 not in allowed
