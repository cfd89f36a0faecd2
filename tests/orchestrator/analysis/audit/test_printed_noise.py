"""The printed ranks of SM Tables 15 and 16 follow from one tolerance, and from no other reading of c."""

from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.analysis.audit.printed_noise import COUNT_SPREAD, fit, fit_printed, printed_ranks
from trainables.measurements.quarter_circle import share_below

INFORMATIVE = (1e-20, 1e-21, 1e-22, 1e-23, 1e-24)


def test_one_tolerance_gives_the_five_informative_ranks_within_three() -> None:
    tolerance = fit_printed().tolerance
    for variance in INFORMATIVE:
        # The law written out anew: 10 strong directions, and the noise in the other 9,990.
        x = tolerance / math.sqrt(variance * 9_990)
        grid = np.linspace(0, min(x, 2), 200_001)
        below = np.trapezoid(np.sqrt(4 - grid**2), grid) / math.pi
        assert 10 + 9_990 * (1 - below) == pytest.approx(printed_ranks()[variance], abs=3)
        assert abs(fit_printed().misses[variance]) <= COUNT_SPREAD
    assert fit_printed().largest_miss <= COUNT_SPREAD
    assert all(map(fit_printed().fits, printed_ranks()))


@pytest.mark.parametrize(
    ("variance", "rank"), [(1e-16, 9_000), (1e-8, 9_990), (1e-26, 9), (1e-25, 1_000), (1e-23, 6_000), (1e-20, 9_000)]
)
def test_one_wrong_rank_is_the_one_that_does_not_fit(variance: float, rank: int) -> None:
    wrong = fit({**printed_ranks(), variance: rank})
    assert [each for each in printed_ranks() if not wrong.fits(each)] == [variance]


def test_a_tolerance_half_a_percent_off_does_not() -> None:
    for factor in (0.995, 1.005):
        x = factor * fit_printed().tolerance / math.sqrt(1e-24 * 1e4)
        assert abs(1e4 * (1 - share_below(x)) - printed_ranks()[1e-24]) > 5 * COUNT_SPREAD


def test_c_as_a_standard_deviation_fits_no_two_ranks() -> None:
    """The share that falls short grows with the root of a variance: by 3.16, and with a deviation it would by 10."""
    short = [1e4 - printed_ranks()[variance] for variance in INFORMATIVE[:2]]
    assert short[1] / short[0] == pytest.approx(math.sqrt(10), rel=0.01)


def test_the_printed_matrix_is_smaller_than_any_log_p_matrix_of_its_size() -> None:
    fit = fit_printed()
    assert fit.sigma_max == pytest.approx(10_010, abs=20)
    assert fit.least_log_p_sigma_max == pytest.approx(92_103, abs=1)
    uniform = np.full((50, 50), -math.log(50))
    assert np.linalg.norm(uniform, 2) == pytest.approx(50 * math.log(50)), "where the bound is reached"
