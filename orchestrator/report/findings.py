"""Findings as data. A macro of templates/findings.j2 turns each kind into sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.analysis import HIGH, LOW, SIGNIFICANCE
from orchestrator.report.prose import one_line, template
from trainables.config import LANGUAGE_GOAL, Goal

Outcome = Literal[
    "higher",
    "lower",
    "no difference shown",
    "equivalent within a margin",
    "too few seeds",
    "not measured",
]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Outcome of one comparison, with the numbers that decide it."""

    verdict: Outcome = "not measured"
    """How the first group compares with the second; "not measured" if there was no test."""
    metric: str = ""
    groups: tuple[str, ...] = ()
    """A group and its baseline, or the two metrics of a correlation."""
    value: float | None = None
    interval: tuple[float, float] | None = None
    """Ends of the 95% interval."""
    p: float | None = None
    """p-value, adjusted for the family of tests."""
    n: int | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Data of one finding. `template` names the macro that turns it into a sentence or two."""

    template: str
    verdicts: tuple[Verdict, ...]
    numbers: Mapping[str, Any]
    prefix: str = ""
    goal: Goal = LANGUAGE_GOAL

    @property
    def sentence(self) -> str:
        """Return the finding in words."""
        if self.template == "text":  # of a study's own function
            return str(self.prefix + self.numbers["text"])
        macro = getattr(template("findings.j2").module, self.template)
        return self.prefix + one_line(
            macro(self.verdicts, {**self.numbers, "study_goal": self.goal})
        )


def judge(
    row: Any,
    key: str,
    p: float | None,
    *,
    metric: str,
    groups: tuple[str, ...],
    n: int | None = None,
    null: float = 0.0,
    is_equivalent: bool = False,
    is_constant: bool = False,
    needs_interval: bool = False,
    **numbers: Any,
) -> Verdict:
    """Return the verdict on the estimate in column `key` of a row.

    `null` is the estimate if there is no effect. The p-value decides. If `needs_interval`, the 95%
    interval must also exclude `null`. If `is_constant`, all values are equal; the verdict is then
    "not measured", because more seeds would not help.
    """
    value, low, high = (getattr(row, key + end) for end in ("", LOW, HIGH))
    outcome: Outcome = "no difference shown"
    if value is None or is_constant:
        outcome = "not measured"
    elif p is None or (needs_interval and low is None):
        outcome = "too few seeds"
    elif p < SIGNIFICANCE and not (needs_interval and low <= null <= high):
        outcome = "higher" if value > null else "lower"
    elif is_equivalent:
        outcome = "equivalent within a margin"
    return Verdict(
        verdict=outcome,
        metric=metric,
        groups=groups,
        value=value,
        interval=None if low is None else (low, high),
        p=p,
        n=n,
        numbers=numbers,
    )


def describe(
    template: str, verdicts: Iterable[Verdict] = (Verdict(),), /, **numbers: Any
) -> Finding:
    """Return a finding with its verdicts, by default without a statistical test."""
    return Finding(template=template, verdicts=tuple(verdicts), numbers=numbers)
