"""Variance components against sums written out, regressions, textbooks' intervals and simulated
data of known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from orchestrator.analysis.statistics.variance_components import (
    between_correlation,
    variance_components,
    within_correlation,
)

Simulated = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]

BALANCED = {"a": [4.0, 5.5, 6.1], "b": [9.2, 8.0, 8.8], "c": [1.0, 3.5, 2.2], "d": [6.0, 6.5, 4.9]}
UNBALANCED = {"a": [4.0, 5.5, 6.1, 4.4], "b": [9.2], "c": [1.0, 3.5], "d": [6.0, 6.5, 4.9]}


def flat(groups: dict[str, list[float]]) -> tuple[list[float], list[str]]:
    return [value for values in groups.values() for value in values], [
        g for g, v in groups.items() for _ in v
    ]


def nested(cells: list[str]) -> range:
    """Seeds of which no two cells share one."""
    return range(len(cells))


def simulated(
    rng: np.random.Generator,
    counts: list[int],
    *,
    share: float,
    rho: float = 0.0,
    rho_seed: float = 0.0,
    common: float | None = 0.0,
) -> Simulated:
    """Two values of each cell's first seeds, cells and rest of variance 1 together, the rest's
    share and both correlations as given; what a seed does to all cells has a deviation of `common`
    and goes together in both. None: every value has a seed of its own."""
    cells = np.repeat(np.arange(len(counts)), counts)
    seeds = np.concatenate([np.arange(count) for count in counts])
    values = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=len(counts))[
        cells
    ] * math.sqrt(1 - share)
    values += rng.multivariate_normal(
        [0, 0], [[1, rho_seed], [rho_seed, 1]], size=len(cells)
    ) * math.sqrt(share)
    values += (common or 0.0) * rng.multivariate_normal(
        [0, 0], [[1, 0.9], [0.9, 1]], size=max(counts)
    )[seeds]
    return values[:, 0], values[:, 1], cells, np.arange(len(cells)) if common is None else seeds


def residuals(
    values: NDArray[np.float64], *labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], int]:
    """Of least squares on a column for each label, and how many degrees of freedom they have."""
    design = np.concatenate(
        [names[:, None] == np.unique(names) for names in labels], axis=1
    ).astype(float)
    solution, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    return values - design @ solution, len(values) - int(rank)


@pytest.mark.parametrize("groups", [BALANCED, UNBALANCED])
def test_without_a_common_seed_the_components_are_those_of_one_way_analysis_written_out(
    groups: dict[str, list[float]],
) -> None:
    values, cells = flat(groups)
    grand, total, a = sum(values) / len(values), len(values), len(groups)
    means = {g: sum(v) / len(v) for g, v in groups.items()}
    within = sum((x - means[g]) ** 2 for g, v in groups.items() for x in v) / (total - a)
    mean_square = sum(len(v) * (means[g] - grand) ** 2 for g, v in groups.items()) / (a - 1)
    n0 = (total - sum(len(v) ** 2 for v in groups.values()) / total) / (a - 1)
    between = (mean_square - within) / n0
    ours = variance_components(values, cells, nested(cells))
    assert (ours.cells, ours.values, ours.common) == (a, total, None)
    assert ours.rest == pytest.approx(within, rel=1e-12) and ours.own == pytest.approx(
        between, rel=1e-12
    )
    assert ours.share.value == pytest.approx(within / (within + between), rel=1e-12)
    noise = within * sum(1 / len(v) for v in groups.values()) / a
    assert ours.reliability.value == pytest.approx(between / (between + noise), rel=1e-12)


@pytest.mark.parametrize("counts", [[3] * 8, [3, 2, 3, 1, 3, 3, 2, 3]])
def test_of_the_same_seeds_the_components_are_those_of_regressions_on_dummies(
    counts: list[int],
) -> None:
    """Henderson's method 3: of a variance within cells, within seeds and within both, each with its
    expectation."""
    x, _, cells, seeds = simulated(np.random.default_rng(1), counts, share=0.4, common=0.8)
    (rest, df), (in_cells, df_cells), (in_seeds, df_seeds) = (
        residuals(x, *labels) for labels in ((cells, seeds), (cells,), (seeds,))
    )
    ours = variance_components(x, cells, seeds)
    assert ours.rest == pytest.approx(rest @ rest / df, rel=1e-12)
    assert ours.common == pytest.approx(
        in_cells @ in_cells / df_cells - rest @ rest / df, rel=1e-12
    )
    assert ours.own == pytest.approx(in_seeds @ in_seeds / df_seeds - rest @ rest / df, rel=1e-12)


def test_of_the_same_seeds_in_every_cell_the_interval_is_the_textbooks() -> None:
    """Shrout and Fleiss (1979), ICC(3, 1) and ICC(3, 3): two-way mean squares written out, F over
    its quantiles."""
    table = np.array(list(BALANCED.values())) + np.array([0.0, 5.0, -3.0])
    cells, seeds = np.indices(table.shape)
    rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    ratio = 3 * np.var(table.mean(axis=1), ddof=1) / ((rest**2).sum() / 6)
    low, high = (ratio / stats.f.ppf(q, 3, 6) for q in (0.975, 0.025))
    ours = variance_components(table.ravel(), cells.ravel(), seeds.ravel())
    assert ours.share.interval is not None and ours.reliability.interval is not None
    assert 1 - ours.share.interval.high == pytest.approx((low - 1) / (low + 2), rel=1e-9)
    assert 1 - ours.share.interval.low == pytest.approx((high - 1) / (high + 2), rel=1e-9)
    assert ours.reliability.value == pytest.approx(1 - 1 / ratio, rel=1e-12)
    assert ours.reliability.interval.low == pytest.approx(1 - 1 / low, rel=1e-9)


def test_of_equal_numbers_without_a_common_seed_the_interval_is_the_textbooks() -> None:
    """Shrout and Fleiss (1979), ICC(1, 1): F over the quantiles of F; the mean square ratio from
    scipy's ANOVA."""
    values, cells = flat(BALANCED)
    ratio = float(stats.f_oneway(*BALANCED.values()).statistic)
    low, high = (ratio / stats.f.ppf(q, 3, 8) for q in (0.975, 0.025))
    ours = variance_components(values, cells, nested(cells))
    assert ours.share.interval is not None and ours.reliability.interval is not None
    assert 1 - ours.share.interval.high == pytest.approx((low - 1) / (low + 2), rel=1e-9)
    assert 1 - ours.share.interval.low == pytest.approx((high - 1) / (high + 2), rel=1e-9)
    assert ours.reliability.value == pytest.approx(1 - 1 / ratio, rel=1e-12)
    assert ours.reliability.interval.low == pytest.approx(1 - 1 / low, rel=1e-9)


@pytest.mark.parametrize("common", [None, 0.0, 1.4])
@pytest.mark.parametrize(
    ("counts", "share"), [([3] * 20, 0.4), ([1, 2, 3, 5] * 5, 0.4), ([2, 3] * 10, 0.8)]
)
def test_the_interval_covers_the_true_share_19_times_out_of_20(
    counts: list[int], share: float, common: float | None
) -> None:
    """Whatever a seed does to all cells: here twice the variance of a cell's own seeds, or none, or
    no common seed."""
    rng, covered, shares = np.random.default_rng(3), 0, []
    for _ in range(1000):
        x, _, cells, seeds = simulated(rng, counts, share=share, common=common)
        ours = variance_components(x, cells, seeds).share
        assert ours.interval is not None and ours.value is not None
        covered += share in ours.interval
        shares.append(ours.value)
    assert covered / 1000 == pytest.approx(0.95, abs=0.02)
    assert np.median(shares) == pytest.approx(share, abs=0.05)


def test_what_seeds_have_in_common_is_found() -> None:
    rng = np.random.default_rng(4)
    found = [
        variance_components(x, cells, seeds).common
        for x, _, cells, seeds in (
            simulated(rng, [3] * 20, share=0.5, common=2.0) for _ in range(2000)
        )
    ]
    assert np.mean([common or 0.0 for common in found]) == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize("counts", [[3] * 24, [3, 4, 2] * 8])
def test_a_pair_of_seeds_goes_together_as_the_rests_do_whatever_cells_and_seeds_do(
    counts: list[int],
) -> None:
    """Against the slope-free definition: r of the residuals of a regression on dummies of both."""
    rng = np.random.default_rng(5)
    x, y, cells, seeds = simulated(rng, counts, share=0.5, rho=0.9, rho_seed=-0.5, common=1.0)
    (rest, df), (other, _) = (residuals(values, cells, seeds) for values in (x, y))
    ours = within_correlation(x, y, cells, seeds)
    assert ours.value == pytest.approx(np.corrcoef(rest, other)[0, 1], rel=1e-12)
    assert ours.df == df - 1 == len(x) - 24 - max(counts)


@pytest.mark.parametrize("common", [None, 0.0, 1.4])
def test_its_interval_holds_the_truth_and_its_p_is_small_by_chance_as_often_as_they_say(
    common: float | None,
) -> None:
    """A seed that does the same to every cell moved both metrics of all of them: no evidence of
    each of them."""
    rng, covered, small = np.random.default_rng(6), 0, 0
    for _ in range(1000):
        drawn = simulated(rng, [3] * 19 + [2], share=0.5, rho=0.9, rho_seed=-0.5, common=common)
        interval = within_correlation(*drawn).interval
        assert interval is not None
        covered += -0.5 in interval
        p_value = within_correlation(
            *simulated(rng, [3] * 20, share=0.5, rho=0.9, common=common)
        ).p_value
        assert p_value is not None
        small += p_value < 0.05
    assert covered / 1000 == pytest.approx(0.95, abs=0.02)
    assert small / 1000 == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("common", [None, 1.0])
def test_the_cells_own_correlation_is_found_though_the_seeds_errors_go_together(
    common: float | None,
) -> None:
    """The usual correction for attenuation would be wrong here: the seed's errors in x and y are
    correlated."""
    rng = np.random.default_rng(8)
    x, y, cells, seeds = simulated(rng, [3] * 500, share=0.5, rho=-0.6, rho_seed=0.8, common=common)
    means = [values.reshape(-1, 3).mean(axis=1) for values in (x, y)]
    assert np.corrcoef(means)[0, 1] > -0.4, "what the means say"
    assert between_correlation(x, y, cells, seeds).value == pytest.approx(-0.6, abs=0.08)


@pytest.mark.parametrize("common", [None, 1.0])
def test_of_equal_numbers_it_is_the_means_covariance_without_the_seeds(
    common: float | None,
) -> None:
    rng = np.random.default_rng(9)
    x, y, cells, seeds = simulated(rng, [4] * 30, share=0.3, rho=0.5, rho_seed=0.4, common=common)
    covariance = np.cov([values.reshape(30, 4).mean(axis=1) for values in (x, y)])
    labels = (cells,) if common is None else (cells, seeds)
    (rest, df), (other, _) = (residuals(values, *labels) for values in (x, y))
    own = (
        covariance - np.array([[rest @ rest, rest @ other], [other @ rest, other @ other]]) / df / 4
    )
    expected = own[0, 1] / math.sqrt(own[0, 0] * own[1, 1])
    assert between_correlation(x, y, cells, seeds).value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("common", [None, 1.0])
def test_its_interval_covers_the_truth_about_as_often_as_it_says(common: float | None) -> None:
    rng, covered = np.random.default_rng(11), 0
    for _ in range(120):
        drawn = simulated(rng, [3] * 35 + [2], share=0.3, rho=-0.6, rho_seed=0.3, common=common)
        interval = between_correlation(*drawn).interval
        assert interval is not None
        covered += -0.6 in interval
    assert 0.91 <= covered / 120 <= 0.995


def test_of_fewer_than_five_cells_it_has_no_interval() -> None:
    x, y, cells, seeds = simulated(np.random.default_rng(12), [3] * 4, share=0.01, rho=0.5)
    ours = between_correlation(x, y, cells, seeds)
    assert ours.value is not None
    assert (ours.interval, ours.missing) == (
        None,
        "an interval needs 5 values of the settings, there are 4",
    )


def test_noise_alone_has_no_correlation_of_cells_and_a_share_near_one() -> None:
    rng = np.random.default_rng(13)
    x, y, cells, seeds = simulated(rng, [3] * 10, share=1.0, rho_seed=0.9, common=1.0)
    share = variance_components(x, cells, seeds).share
    assert share.interval is not None and share.interval.high == 1
    assert "cannot be told from zero" in between_correlation(x, y, cells, seeds).missing


def test_where_seeds_agree_the_cells_own_correlation_is_that_of_the_means() -> None:
    ranks, seeds = np.repeat([26.0, 27, 26, 25, 31, 40, 28, 30, 33, 29], 3), np.tile([1, 2, 3], 10)
    cells, noise = np.repeat(np.arange(10), 3), np.random.default_rng(14).normal(0, 1, 30)
    components = variance_components(ranks, cells, seeds)
    assert (components.share.value, components.share.missing) == (
        0.0,
        "the seeds of a cell do not differ",
    )
    common = variance_components(ranks + seeds, cells, seeds)
    assert (common.share.value, common.share.missing) == (
        0.0,
        "the seeds differ by the same in every cell",
    )
    assert common.common == pytest.approx(1.0)
    other = noise[:10].repeat(3)
    ours = between_correlation(ranks, other, cells, seeds)
    assert (
        ours.value == pytest.approx(np.corrcoef(ranks[::3], other[::3])[0, 1])
        and ours.interval is not None
    )
    noisy = between_correlation(ranks, ranks + noise, cells, seeds)
    assert noisy.value == 1.0 and noisy.missing


def test_rounding_is_no_spread() -> None:
    """Means of three equal numbers are not always those numbers."""
    values, cells, seeds = (
        np.repeat([1.0, 2, 3, 4, 5, 7], 3),
        np.repeat(np.arange(6), 3),
        np.tile([1, 2, 3], 6),
    )
    noise = np.random.default_rng(15).normal(size=18)
    for constant in (values, values / 3 + 1e5, values * 0.1 + seeds * 0.3):
        assert (
            within_correlation(constant, noise, cells, seeds).missing
            == "one of the two has no spread within cells"
        )
        assert variance_components(constant, cells, seeds).share.value == 0.0
    alike = variance_components(seeds * 0.1, cells, seeds)
    assert (alike.own, alike.share.missing) == (0.0, "the cells do not differ")


def test_what_the_values_do_not_allow_is_said_in_words() -> None:
    once = variance_components([1.0, 2.0, 3.0], ["a", "b", "c"], [1, 1, 1])
    assert once.share.value is None and once.share.missing == "no cell has more than one value"
    assert (
        variance_components([1.0, 2.0], ["a", "a"], [1, 2]).share.missing
        == "at least 2 cells are needed, there is 1"
    )
    assert (
        variance_components([], [], []).share.missing
        == "at least 2 cells are needed, there is none"
    )
    begun = variance_components([1.0, 2.0, 3.0], ["a", "a", "b"], [1, 2, 1])
    assert begun.share.missing == "too few cells have several seeds in common"
    alike = variance_components([1.0, 1.0, 2.0, 2.0], list("aabb"), [1, 2, 1, 2])
    assert (alike.share.value, alike.share.interval, alike.reliability.value) == (0.0, None, 1.0)
    assert (
        variance_components([5.0] * 4, list("aabb"), [1, 2, 1, 2]).share.missing
        == "the cells do not differ"
    )
    with pytest.raises(ValueError, match="finite"):
        variance_components([1.0, math.nan], ["a", "b"], [1, 1])
    with pytest.raises(ValueError, match="labels"):
        variance_components([1.0, 2.0], ["a", "b"], [1])


def test_many_values_a_cell_make_its_mean_more_reliable() -> None:
    rng = np.random.default_rng(17)
    for count in (2, 4, 16):
        x, _, cells, seeds = simulated(rng, [count] * 500, share=0.5, common=1.0)
        value = variance_components(x, cells, seeds).reliability.value
        assert value == pytest.approx(count / (count + 1), abs=0.05), (
            "Spearman-Brown at an intraclass correlation of 1/2"
        )
