"""Which claims hold of made-up spectra, worked by hand, and what the section says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from orchestrator.analysis.frames import flatten
from orchestrator.analysis.jacobians import JacobianNumbers, jacobian_numbers
from orchestrator.report.sections.jacobians import jacobian_section
from search_spaces.requests import JacobianSpectra

DENSE: dict[str, Any] = {"name": "dense"}
VANISHING = {"dense": 0.5, "softmax gates K=2": 0.25, "softmax gates K=4": 0.3, "constant gates K=2": 0.26}
BETTER = {"vanishing_1e-1": 0.3, "entropy_rank": 70.0, "log10_condition_nonzero": 1.0, "first_half_r2": 0.99}
OFFSETS = (-0.01, 0.0, 0.01)


def layer_of(group: str) -> dict[str, Any]:
    if group == "dense":
        return DENSE
    return {"name": "experts", "experts": int(group[-1]), "gates": group.partition(" ")[0], "gate_for": "expert"}


def results(
    seeds: int = 3, vanishing: dict[str, float] = VANISHING, state: str = "done"
) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.float64]]]:
    rows, spectra = [], {}
    for group, value in vanishing.items():
        for seed in range(seeds):
            name = f"{group} seed={seed}"
            metrics = {
                **{metric: found + OFFSETS[seed] for metric, found in BETTER.items()},
                "vanishing_1e-3": value + OFFSETS[seed],
                "zero_share": 2.0 ** -layer_of(group).get("experts", 1) + OFFSETS[seed],
            }
            config = {"seed": seed, "layer": layer_of(group)}
            about = {"trial_id": name, "name": name, "state": state, "attempt": 1, "cause": None}
            rows.append({**about, "config": config, "metrics": metrics if state == "done" else {}})
            if state == "done":
                spectra[name] = np.array([3.0, 2.0, 1.0, 0.0]) * (seed + 1)
    return rows, spectra


def numbers(**changes: Any) -> JacobianNumbers:
    rows, spectra = results(**changes)
    return jacobian_numbers(flatten(rows).frame(), JacobianSpectra(benchmark="other"), spectra=spectra)


def test_spectra_are_means_over_seeds() -> None:
    dense, softmax, *_ = numbers().spectra
    assert (dense.group, dense.gates, dense.experts, dense.seeds) == ("dense", "none", 1, 3)
    assert (softmax.gates, softmax.experts, softmax.expected_zero_share) == ("softmax", 2, 0.25)
    assert dense.mean is not None and dense.deviation is not None
    assert (dense.mean.tolist(), dense.deviation.tolist()) == ([6, 4, 2, 0], [3, 2, 1, 0])


@pytest.mark.parametrize(("share", "outcome"), [(0.5, "held"), (0.54, "not decided"), (0.7, "did not hold")])
def test_about_half_is_an_interval_between_045_and_055(share: float, outcome: str) -> None:
    half, straight = numbers(vanishing={"dense": share}).levels
    assert half.outcome == outcome
    assert half.interval is not None
    sample = [share + offset for offset in OFFSETS]
    low, high = stats.t.interval(0.95, 2, loc=np.mean(sample), scale=stats.sem(sample))
    assert (half.interval.low, half.interval.high) == pytest.approx((low, high))
    assert straight.outcome == "held"


def test_a_comparison_is_welchs_test_with_holms_correction_over_the_claim() -> None:
    claims = {(claim.text, claim.metric): claim for claim in numbers().steps}
    breaks = claims["Softmax gates break the degeneracy of the dense layer", "vanishing_1e-3"]
    assert [(step.group, step.baseline) for step in breaks.steps] == [
        ("softmax gates K=2", "dense"),
        ("softmax gates K=4", "dense"),
    ]
    sample = np.array(OFFSETS)
    truth = [stats.ttest_ind(sample + value, sample + 0.5, equal_var=False).pvalue for value in (0.25, 0.3)]
    assert [step.test.p_value for step in breaks.steps] == pytest.approx(truth)
    assert [step.p_adjusted for step in breaks.steps] == pytest.approx([2 * truth[0], max(2 * truth[0], truth[1])])
    assert breaks.outcome == "held"


def test_what_goes_the_other_way_did_not_hold_and_what_is_not_significant_is_not_decided() -> None:
    claims = {(claim.text, claim.metric): claim for claim in numbers().steps}
    more = "With softmax gates, more experts are better conditioned"
    assert claims[more, "vanishing_1e-3"].outcome == "did not hold", "0.30 of K=4 against 0.25 of K=2"
    assert claims[more, "entropy_rank"].outcome == "not decided"
    assert not any("constant gates, more" in text for text, _ in claims), "one K alone is no series"


def test_a_higher_entropy_rank_is_the_better_one() -> None:
    rows, spectra = results()
    for row in rows:
        row["metrics"]["entropy_rank"] += {"softmax gates K=4": 5.0}.get(row["name"].partition(" seed")[0], 0.0)
    found = jacobian_numbers(flatten(rows).frame(), JacobianSpectra(), spectra=spectra)
    [claim] = [each for each in found.steps if each.metric == "entropy_rank"]
    assert claim.outcome == "held"


def test_with_one_seed_nothing_is_decided_and_the_section_says_so() -> None:
    found = numbers(seeds=1)
    outcomes = {claim.outcome for claim in found.levels} | {claim.outcome for claim in found.steps}
    assert outcomes == {"not decided"}
    section = jacobian_section(found)
    assert all("not decided, as that needs two seeds" in text for text in section.findings[:-2])
    assert section.drawings[0].draw().axes and section.drawings[1].draw().axes


def test_without_any_result_the_section_says_that_alone() -> None:
    section = jacobian_section(numbers(state="planned"))
    assert section.findings == ("No trial has a spectrum yet.",) and not section.tables


def test_the_section_names_each_outcome_and_what_did_not_go_as_claimed() -> None:
    section = jacobian_section(numbers())
    text = "\n".join(section.findings)
    assert "about half of the singular values vanish: held." in text
    assert "softmax gates K=4 against softmax gates K=2 goes the other way (difference +0.05" in text
    assert "python sweep.py other" in text
    lines = section.files["spectra.csv"]
    assert len(lines) == 1 + 4 * 4 and list(lines[1])[:6] == ["dense", "none", 1, 3, 1, 6.0]
    figure = section.drawings[0].draw()
    assert [[line.get_label() for line in axes.lines] for axes in figure.axes] == [
        ["dense", "K = 2", "K = 4"],
        ["dense", "K = 2"],
    ]
