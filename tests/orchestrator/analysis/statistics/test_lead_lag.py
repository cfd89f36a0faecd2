"""Lagged partial correlations of changes: against least squares, and on series of which one leads by construction."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.analysis.statistics import whole_cells
from orchestrator.analysis.statistics.lead_lag import LeadLag, lead_lag

Series = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


def made_up(seed: int, *, cells: int = 27, seeds: int = 3, steps: int = 7, lead: float = 0.0) -> Series:
    """Changes of x and y that share noise within a step (r = 0.6), steps that scale them and cells of different speed;
    y takes `lead` of x of the step before."""
    random = np.random.default_rng(seed)
    cell_N = np.repeat(np.arange(cells), seeds)
    x_NT, common_NT, own_NT = random.standard_normal((3, len(cell_N), steps))
    x_NT, y_NT = 0.8 * x_NT + 0.6 * common_NT, 0.8 * own_NT + 0.6 * common_NT
    y_NT[:, 1:] += lead * x_NT[:, :-1]
    speed_2C, course_T = random.standard_normal((2, cells)), 3 * 0.7 ** np.arange(steps)
    return (x_NT + speed_2C[0][cell_N, None]) * course_T, (y_NT + speed_2C[1][cell_N, None]) * course_T, cell_N


def least_squares(x_NT: NDArray[np.float64], y_NT: NDArray[np.float64]) -> dict[str, float]:
    """The four correlations by regressions on a column for each series, each step and the control."""
    places = {(n, t) for n, t in np.ndindex(x_NT.shape) if np.isfinite(x_NT[n, t] + y_NT[n, t])}
    together = [(n, t, x_NT[n, t], y_NT[n, t], 0.0) for n, t in places]
    both = [(n, t) for n, t in places if (n, t + 1) in places]
    leads = [(n, t, x_NT[n, t], y_NT[n, t + 1], y_NT[n, t]) for n, t in both]
    follows = [(n, t, y_NT[n, t], x_NT[n, t + 1], x_NT[n, t]) for n, t in both]
    first, second = _residual_r(leads), _residual_r(follows)
    return {"together": _residual_r(together), "leads": first, "follows": second, "difference": first - second}


def _residual_r(rows: list[tuple[Any, ...]]) -> float:
    series, step, a, b, control = map(np.array, zip(*rows, strict=True))
    columns = [series == n for n in set(series)] + [step == t for t in set(step)] + [control]
    design = np.stack(columns, axis=1).astype(float)
    rest = [values - design @ np.linalg.lstsq(design, values, rcond=None)[0] for values in (a, b)]
    return float(np.corrcoef(rest)[0, 1])


def values(numbers: LeadLag) -> dict[str, float | None]:
    return {name: getattr(numbers, name).value for name in ("together", "leads", "follows", "difference")}


@pytest.mark.parametrize("missing", [(), (4,), (2, 9)])
def test_the_correlations_are_those_of_least_squares(missing: tuple[int, ...]) -> None:
    """Where steps are missing in all series, and some in one or another alone."""
    x, y, cells = made_up(1, cells=12, seeds=2, steps=12, lead=0.3)
    x[:, list(missing)] = np.nan
    y[5, 7], y[8, 6:], x[:4, 3] = np.nan, np.nan, np.nan
    numbers = lead_lag(x, y, cells)
    assert values(numbers) == pytest.approx(least_squares(x, y), abs=1e-10)
    assert (numbers.cells, numbers.series) == (12, 24)


def test_what_leads_by_construction_leads_and_the_other_way_round_it_follows() -> None:
    x, y, cells = made_up(2, lead=0.6)
    numbers, exchanged = lead_lag(x, y, cells), lead_lag(y, x, cells)
    assert numbers.difference.interval is not None and exchanged.difference.interval is not None
    assert numbers.difference.interval.low > 0 > exchanged.difference.interval.high
    assert exchanged.leads.value == pytest.approx(numbers.follows.value)
    assert exchanged.difference.value == pytest.approx(-numbers.difference.value)  # type: ignore[operator]


def test_a_common_course_and_the_speed_of_a_trial_change_nothing() -> None:
    x, y, cells = made_up(3, cells=12)
    course, speed = np.random.default_rng(0).standard_normal(7) * 9, np.arange(36.0)[:, None]
    assert values(lead_lag(x + course - speed, y + 2 * course + 3 * speed, cells)) == pytest.approx(
        values(lead_lag(x, y, cells)), abs=1e-9
    )


def test_where_neither_leads_the_interval_has_zero_about_nine_times_in_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_cells, "RESAMPLES", 499)
    intervals = [lead_lag(*made_up(seed)).difference.interval for seed in range(200)]
    assert 0.88 <= np.mean([interval is not None and 0 in interval for interval in intervals]) <= 0.97


def seeming(*, noise: tuple[float, float], persistence: tuple[float, float] = (0.7, 0.7)) -> list[float]:
    """The difference, where its interval excludes zero (else 0), for 40 draws of two autoregressive series of the same
    shocks, which differ in their noise or persistence alone: none of them moves first."""
    found = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        shocks_NT, paths_2NT = random.standard_normal((81, 18)), np.zeros((2, 81, 18))
        for step in range(1, 18):
            for path_NT, kept in zip(paths_2NT, persistence, strict=True):
                path_NT[:, step] = kept * path_NT[:, step - 1] + shocks_NT[:, step]
        x_NT, y_NT = paths_2NT[:, :, 10:] + np.array(noise)[:, None, None] * random.standard_normal((2, 81, 8))
        difference = lead_lag(x_NT, y_NT, np.repeat(np.arange(27), 3)).difference
        assert difference.value is not None and difference.interval is not None
        found.append(0.0 if 0 in difference.interval else difference.value)
    return found


def test_the_noisier_or_more_persistent_of_two_looks_like_the_one_that_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the statistic cannot tell from a lead, so that the page warns of it."""
    monkeypatch.setattr(whole_cells, "RESAMPLES", 299)
    assert np.mean(np.array(seeming(noise=(0.5, 0.1))) < 0) > 0.5, "x is noisier"
    assert np.mean(np.array(seeming(noise=(0.3, 0.3), persistence=(0.8, 0.3))) < 0) > 0.5, "x persists longer"
    assert np.mean(np.array(seeming(noise=(0.3, 0.3))) != 0) < 0.2, "they are alike"


def test_a_study_at_the_scale_of_the_paper_takes_little_memory() -> None:
    """A column a trial and a step, and the solution, would take 1.2 GB."""
    x_NT, y_NT = np.random.default_rng(0).standard_normal((2, 72, 1000))
    x_NT[:36, 400] = np.nan
    tracemalloc.start()
    assert lead_lag(x_NT, y_NT, np.arange(72)).difference.interval is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_what_cannot_be_said_is_said_in_words() -> None:
    x, y, cells = made_up(4, cells=9)
    few = lead_lag(x, y, cells)
    assert few.leads.value is not None
    assert (few.leads.interval, few.leads.missing) == (None, "an interval needs 10 settings, there are 9")
    x[:, 3] = np.nan
    x[:9, 5:] = np.nan
    assert lead_lag(x[:, :5], y[:, :5], cells).leads.missing.startswith("no trial has 3 epochs")
    assert lead_lag(x, y, cells).series == 18, "nine series have two pairs of steps and not three"
    still = lead_lag(np.ones((12, 6)), y[:12, :6], np.arange(12))
    assert still.together.value is None and "never changed otherwise" in still.together.missing
