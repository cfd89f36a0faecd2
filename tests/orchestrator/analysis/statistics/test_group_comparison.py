"""One comparison holds everything, of the same values and with the same names."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import pytest

from orchestrator.analysis.statistics.bootstrap import bootstrap_interval
from orchestrator.analysis.statistics.effect_size import hedges_g
from orchestrator.analysis.statistics.equivalence import (
    smallest_detectable_difference,
    smallest_equivalence_margin,
    tost,
)
from orchestrator.analysis.statistics.group_comparison import compare
from orchestrator.analysis.statistics.samples import summarise_sample
from orchestrator.analysis.statistics.significance import students_t, welch_t

pytestmark = pytest.mark.filterwarnings("error")

SOFTMAX = [57.02, 57.11, 57.18, 56.95, 57.07]
MOS = [54.6, 55.1, 54.9, 54.8, 55.0, 54.7]


def test_every_part_is_the_functions_own() -> None:
    found, a, b = compare(SOFTMAX, MOS, 0.1, seed=3), summarise_sample(SOFTMAX), summarise_sample(MOS)
    assert (found.a, found.b) == (a, b)
    assert (found.student, found.welch) == (students_t(a, b), welch_t(a, b))
    assert found.effect == hedges_g(a, b)
    assert found.bootstrap == bootstrap_interval(SOFTMAX, MOS, 3)
    assert found.detectable == smallest_detectable_difference(a.sd, 5, b.sd, 6)
    assert found.smallest_margin == smallest_equivalence_margin(a, b)
    assert found.equivalence == tost(a, b, 0.1)


def test_without_a_margin_equivalence_is_not_asked_for() -> None:
    assert compare(SOFTMAX, MOS).equivalence is None


@pytest.mark.parametrize(("a", "b"), [([], []), ([57.0], MOS), (SOFTMAX, [54.9]), ([57.0, 57.0], [54.9, 54.9])])
def test_every_part_of_a_comparison_that_cannot_be_made_says_why(a: list[float], b: list[float]) -> None:
    found = compare(a, b, 0.1, names=("softmax", "mos"))
    parts = [getattr(found, field.name) for field in fields(found)]
    reasons = {part.missing for part in parts if hasattr(part, "missing")}
    assert len(reasons) == 1 and "" not in reasons
    assert "softmax" in reasons.pop() or b == [54.9]


def test_four_values_of_each_have_a_test_but_no_bootstrap_and_no_detectable_difference() -> None:
    found = compare(SOFTMAX[:4], MOS[:4])
    assert found.student.p_value is not None
    assert (found.bootstrap.interval, found.detectable.value) == (None, None)
    assert found.detectable.missing == "at least 5 values of each group are needed, there are 4 of a and 4 of b"
    enough = compare(SOFTMAX, MOS[:5])
    assert enough.bootstrap.interval is not None
    assert enough.detectable.value is not None


def test_a_report_does_not_wait_for_scipys_or_statsmodels_imports() -> None:
    program = (
        "import sys; from orchestrator.analysis.statistics.group_comparison import compare; "
        "compare([1.0, 2.0], [2.0, 4.0], 1.0); "
        "print([name for name in ('scipy.stats', 'scipy.optimize', 'statsmodels') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
