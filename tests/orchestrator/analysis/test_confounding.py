from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from orchestrator.analysis import ConfoundingNumbers, Shape, confounding_numbers, flatten
from search_spaces.analyses import PartialCorrelations
from tests.support.laws_and_settings import SETTINGS, settings_rows
from tests.support.synthetic_results import fail

REQUEST = PartialCorrelations(
    metrics=("press_rank", "entropy_rank", "kl_rank_1e-3", "stable_rank"),
    settings=(*SETTINGS, "model.width"),
)


def numbers_of(
    rows: list[dict[str, Any]], request: PartialCorrelations = REQUEST
) -> ConfoundingNumbers:
    numbers = confounding_numbers(flatten(rows).frame(), request)
    assert numbers is not None
    return numbers


def rho(numbers: ConfoundingNumbers, metric: str, column: str = "rho") -> dict[Shape, Any]:
    of_metric = numbers.correlations[numbers.correlations["metric"] == metric]
    return dict(zip(of_metric["taken_away"], of_metric[column], strict=True))


def shares(numbers: ConfoundingNumbers, metric: str) -> dict[str, float]:
    of_metric = numbers.shares[numbers.shares["metric"] == metric]
    return dict(zip(of_metric["setting"], of_metric["adjusted_r2"], strict=True))


def test_partial_correlation_removes_settings() -> None:
    numbers = numbers_of(settings_rows())
    assert numbers.finest == "triples" and numbers.settings == SETTINGS
    low, high = (rho(numbers, "press_rank", end) for end in ("rho_low", "rho_high"))
    assert rho(numbers, "press_rank")["none"] < -0.5
    assert not low["levels"] < 0.0 < high["levels"]
    assert low["pairs"] < 0.0 < high["pairs"] and low["triples"] < 0.0 < high["triples"]
    assert rho(numbers, "entropy_rank", "rho_high")["pairs"] < -0.3
    p_values = [rho(numbers, metric, "p")["pairs"] for metric in ("press_rank", "entropy_rank")]
    assert rho(numbers, "entropy_rank", "holm_p")["pairs"] == pytest.approx(2 * min(p_values))


def test_correlations_equal_statsmodels_residuals() -> None:
    frame = flatten(settings_rows()).frame().rename(columns=lambda name: name.rpartition(".")[2])
    frame = frame.assign(rank=np.log(frame["entropy_rank"]), loss=np.log(frame["test_perplexity"]))
    formula = "{} ~ (C(batch_size) + C(weight_decay) + C(learning_rate) + C(epochs)) ** 3"
    fits = [smf.ols(formula.format(name), frame).fit() for name in ("rank", "loss")]
    expected = stats.spearmanr(*(fit.resid for fit in fits)).statistic
    numbers = numbers_of(settings_rows())
    assert rho(numbers, "entropy_rank")["triples"] == pytest.approx(expected, abs=1e-9)
    alone = smf.ols("rank ~ C(epochs)", frame).fit()
    explained = shares(numbers, "entropy_rank")
    assert (explained["all"], explained["training.epochs"]) == pytest.approx(
        (fits[0].rsquared_adj, alone.rsquared_adj), abs=1e-9
    )


def test_near_constant_rank_has_no_correlation() -> None:
    numbers = numbers_of(settings_rows())
    missing = set(rho(numbers, "kl_rank_1e-3", "missing").values())
    assert missing == {"kl_rank_1e-3 is 33 in 102 of 108 trials"}
    assert {*rho(numbers, "kl_rank_1e-3").values(), *shares(numbers, "kl_rank_1e-3").values()} == {
        None
    }


def test_many_pairs_keep_finest_levels() -> None:
    numbers = numbers_of(settings_rows()[::4])
    assert numbers.finest == "levels" and numbers.left["pairs"] < 10
    line = rho(numbers, "press_rank")
    assert line["pairs"] is None and line["levels"] is not None


def test_missing_and_constant_are_excluded() -> None:
    rows = settings_rows()
    rows[0] = fail(rows[0], state="diverged", cause="")
    del rows[1]["metrics"]["press_rank"]
    numbers = numbers_of(rows)
    counts = [rho(numbers, metric, "n")["none"] for metric in ("press_rank", "entropy_rank")]
    assert (numbers.trials, counts) == (107, [106, 107])
    plain = numbers_of(rows, replace(REQUEST, settings=("model.width",)))
    line = rho(plain, "press_rank")
    assert plain.settings == () and line["pairs"] == line["none"]
    frame = flatten([fail(row, state="failed", cause="") for row in rows]).frame()
    assert confounding_numbers(frame, REQUEST) is None
    unmeasured = replace(REQUEST, metrics=("stable_rank",))
    assert confounding_numbers(flatten(rows).frame(), unmeasured) is None
