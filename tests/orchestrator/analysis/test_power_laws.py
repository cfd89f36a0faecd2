from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from orchestrator.analysis import PowerLawNumbers, flatten, power_law_numbers, rows
from search_spaces.laws import PowerLaw
from tests.support.laws_and_settings import RANKS, head_rank_rows
from tests.support.synthetic_results import fail, trial_row

REQUEST = PowerLaw(x="model.head_rank", by="output_layer.name", baseline="softmax", panel="kind")
FACTORS = {"softmax": 1.0, "gss": 1.0, "mos": 2.0}
KINDS = ("language_model", "transformer")


def numbers_of(results: list[dict[str, Any]], request: PowerLaw = REQUEST) -> PowerLawNumbers:
    numbers = power_law_numbers(flatten(results).frame(), request)
    assert numbers is not None
    return numbers


@pytest.mark.parametrize("panels", [True, False])
def test_laws_match_planted_losses(panels: bool) -> None:
    results, kinds = head_rank_rows(FACTORS, kinds=KINDS if panels else KINDS[:1]), (None,)
    request = REQUEST if panels else replace(REQUEST, panel=None, metric="test_error")
    for row in results:
        row["metrics"]["test_error"] = math.log(row["metrics"]["test_perplexity"])
    laws = numbers_of(results, request).laws
    names = list(zip(laws.fits["panel"], laws.fits["group"], strict=True))
    assert names == list(product(KINDS if panels else kinds, FACTORS))
    for fit in rows(laws.fits):
        assert abs(fit.E - 4.0) < 0.06 and fit.E_low < fit.E < fit.E_high
        assert fit.b == pytest.approx(0.6, abs=0.06) and fit.b_low < fit.b < fit.b_high
        log_a = math.log(2 * FACTORS[fit.group] ** -0.6)
        assert fit.log_a == pytest.approx(log_a, abs=0.06)
        assert (fit.not_pinned, fit.missing) == ("", "") and fit.misfit_p > 1e-3
        assert (fit.trials, fit.sizes) == (18, len(RANKS))


def test_only_planted_factor_is_found() -> None:
    gss, mos = rows(numbers_of(head_rank_rows(FACTORS)).factors)
    assert (gss.group, mos.group) == ("gss", "mos")
    assert gss.factor_low < 1.0 < gss.factor_high and gss.holm_p > 0.05
    assert mos.factor == pytest.approx(2.0, rel=0.03) and mos.factor_low < 2.0 < mos.factor_high
    assert mos.holm_p == pytest.approx(2 * mos.p) and mos.holm_p < 0.01
    assert mos.misfit_p > 1e-3


def test_single_ranks_have_equal_baseline_rank() -> None:
    mos = [line for line in rows(numbers_of(head_rank_rows(FACTORS)).equals) if line.group == "mos"]
    assert [line.x for line in mos] == list(RANKS)
    for line in mos[:4]:
        assert line.equal == pytest.approx(2 * line.x, rel=0.15) and not line.extrapolated
        assert line.ratio == pytest.approx(line.equal / line.x)
        assert line.ratio_low < line.ratio < line.ratio_high and line.holm_p < 0.05
    assert mos[-1].extrapolated


def test_baseline_misfit_is_no_effect() -> None:
    """Both layers follow one curve that is no power law, so the factor between them is 1."""
    results = head_rank_rows({"softmax": 1.0, "gss": 1.0}, seeds=8, deviation=0.003)
    for row in results:
        row["metrics"]["test_perplexity"] *= math.exp(
            0.03 * math.cos(math.pi * math.log2(row["config"]["model"]["head_rank"]))
        )
    numbers = numbers_of(results)
    assert all(numbers.laws.fits["misfit_p"] < 1e-3) and all(numbers.equals["holm_p"] > 0.05)
    assert list(numbers.equals["ratio"]) == pytest.approx([1.0] * len(RANKS), abs=0.1)


def test_equal_ranks_need_baselines() -> None:
    results = [
        row
        for row in head_rank_rows({"softmax": 1.0, "mos": 2.0})
        if not row["name"].startswith("transformer softmax r=8 ")
    ]
    for row in results:
        if row["config"]["output_layer"]["name"] == "mos":
            row["metrics"]["test_perplexity"] *= math.exp(-1)
    lines = list(rows(numbers_of(results).equals))
    assert [line.x for line in lines] == [2, 4, 16, 32, 64]
    last = lines[-1]
    assert last.equal == last.ratio == last.ratio_low == math.inf and last.holm_p is not None


def test_undetermined_limit_is_named() -> None:
    results = head_rank_rows({"softmax": 1.0})
    for row in results:
        rank, seed = row["config"]["model"]["head_rank"], row["config"]["seed"]
        row["metrics"]["test_perplexity"] = math.exp(6 - 0.5 * math.log2(rank) + 0.3 * (seed - 2))
    [fit] = rows(numbers_of(results).laws.fits)
    assert "E" in fit.not_pinned and fit.E_low == 0


def test_single_seeds_and_few_ranks() -> None:
    results = head_rank_rows(FACTORS, seeds=1)
    single = numbers_of(results)
    assert all(fit.E and fit.E_low is fit.misfit_p is None for fit in rows(single.laws.fits))
    assert all(line.factor and line.p is line.holm_p is None for line in rows(single.factors))
    few = numbers_of([row for row in results if row["config"]["model"]["head_rank"] <= 8])
    assert "at least 4 sizes are needed, but there are 3" in few.laws.fits["missing"][0]
    assert few.factors.empty and few.equals.empty
    failed = [fail(row, state="failed", cause="") for row in results]
    for trials in (failed, [trial_row("a", test_perplexity=3.0)]):
        assert power_law_numbers(flatten(trials).frame(), REQUEST) is None
