"""Variance components against sums written out, the textbook's exact interval, and simulated data of known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from orchestrator.analysis.statistics.nested import between_correlation, variance_components, within_correlation

BALANCED = {"a": [4.0, 5.5, 6.1], "b": [9.2, 8.0, 8.8], "c": [1.0, 3.5, 2.2], "d": [6.0, 6.5, 4.9]}
UNBALANCED = {"a": [4.0, 5.5, 6.1, 4.4], "b": [9.2], "c": [1.0, 3.5], "d": [6.0, 6.5, 4.9]}


def flat(groups: dict[str, list[float]]) -> tuple[list[float], list[str]]:
    return [value for values in groups.values() for value in values], [g for g, v in groups.items() for _ in v]


def simulated(
    rng: np.random.Generator, counts: list[int], *, share: float, rho: float, rho_seed: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Two values a seed whose variances are 1, the seed's share of them and both correlations as given."""
    cells = np.repeat(np.arange(len(counts)), counts)
    own = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=len(counts)) * math.sqrt(1 - share)
    seed = rng.multivariate_normal([0, 0], [[1, rho_seed], [rho_seed, 1]], size=len(cells)) * math.sqrt(share)
    values = own[cells] + seed
    return values[:, 0], values[:, 1], cells


@pytest.mark.parametrize("groups", [BALANCED, UNBALANCED])
def test_the_components_are_those_of_the_analysis_of_variance_written_out(groups: dict[str, list[float]]) -> None:
    values, cells = flat(groups)
    grand, total, a = sum(values) / len(values), len(values), len(groups)
    means = {g: sum(v) / len(v) for g, v in groups.items()}
    within = sum((x - means[g]) ** 2 for g, v in groups.items() for x in v) / (total - a)
    mean_square = sum(len(v) * (means[g] - grand) ** 2 for g, v in groups.items()) / (a - 1)
    n0 = (total - sum(len(v) ** 2 for v in groups.values()) / total) / (a - 1)
    between = (mean_square - within) / n0
    ours = variance_components(values, cells)
    assert (ours.cells, ours.values) == (a, total)
    assert ours.within == pytest.approx(within, rel=1e-12) and ours.between == pytest.approx(between, rel=1e-12)
    assert ours.share.value == pytest.approx(within / (within + between), rel=1e-12)
    noise = within * sum(1 / len(v) for v in groups.values()) / a
    assert ours.reliability.value == pytest.approx(between / (between + noise), rel=1e-12)


def test_of_equal_numbers_the_interval_is_the_textbooks() -> None:
    """Shrout and Fleiss (1979), ICC(1, 1): F over the quantiles of F; the mean square ratio from scipy's ANOVA."""
    values, cells = flat(BALANCED)
    ratio = float(stats.f_oneway(*BALANCED.values()).statistic)
    low, high = (ratio / stats.f.ppf(q, 3, 8) for q in (0.975, 0.025))
    ours = variance_components(values, cells)
    assert ours.share.interval is not None and ours.reliability.interval is not None
    assert 1 - ours.share.interval.high == pytest.approx((low - 1) / (low + 2), rel=1e-9)
    assert 1 - ours.share.interval.low == pytest.approx((high - 1) / (high + 2), rel=1e-9)
    assert ours.reliability.value == pytest.approx(1 - 1 / ratio, rel=1e-12)
    assert ours.reliability.interval.low == pytest.approx(1 - 1 / low, rel=1e-9)


@pytest.mark.parametrize(("counts", "share"), [([3] * 20, 0.4), ([1, 2, 3, 5] * 5, 0.4), ([2, 3] * 10, 0.8)])
def test_the_interval_covers_the_true_share_19_times_out_of_20(counts: list[int], share: float) -> None:
    rng, covered, shares = np.random.default_rng(3), 0, []
    for _ in range(1500):
        x, _, cells = simulated(rng, counts, share=share, rho=0, rho_seed=0)
        ours = variance_components(x, cells).share
        assert ours.interval is not None and ours.value is not None
        covered += share in ours.interval
        shares.append(ours.value)
    assert covered / 1500 == pytest.approx(0.95, abs=0.017)
    assert np.median(shares) == pytest.approx(share, abs=0.05)


def test_a_pair_of_seeds_goes_together_as_the_seeds_do_whatever_the_cells_do() -> None:
    """Against the slope-free definition: r of the residuals from the cells' means."""
    rng = np.random.default_rng(5)
    x, y, cells = simulated(rng, [3, 4, 2] * 8, share=0.5, rho=0.9, rho_seed=-0.5)
    rest = [values - np.array([values[cells == cell].mean() for cell in cells]) for values in (x, y)]
    ours = within_correlation(x, y, cells)
    assert ours.value == pytest.approx(np.corrcoef(rest)[0, 1], rel=1e-12)
    assert ours.df == len(x) - 24 - 1
    covered = 0
    for _ in range(1000):
        interval = within_correlation(*simulated(rng, [3] * 20, share=0.5, rho=0.9, rho_seed=-0.5)).interval
        assert interval is not None
        covered += -0.5 in interval
    assert covered / 1000 == pytest.approx(0.95, abs=0.02)


def test_the_cells_own_correlation_is_found_though_the_seeds_errors_go_together() -> None:
    """The usual correction for attenuation would be wrong here: the seed's errors in x and y are correlated."""
    rng = np.random.default_rng(8)
    x, y, cells = simulated(rng, [3] * 20_000, share=0.5, rho=-0.6, rho_seed=0.8)
    means = [np.array([values[3 * i : 3 * i + 3].mean() for i in range(2000)]) for values in (x, y)]
    assert np.corrcoef(means)[0, 1] > -0.4, "what the means say"
    assert between_correlation(x[:6000], y[:6000], cells[:6000]).value == pytest.approx(-0.6, abs=0.05)


def test_of_equal_numbers_it_is_the_means_covariance_without_the_seeds() -> None:
    rng = np.random.default_rng(9)
    x, y, cells = simulated(rng, [4] * 30, share=0.3, rho=0.5, rho_seed=0.4)
    covariance = np.cov([[values[cells == cell].mean() for cell in range(30)] for values in (x, y)])
    rest = np.array([[values[cells == cell] - values[cells == cell].mean() for cell in range(30)] for values in (x, y)])
    own = covariance - np.einsum("icn,jcn->ij", rest, rest) / (30 * 3) / 4
    expected = own[0, 1] / math.sqrt(own[0, 0] * own[1, 1])
    assert between_correlation(x, y, cells).value == pytest.approx(expected, rel=1e-10)


def test_its_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng, covered = np.random.default_rng(11), 0
    for _ in range(150):
        interval = between_correlation(*simulated(rng, [3] * 36, share=0.3, rho=-0.6, rho_seed=0.3)).interval
        assert interval is not None
        covered += -0.6 in interval
    assert 0.88 <= covered / 150 <= 0.99


def test_noise_alone_has_no_correlation_of_cells_and_a_share_near_one() -> None:
    rng = np.random.default_rng(13)
    x, y, cells = simulated(rng, [3] * 10, share=1.0, rho=0, rho_seed=0.9)
    share = variance_components(x, cells).share
    assert share.interval is not None and share.interval.high == 1
    assert "cannot be told from zero" in between_correlation(x, y, cells).missing


def test_what_the_values_do_not_allow_is_said_in_words() -> None:
    once = variance_components([1.0, 2.0, 3.0], ["a", "b", "c"])
    assert once.share.value is None and once.share.missing == "no cell has more than one value"
    assert variance_components([1.0, 2.0], ["a", "a"]).share.missing == "at least 2 cells are needed, there is 1"
    assert variance_components([], []).share.missing == "at least 2 cells are needed, there is none"
    alike = variance_components([1.0, 1.0, 2.0, 2.0], ["a", "a", "b", "b"])
    assert (alike.share.value, alike.share.interval, alike.reliability.value) == (0.0, None, 1.0)
    assert "all values are the same" in variance_components([5.0] * 4, ["a", "a", "b", "b"]).share.missing
    assert "no spread within" in within_correlation([1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 3.0, 4.0], list("aabb")).missing
    with pytest.raises(ValueError, match="finite"):
        variance_components([1.0, math.nan], ["a", "b"])


def test_many_values_a_cell_make_its_mean_more_reliable() -> None:
    rng = np.random.default_rng(17)
    for count in (2, 4, 16):
        x, _, cells = simulated(rng, [count] * 4000, share=0.5, rho=0, rho_seed=0)
        value = variance_components(x, cells).reliability.value
        assert value == pytest.approx(count / (count + 1), abs=0.05), (
            "Spearman-Brown at an intraclass correlation of 1/2"
        )
