"""Tests that each point of a mean curve averages all trials, never only some of them."""

from __future__ import annotations

import pandas as pd
import pytest

from orchestrator.analysis import kl_curves
from orchestrator.report.hover import NamedMarks
from orchestrator.report.sections.spectra import kl_curve_section

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


def test_curve_ends_with_shortest_trial(frame: pd.DataFrame) -> None:
    curves = kl_curves(frame)
    assert curves is not None
    points = curves[["group", "rank", "n", "mean", "least", "greatest"]].to_numpy().tolist()
    assert points == [
        ["a", 0, 2, 2.5, 2.0, 3.0],
        ["a", 1, 2, pytest.approx(0.6), 0.5, 0.7],
        ["a", 2, 2, pytest.approx(0.035), 0.02, 0.05],
        ["b", 0, 1, 1.0, 1.0, 1.0],
        ["b", 1, 1, 0.04, 0.04, 0.04],
    ]
    assert kl_curves(frame[["group", "name", "trial_id", "state"]]) is kl_curves(frame[:0]) is None


def test_the_section_names_its_points(frame: pd.DataFrame) -> None:
    curves = kl_curves(frame)
    assert curves is not None
    section = kl_curve_section(curves)
    [table] = section.texts
    assert list(table.head) == ["group", "0", "1", "2", "trials"]
    assert [[cell.text for cell in row] for row in table.body] == [
        ["a", "2.50", "0.600", "0.0350", "2"],
        ["b", "1", "0.0400", "\N{EN DASH}", "1"],
    ]
    drawn = section.drawings[0].draw().findobj(NamedMarks)
    names = [name for marks in drawn for _, name in marks.marks]
    assert any("a, rank 2" in name for name in names)
    assert not any("rank 0" in name for name in names), "a logarithmic axis cannot show rank 0"
