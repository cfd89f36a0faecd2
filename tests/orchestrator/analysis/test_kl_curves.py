"""What approximations of log P cost over their rank: means of the trials, and no mean of some of
them."""

from __future__ import annotations

import re

import pandas as pd
import pytest
import torch

from orchestrator.analysis.loss_by_rank import kl_curves
from orchestrator.report.figures import draw_as
from orchestrator.report.sections.kl_curves import kl_curve_section
from trainables.measurements.kl_rank import kl_rank_metrics, kl_ranks

CURVES = {
    ("a", 1): {0: 2.0, 1: 0.5, 2: 0.02, 4: 0.0004},
    ("a", 2): {0: 3.0, 1: 0.7, 2: 0.05},
    ("b", 1): {0: 1.0, 1: 0.04},
    ("b", 2): {},
}


@pytest.fixture
def frame() -> pd.DataFrame:
    rows = [
        {
            "group": group,
            "name": f"{group} seed={seed}",
            "trial_id": f"{group}{seed}",
            "state": "done",
            **{f"kl_at_rank_{rank}": kl for rank, kl in curve.items()},
        }
        for (group, seed), curve in CURVES.items()
    ]
    return pd.DataFrame([*rows, {**rows[0], "name": "failed", "trial_id": "f", "state": "failed"}])


def test_a_point_is_the_mean_of_a_groups_trials_and_a_line_ends_where_the_first_curve_does(
    frame: pd.DataFrame,
) -> None:
    lines = kl_curves(frame)
    assert list(lines) == ["a", "b"]
    assert {rank: (point.n, point.mean) for rank, point in lines["a"].items()} == {
        0: (2, 2.5), 1: (2, pytest.approx(0.6)), 2: (2, pytest.approx(0.035)),
    }  # fmt: skip
    assert (lines["a"][2].least, lines["a"][2].greatest) == (0.02, 0.05)
    assert list(lines["b"]) == [0, 1]


def test_without_a_curve_there_is_nothing(frame: pd.DataFrame) -> None:
    assert not kl_curves(frame[["group", "name", "trial_id", "state"]])
    assert not kl_curves(frame[:0])


def test_the_section_shows_every_rank_and_names_its_points(frame: pd.DataFrame) -> None:
    section = kl_curve_section(kl_curves(frame))
    [table] = section.texts
    assert list(table.head) == ["group", "0", "1", "2", "trials"]
    assert [[cell.text for cell in row] for row in table.body] == [
        ["a", "2.50", "0.600", "0.0350", "2"],
        ["b", "1", "0.0400", "", "1"],
    ]
    rows = section.files["kl_over_rank.csv"]
    assert ["a", "2", 2, pytest.approx(0.035), pytest.approx(0.0212, abs=1e-4), 0.02, 0.05] in rows
    svg = draw_as(section.drawings[0], "svg").decode()
    titles = re.findall(r"<title>(.*?)</title>", svg, flags=re.S)
    assert any(
        "a, rank 2" in title and "mean of 2 trials" in title and "0.035" in title
        for title in titles
    )
    assert not any("rank 0" in title for title in titles), "it has no place on a logarithmic axis"


def test_of_a_measured_matrix_it_is_what_brute_force_gives() -> None:
    torch.manual_seed(0)
    logits_NV = torch.randn(60, 6, dtype=torch.float64) @ torch.randn(6, 40, dtype=torch.float64)
    log_p_NV = torch.log_softmax(logits_NV, dim=1)
    metrics = kl_rank_metrics(kl_ranks(lambda: [log_p_NV], rows=60, columns=40))
    frame = pd.DataFrame(
        [{"group": "g", "name": "g seed=1", "trial_id": "1", "state": "done", **metrics}]
    )
    left_NN, sigma_N, right_NV = torch.linalg.svd(
        log_p_NV - log_p_NV.mean(1, keepdim=True), full_matrices=False
    )
    costs = kl_curves(frame)["g"]
    assert list(costs) == [0, 1, 2, 4]
    for rank, point in costs.items():
        best_NV = (left_NN * sigma_N)[:, : int(rank)] @ right_NV[: int(rank)]
        kl_N = (log_p_NV.exp() * (log_p_NV - torch.log_softmax(best_NV, dim=1))).sum(1)
        assert point.mean == pytest.approx(float(kl_N.mean()), rel=1e-9)
