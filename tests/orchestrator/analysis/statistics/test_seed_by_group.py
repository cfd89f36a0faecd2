"""The F-test that a seed moves one group at all sizes, against statsmodels' analysis of
variance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

from orchestrator.analysis.statistics.power_law import seed_by_group_p


def values(own: float, seed: int = 1) -> pd.DataFrame:
    """Three groups at four sizes with three seeds, one value of which is missing."""
    rng = np.random.default_rng(seed)
    effect = rng.normal(0, own, (3, 3))
    rows = [
        {"group": f"g{g}", "x": x, "seed": s, "y": g + 1 / x + effect[g, s] + s + rng.normal()}
        for g in range(3)
        for x in (1, 2, 4, 8)
        for s in range(3)
    ]
    return pd.DataFrame(rows).drop(index=17)


def p_of(frame: pd.DataFrame) -> float | None:
    return seed_by_group_p(list(frame.x), frame.y, list(frame.seed), list(frame.group))


@pytest.mark.parametrize("own", [0.0, 2.0])
def test_p_is_that_of_nested_models(own: float) -> None:
    frame = values(own)
    small = smf.ols("y ~ C(group) * C(x) + C(seed)", frame).fit()
    large = smf.ols("y ~ C(group) * C(x) + C(seed) + C(group):C(seed)", frame).fit()
    expected = anova_lm(small, large)["Pr(>F)"].iloc[1]
    assert p_of(frame) == pytest.approx(expected, rel=1e-6)
    assert (expected < 0.05) == (own > 0)


def test_one_seed_or_equal_values_have_no_test() -> None:
    frame = values(0.0)
    once = frame[frame.seed == 0]
    assert p_of(once) is None
    same = frame.y.groupby([frame.group, frame.x]).transform("first")
    assert p_of(frame.assign(y=same)) is None
