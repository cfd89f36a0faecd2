"""Which made-up correlation is the settings' alone, which is left without them, and which is
none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from orchestrator.analysis.confounding import ConfoundingNumbers, confounding_numbers
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.statistics.taken_away import Shape
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


def test_a_rank_that_the_settings_alone_move_loses_its_correlation_and_the_other_keeps_it() -> None:
    numbers = numbers_of(settings_rows())
    press, entropy, _ = numbers.lines
    assert numbers.finest == "triples" and numbers.settings == SETTINGS
    assert press.rho["none"].value is not None and press.rho["none"].value < -0.5
    assert press.rho["levels"].interval and 0.0 not in press.rho["levels"].interval
    assert press.rho["pairs"].interval and 0.0 in press.rho["pairs"].interval
    assert press.rho["triples"].interval and 0.0 in press.rho["triples"].interval
    assert entropy.rho["pairs"].interval and entropy.rho["pairs"].interval.high < -0.3
    both = [line.rho["pairs"].p_value for line in (press, entropy)]
    assert entropy.p_adjusted["pairs"] == pytest.approx(2 * min(p for p in both if p is not None))


def test_correlations_are_those_of_residuals_of_logarithms_by_statsmodels() -> None:
    rows = settings_rows()
    frame = flatten(rows).frame().rename(columns=lambda name: name.rpartition(".")[2])
    frame = frame.assign(rank=np.log(frame["entropy_rank"]), loss=np.log(frame["test_perplexity"]))
    formula = "{} ~ (C(batch_size) + C(weight_decay) + C(learning_rate) + C(epochs)) ** {}"
    entropy = numbers_of(rows).lines[1]
    shapes: tuple[tuple[Shape, int], ...] = (("levels", 1), ("pairs", 2), ("triples", 3))
    for shape, size in shapes:
        fits = [smf.ols(formula.format(name, size), frame).fit() for name in ("rank", "loss")]
        theirs = stats.spearmanr(*(fit.resid for fit in fits)).statistic
        assert entropy.rho[shape].value == pytest.approx(theirs, abs=1e-9)
        assert entropy.rho[shape].df == fits[0].df_resid - 1
    assert entropy.explained[""] == pytest.approx(fits[0].rsquared_adj, abs=1e-9)
    alone = smf.ols("rank ~ C(epochs)", frame).fit()
    assert entropy.explained["training.epochs"] == pytest.approx(alone.rsquared_adj, abs=1e-9)
    raw = stats.spearmanr(frame["entropy_rank"], frame["test_perplexity"]).statistic
    assert entropy.rho["none"].value == pytest.approx(raw, abs=1e-9)


def test_a_rank_that_is_nearly_always_the_same_has_no_correlation() -> None:
    constant = numbers_of(settings_rows()).lines[2]
    assert all(
        rho.value is None and "is 33 in 102 of 108 trials" in rho.missing
        for rho in constant.rho.values()
    )
    assert set(constant.explained.values()) == {None} and set(constant.p_adjusted.values()) == {
        None
    }


def test_where_pairs_are_too_many_levels_are_the_finest() -> None:
    rows = settings_rows()[::4]
    numbers = numbers_of(rows)
    assert numbers.finest == "levels" and numbers.left["pairs"] < 10
    assert (
        numbers.lines[0].rho["pairs"].value is None
        and numbers.lines[0].rho["levels"].value is not None
    )


def test_trials_without_a_value_and_settings_that_do_not_vary_are_left_out() -> None:
    rows = settings_rows()
    rows[0] = fail(rows[0], state="diverged", cause="")
    del rows[1]["metrics"]["press_rank"]
    numbers = numbers_of(rows)
    assert (numbers.trials, numbers.lines[0].n, numbers.lines[1].n) == (107, 106, 107)
    none = numbers_of(rows, replace(REQUEST, settings=("model.width",)))
    assert (
        none.settings == () and none.lines[0].rho["pairs"].value == none.lines[0].rho["none"].value
    )
    nothing = [fail(row, state="failed", cause="") for row in rows]
    assert confounding_numbers(flatten(nothing).frame(), REQUEST) is None
    assert (
        confounding_numbers(flatten(rows).frame(), replace(REQUEST, metrics=("stable_rank",)))
        is None
    )


def test_settings_that_are_words_have_levels_in_place_of_a_line() -> None:
    rows = settings_rows()
    for row in rows:
        row["config"]["training"]["learning_rate"] = (
            f"rate {row['config']['training']['learning_rate']}"
        )
    words, numbers = numbers_of(rows), numbers_of(settings_rows())
    assert words.lines[0].rho["levels"].value == pytest.approx(
        numbers.lines[0].rho["levels"].value, abs=1e-9
    )
    assert words.left["lines"] == numbers.left["lines"] - 1
