"""Holm's correction over every comparison of a question, at all values of the settings that were swept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.analysis.contrasts import ContrastNumbers
from orchestrator.analysis.power_laws import PowerLawNumbers
from orchestrator.analysis.statistics.samples import with_holm
from orchestrator.analysis.thresholds import ThresholdNumbers

FAMILIES: Mapping[type, Mapping[str, str]] = {
    ContrastNumbers: {"comparisons": "test"},
    PowerLawNumbers: {"factors": "factor", "equals": "ratio"},
    ThresholdNumbers: {"points": "ratio"},
}
"""Numbers -> their fields that are families of tested lines -> the lines' field with the test."""


def adjust_together(numbers: Sequence[Any]) -> list[Any]:
    """Return the answers to one request at several values, each family corrected over all of them."""
    adjusted = list(numbers)
    for name, test in FAMILIES.get(type(adjusted[0]), {}).items() if adjusted else ():
        lines = iter(with_holm([line for one in adjusted for line in getattr(one, name)], test))
        adjusted = [replace(one, **{name: tuple(next(lines) for _ in getattr(one, name))}) for one in adjusted]
    return adjusted
