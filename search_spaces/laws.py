"""Questions about laws over a size.

`x` is a column with positive values; `by`, `panel` and `over` are dotted paths of config values.
"""

from __future__ import annotations

from dataclasses import dataclass

from search_spaces.analyses import Analysis


@dataclass(frozen=True, kw_only=True)
class PowerLaw(Analysis):
    """Laws L(x) = E + a x^-b by group, and their factors of x relative to the baseline.

    L, the logarithm of a perplexity, is in nats per token.
    """

    x: str
    by: str
    """One law per value."""
    baseline: str
    """A value of `by`."""
    panel: str | None = None
    """Laws are compared only at the same value."""
    metric: str = "test_perplexity"
    title: str = ""
    claim: str = ""


@dataclass(frozen=True, kw_only=True)
class Extrapolation(Analysis):
    """Sizes whose loss deviates from the law E + a x^-b of all (at least four) larger sizes."""

    x: str
    metric: str = "test_perplexity"
    title: str = ""
    claim: str = ""


@dataclass(frozen=True, kw_only=True)
class Threshold(Analysis):
    """Smallest x at which each group's metric falls to `value`, and its law x = a z^b."""

    x: str
    by: str
    """One law per value."""
    baseline: str
    """Value of `by`, compared at the same z."""
    over: str
    """z: positive, or a name ending in a number, such as spam-1000."""
    over_name: str
    """Name of z in texts."""
    metric: str
    """Must fall as x grows."""
    value: float
    title: str = ""
    claim: str = ""
