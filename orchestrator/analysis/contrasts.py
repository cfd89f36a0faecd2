"""Each group against its baseline as one family of tests, paired by seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from orchestrator.analysis.groups import printed_beside
from orchestrator.analysis.statistics.comparisons import compare
from orchestrator.analysis.tidy_frames import Families, corrected, tidy
from orchestrator.analysis.values import values_of_done
from search_spaces.analyses import Comparison


@dataclass(frozen=True, kw_only=True)
class ContrastNumbers:
    """The answer to a Comparison request: a family of tests, each of a group against its
    baseline."""

    request: Comparison
    corpus: str
    """The corpus of the printed p-values; empty for none."""
    comparisons: pd.DataFrame
    """A row a test; see `compare`."""
    trials: pd.DataFrame
    """A row for each trial of a tested group: group, baseline, name, trial_id, value (less that of
    the baseline at the same seed, or than the baseline's mean if unpaired)."""
    families: ClassVar[Families] = {"comparisons": ("difference_p",)}


def contrast_numbers(frame: pd.DataFrame, request: Comparison, *, corpus: str) -> ContrastNumbers:
    """Return the tests that a study asks for; groups that the plan does not have are left out."""
    counted = frame if request.seeds is None else frame[frame["seed"].isin(request.seeds)]
    values = values_of_done(counted, request.metric, "group", "seed", "name", "trial_id")
    corpus, printed = printed_beside(request.published, corpus)
    records, trials = [], [values[:0].assign(baseline=None)]
    for names in request.baselines.items():
        if not set(frame["group"]).issuperset(names):
            continue
        a, b = (values[values["group"] == name] for name in names)
        a_alone, b_alone = (group.drop_duplicates("seed", keep=False) for group in (a, b))
        pairs = a_alone.merge(b_alone[["seed", "value"]], on="seed", suffixes=("", "_baseline"))
        paired = list(zip(pairs["value"], pairs["value_baseline"], strict=True))
        test = compare(a["value"], b["value"], paired, names=names)
        if test["test"] != "paired":
            pairs = a.assign(value_baseline=test["mean_baseline"]).dropna()
        difference = pairs["value"] - pairs["value_baseline"]
        trials.append(pairs.assign(baseline=names[1], value=difference))
        published = {f"published_p_{corpus}": printed.get(names[0])} if printed else {}
        records.append(test | published)
    return ContrastNumbers(
        request=request,
        corpus=corpus,
        comparisons=corrected(tidy(records, ("group", "baseline")), "difference_p"),
        trials=pd.concat(trials),
    )
