"""What a study can ask of laws over a size: fits, what lies off them, and where a value is
reached."""

from __future__ import annotations

from dataclasses import dataclass

from search_spaces.analyses import Analysis


@dataclass(frozen=True, kw_only=True)
class PowerLaw(Analysis):
    """Ask for the law L(x) = E + a x^-b of each group's loss, and by what factor of x each is like
    the baseline.

    L is in nats per token: the logarithm of a perplexity.
    """

    x: str
    """A config value or a metric, by its column: a positive number."""
    by: str
    """A config value, by its dotted path: a law for each of its values."""
    baseline: str
    """The value of `by` whose law the others are held against."""
    panel: str | None = None
    """A config value, by its dotted path: laws of different values of it are not held against each
    other."""
    metric: str = "test_perplexity"
    title: str = ""
    claim: str = ""
    """What others say, a sentence with its source."""


@dataclass(frozen=True, kw_only=True)
class Extrapolation(Analysis):
    """Ask where the loss of narrow models leaves the law E + a x^-b that is fitted to wider ones.

    Each size is held against the law of all larger ones, where there are four or more of these.
    """

    x: str
    """A config value or a metric, by its column: a positive number that orders the sizes."""
    metric: str = "test_perplexity"
    title: str = ""
    claim: str = ""
    """What others say, a sentence with its source."""


@dataclass(frozen=True, kw_only=True)
class Threshold(Analysis):
    """Ask for the least x at which each group's metric is as low as a value, and for the law x = a
    z^b of it over another setting z."""

    x: str
    """A config value or a metric, by its column: a positive number."""
    by: str
    """A config value, by its dotted path: a law for each of its values."""
    baseline: str
    """The value of `by` whose x the others' are held against, at the same z."""
    over: str
    """A config value, by its dotted path: z, a positive number, or a name that ends in one as
    spam-1000 does."""
    over_name: str
    """What z is called in a sentence."""
    metric: str
    """One that falls as x grows."""
    value: float
    """How low, a positive number."""
    title: str = ""
    claim: str = ""
    """What others say, a sentence with its source."""
