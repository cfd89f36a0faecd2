"""Laws of the loss over the rank of a head, and the factors of rank that made-up heads were
given."""

from __future__ import annotations

import math
from typing import Any

import pytest

from orchestrator.analysis.frames import flatten
from orchestrator.analysis.power_laws import PowerLawNumbers, power_law_numbers
from search_spaces.laws import PowerLaw
from tests.support.laws_and_settings import RANKS, head_rank_rows
from tests.support.synthetic_results import fail, trial_row

REQUEST = PowerLaw(x="model.head_rank", by="output_layer.name", baseline="softmax", panel="kind")
FACTORS = {"softmax": 1.0, "gss": 1.0, "mos": 2.0}


def numbers_of(rows: list[dict[str, Any]], request: PowerLaw = REQUEST) -> PowerLawNumbers:
    numbers = power_law_numbers(flatten(rows).frame(), request)
    assert numbers is not None
    return numbers


def test_each_kind_and_layer_has_the_law_that_its_losses_were_made_by() -> None:
    numbers = numbers_of(head_rank_rows(FACTORS, kinds=("language_model", "transformer")))
    assert [(fit.panel, fit.group) for fit in numbers.fits] == [
        (kind, layer) for kind in ("language_model", "transformer") for layer in FACTORS
    ]
    for fit in numbers.fits:
        assert fit.limit.value == pytest.approx(4.0, abs=0.06) and fit.limit.interval
        assert fit.exponent.value == pytest.approx(0.6, abs=0.06) and fit.exponent.interval
        assert fit.not_pinned == () and fit.missing == ""
        assert fit.misfit is not None and fit.misfit > 1e-3
        assert [point.n for point in fit.points] == [3] * len(RANKS) and len(fit.trials) == len(
            fit.places
        ) == 18
    mos = numbers.fits[2]
    assert mos.log_factor.value == pytest.approx(math.log(2 * 2.0**-0.6), abs=0.06)


def test_a_head_that_stands_for_twice_the_rank_is_told_and_one_that_is_plain_is_not() -> None:
    gss, mos = numbers_of(head_rank_rows(FACTORS)).factors
    assert (gss.group, mos.group) == ("gss", "mos")
    assert (
        gss.factor.interval
        and 1.0 in gss.factor.interval
        and gss.p_adjusted is not None
        and gss.p_adjusted > 0.05
    )
    assert (
        mos.factor.value == pytest.approx(2.0, rel=0.03)
        and mos.factor.interval
        and 2.0 in mos.factor.interval
    )
    assert mos.factor.p_value is not None and mos.p_adjusted == pytest.approx(
        2 * mos.factor.p_value
    )
    assert (
        mos.p_adjusted is not None
        and mos.p_adjusted < 0.01
        and mos.misfit is not None
        and mos.misfit > 1e-3
    )


def test_at_single_ranks_the_plain_rank_of_the_same_loss_is_said_and_where_it_lies_beyond() -> None:
    numbers = numbers_of(head_rank_rows(FACTORS))
    mos = [line for line in numbers.equals if line.group == "mos"]
    assert [line.x for line in mos] == list(RANKS)
    for line in mos[:4]:
        assert (
            line.equal.value is not None
            and line.equal.value == pytest.approx(2 * line.x, rel=0.15)
            and not line.extrapolated
        )
        assert line.ratio.value == pytest.approx(line.equal.value / line.x) and line.ratio.interval
        assert line.p_adjusted is not None and line.p_adjusted < 0.05
    assert mos[-1].extrapolated


def test_what_the_plain_head_lies_off_its_law_is_not_put_down_to_another_one() -> None:
    """Both have the same losses but for seeds, which no law describes: each single rank is worth
    itself."""
    rows = head_rank_rows({"softmax": 1.0, "gss": 1.0}, seeds=8, deviation=0.003)
    for row in rows:
        row["metrics"]["test_perplexity"] *= math.exp(
            0.03 * math.cos(math.pi * math.log2(row["config"]["model"]["head_rank"]))
        )
    numbers = numbers_of(rows)
    assert all(fit.misfit is not None and fit.misfit < 1e-3 for fit in numbers.fits)
    for line in numbers.equals:
        assert line.ratio.value == pytest.approx(1.0, abs=0.1)
        assert line.p_adjusted is not None and line.p_adjusted > 0.05


def test_at_a_rank_that_the_plain_head_lacks_nothing_is_held_against_it() -> None:
    rows = [
        row
        for row in head_rank_rows(FACTORS)
        if (row["config"]["output_layer"]["name"], row["config"]["model"]["head_rank"])
        != ("softmax", 8)
    ]
    assert [line.x for line in numbers_of(rows).equals if line.group == "mos"] == [2, 4, 16, 32, 64]


def test_a_loss_below_the_plain_limit_has_no_plain_rank() -> None:
    rows = head_rank_rows({"softmax": 1.0, "mos": 2.0})
    for row in rows:
        if row["config"]["output_layer"]["name"] == "mos":
            row["metrics"]["test_perplexity"] *= math.exp(-1)
    line = numbers_of(rows).equals[-1]
    assert line.equal.value == math.inf and line.ratio.value == math.inf
    assert (
        line.ratio.interval and line.ratio.interval.low == math.inf and line.p_adjusted is not None
    )


def test_laws_that_the_data_do_not_pin_say_so() -> None:
    rows = []
    for rank in RANKS:
        for seed in (1, 2, 3):
            loss = 6 - 0.5 * math.log2(rank) + 0.3 * (seed - 2)
            config = {
                "kind": "transformer",
                "seed": seed,
                "model": {"head_rank": rank},
                "output_layer": {"name": "softmax"},
            }
            rows.append(
                trial_row(f"r={rank} seed={seed}", config=config, test_perplexity=math.exp(loss))
            )
    [fit] = numbers_of(rows).fits
    assert "E" in fit.not_pinned and fit.limit.interval and fit.limit.interval.low == 0


def test_few_ranks_one_seed_and_failures_leave_what_they_leave() -> None:
    rows = head_rank_rows(FACTORS, seeds=1)
    single = numbers_of(rows)
    assert all(
        fit.limit.value and fit.limit.interval is None and fit.misfit is None for fit in single.fits
    )
    assert all(
        line.factor.value and line.factor.p_value is None and line.p_adjusted is None
        for line in single.factors
    )
    lost = [
        fail(row, state="failed", cause="") if row["config"]["model"]["head_rank"] > 8 else row
        for row in rows
    ]
    few = numbers_of(lost)
    assert (
        "needs 4 different sizes, there are 3" in few.fits[0].missing
        and few.factors == ()
        and few.equals == ()
    )
    assert (
        power_law_numbers(
            flatten([fail(row, state="failed", cause="") for row in rows]).frame(), REQUEST
        )
        is None
    )
    assert (
        power_law_numbers(flatten([trial_row("a", test_perplexity=3.0)]).frame(), REQUEST) is None
    )


def test_without_a_panel_and_of_another_metric() -> None:
    rows = [
        {**row, "metrics": {"test_error": math.log(row["metrics"]["test_perplexity"])}}
        for row in head_rank_rows(FACTORS)
    ]
    request = PowerLaw(
        x="model.head_rank", by="output_layer.name", baseline="softmax", metric="test_error"
    )
    numbers = numbers_of(rows, request)
    assert {fit.panel for fit in numbers.fits} == {None}
    assert numbers.fits[0].limit.value == pytest.approx(4.0, abs=0.05)
