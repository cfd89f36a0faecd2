"""Questions about laws over a size.

`x` is a column with positive values; `by`, `panel` and `over` are dotted paths of config values.
"""

from __future__ import annotations

from dataclasses import dataclass

from search_spaces.analyses import Analysis


@dataclass(frozen=True, kw_only=True)
class PowerLaw(Analysis):
    """Each group's law L(x) = E + a x^-b, and its factor of x relative to the baseline's.

    L is in nats per token: the logarithm of a perplexity.
    """

    x: str
    by: str
    """One law for each value."""
    baseline: str
    """A value of `by`."""
    panel: str | None = None
    """Laws are compared only at the same value."""
    metric: str = "test_perplexity"
    title: str = ""
    claim: str = ""


@dataclass(frozen=True, kw_only=True)
class Extrapolation(Analysis):
    """Sizes at which the loss leaves the law E + a x^-b fitted to wider models.

    Each size is compared with the law of all larger sizes, if there are at least four.
    """

    x: str
    metric: str = "test_perplexity"
    title: str = ""
    claim: str = ""


@dataclass(frozen=True, kw_only=True)
class Threshold(Analysis):
    """Smallest x at which each group's metric is as low as `value`.

    A law x = a z^b over another setting z is fitted, too.
    """

    x: str
    by: str
    """One law for each value."""
    baseline: str
    """Value of `by` to compare with at the same z."""
    over: str
    """z: positive, or a name that ends in a number, such as spam-1000."""
    over_name: str
    """Name of z in sentences."""
    metric: str
    """Must fall as x grows."""
    value: float
    """Positive."""
    title: str = ""
    claim: str = ""
