"""Holm's correction over every comparison of a question, at all values of the settings that were
swept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pandas as pd

from orchestrator.analysis.tidy_frames import corrected


def adjust_together(numbers: Sequence[Any]) -> list[Any]:
    """Return the answers to one request at several values, each family corrected over all of
    them.

    `families` of an answer names its frames of tested rows, and of each the arguments of
    `corrected`; what has none stays as it is.
    """
    tested = [one for one in numbers if hasattr(one, "families")]
    for name, columns in tested[0].families.items() if tested else ():
        frames = [getattr(one, name) for one in tested]
        together = corrected(pd.concat(frames, ignore_index=True), *columns)
        ends = list(accumulate(map(len, frames), initial=0))
        tested = [
            replace(one, **{name: together[first:last]})
            for one, (first, last) in zip(tested, pairwise(ends), strict=True)
        ]
    adjusted = iter(tested)
    return [next(adjusted) if hasattr(one, "families") else one for one in numbers]
