"""Questions about laws of a metric over a size.

`x` is a column with positive values; `by`, `panel` and `over` are dotted paths of config values.
"""

from __future__ import annotations

from dataclasses import dataclass

from search_spaces.analyses import Analysis


@dataclass(frozen=True, kw_only=True)
class PowerLaw(Analysis):
    """Laws L(x) = E + a x^-b by group, and the factor on the baseline's x that gives equal L.

    L, the logarithm of a perplexity, is in nats per token.
    """

    x: str
    by: str
    """Config key; each of its values has a law."""
    baseline: str
    panel: str | None = None
    """Config key; laws of different values are not compared."""
    metric: str = "test_perplexity"
    title: str = ""
    claim: str = ""


@dataclass(frozen=True, kw_only=True)
class Extrapolation(Analysis):
    """Deviation of a size's loss from the law E + a x^-b of all (at least four) larger sizes."""

    x: str
    metric: str = "test_perplexity"
    title: str = ""
    claim: str = ""


@dataclass(frozen=True, kw_only=True)
class Threshold(Analysis):
    """Smallest x at which each group's metric falls to `value`, and the law x = a z^b."""

    x: str
    by: str
    """Config key; each of its values has a law."""
    baseline: str
    """Value of `by` with which the others are compared at equal z."""
    over: str
    """Config key of z: a positive number, or a name ending in one, such as spam-1000."""
    over_name: str
    metric: str
    """Metric that falls as x grows."""
    value: float
    title: str = ""
    claim: str = ""
