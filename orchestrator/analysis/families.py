"""Holm's correction over every comparison of a question, at all values of the settings that were
swept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from orchestrator.analysis.confounding import ConfoundingNumbers, with_holm_by_shape
from orchestrator.analysis.contrasts import ContrastNumbers
from orchestrator.analysis.correlations import CorrelationNumbers
from orchestrator.analysis.statistics.samples import with_holm
from orchestrator.analysis.tidy_frames import corrected

FAMILIES: Mapping[type, Mapping[str, Callable[[Sequence[Any]], tuple[Any, ...]]]] = {
    ContrastNumbers: {"comparisons": partial(with_holm, test="test")},
    ConfoundingNumbers: {"lines": with_holm_by_shape},
    CorrelationNumbers: {"definitions": partial(with_holm, test="pearson")},
}
"""Numbers -> their fields that are families of tested lines -> the correction over these lines."""


def adjust_together(numbers: Sequence[Any]) -> list[Any]:
    """Return the answers to one request at several values, each family corrected over all of
    them."""
    adjusted = list(numbers)
    for name, p in getattr(adjusted[0], "families", {}).items() if adjusted else ():
        together = corrected(
            pd.concat([getattr(one, name) for one in adjusted], keys=range(len(adjusted))), p=p
        )
        adjusted = [
            replace(one, **{name: together.loc[place]}) if len(getattr(one, name)) else one
            for place, one in enumerate(adjusted)
        ]
    for name, correct in FAMILIES.get(type(adjusted[0]), {}).items() if adjusted else ():
        lines = iter(correct([line for one in adjusted for line in getattr(one, name)]))
        adjusted = [
            replace(one, **{name: tuple(next(lines) for _ in getattr(one, name))})
            for one in adjusted
        ]
    return adjusted
