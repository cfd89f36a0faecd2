"""Groups of failed and diverged trials with equal causes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from orchestrator.store.records import LostTrial
from orchestrator.words import counted, one_line, short_id, some_of

LONGEST_CAUSE, NAMES_SHOWN = 400, 3
# Lines of code stay: two errors without a text may differ only in their lines.
NUMBER = re.compile(r"(line \d+)|0x[\da-fA-F]+|[\da-fA-F]{8,}|\d[\d.e+-]*")


def cause_key(cause: str) -> str:
    """Return the cause without its numbers, addresses and ids. Equal causes have equal keys."""
    return NUMBER.sub(lambda number: number[1] or "#", cause)


def by_cause(trials: Iterable[LostTrial]) -> list[list[LostTrial]]:
    """Return groups of trials of one study, state and cause, largest first."""
    groups: defaultdict[Any, list[LostTrial]] = defaultdict(list)
    for trial in trials:
        groups[trial.key, trial.state, cause_key(trial.cause or "")].append(trial)
    return sorted(groups.values(), key=len, reverse=True)


def group_text(group: Sequence[LostTrial]) -> str:
    """Return two lines: study, number of trials, their machine, first cause; and some trials."""
    first, key = group[0], group[0].key
    place = f" on {first.host}" if {trial.host for trial in group} == {first.host or ""} else ""
    cause = one_line(first.cause or "no cause recorded", most=LONGEST_CAUSE)
    names = [f"{one_line(trial.name)} ({short_id(trial.trial_id)})" for trial in group]
    return (
        f"{key.study} {key.scale} {key.corpus}: {counted(len(group), 'trial')} {first.state}{place}"
        f": {cause}\n  {some_of(names, NAMES_SHOWN)}"
    )
