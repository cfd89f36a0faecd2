"""What the trials of a study were computed with, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

Environment = Mapping[str, Mapping[str, int]]
"""For each entry (code, host, torch ...), how many trials have each of its values."""


def count_values(environments: Sequence[Mapping[str, str]]) -> Environment:
    """Count the values of each entry over the trials, the most frequent first.

    `environments` has a mapping a trial, empty where nothing was recorded. A trial without an entry counts as "".
    """
    names = dict.fromkeys(name for environment in environments for name in environment)
    counts = {name: Counter(environment.get(name, "") for environment in environments) for name in names}
    return {name: dict(sorted(values.items(), key=lambda item: (-item[1], item[0]))) for name, values in counts.items()}
