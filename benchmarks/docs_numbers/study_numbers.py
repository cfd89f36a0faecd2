"""The numbers of one study, and how the pages print them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from orchestrator.analysis import flatten
from orchestrator.report import StudyResults, answer
from orchestrator.store import Store
from orchestrator.variants import study_of, typed_variant
from search_spaces.catalog import load_study
from trainables.errors import UserError

MINUS = "\N{MINUS SIGN}"
Lines = Iterator[str]


class StudyNumbers:
    """One variant of a study at scale quick: its done trials, and the csv tables of its report."""

    def __init__(self, store: Store, name: str, overrides: str = "{}") -> None:
        found = [
            summary
            for summary in store.studies()
            if (summary.key.study, summary.key.scale, summary.key.overrides)
            == (name, "quick", overrides)
            and summary.key.corpus in ("ptb", "none")
        ]
        if not found or found[0].counts["done"] + found[0].counts["pruned"] < sum(
            found[0].counts.values()
        ):
            options = (
                " --all-trials"
                if (name, overrides) == ("gss_grid", "{}")
                else " ".join(["", *typed_variant(overrides)])
            )
            raise UserError(
                f"the store does not have all trials: run python sweep.py {name} --corpus "
                f"ptb{options}"
            )
        key = found[0].key
        frame = flatten(store.results(key)).frame()
        results = StudyResults(
            study=study_of(load_study(name), overrides),
            key=key,
            frame=frame,
            spectra=store.spectra(key),
            epochs=store.epochs_by_trial(key),
        )
        self._results = results
        self.trials: Any = frame[frame["state"] == "done"]
        self.means: Any = self.trials.groupby("group", sort=False).mean(numeric_only=True)
        self.deviations: Any = self.trials.groupby("group", sort=False).std(numeric_only=True)

    @cached_property
    def tables(self) -> dict[str, Any]:
        """The report's csv files by name."""
        sections = [answered.section for answered in answer(self._results)]
        files = [(name, lines) for section in sections for name, lines in section.files.items()]
        return {name: pd.DataFrame(lines[1:], columns=list(lines[0])) for name, lines in files}

    @property
    def tests(self) -> Any:
        """The comparisons of test perplexity, by group."""
        return next(
            table for table in self.tables.values() if "holm_p" in table and "baseline" in table
        ).set_index("group")

    def spread(self, group: str, metric: str = "test_perplexity", spec: str = ",.1f") -> str:
        """Mean and standard deviation over the trials of a group."""
        return f"{show(self.means[metric][group], spec)} ± {show(self.deviations[metric][group], spec)}"


Studies = Callable[..., StudyNumbers]
"""From a study's name, and its overrides, to its numbers."""


def show(value: float, spec: str = ",.0f") -> str:
    """A number with a minus sign as the pages print it."""
    return format(float(value), spec).replace("-", MINUS)


def ranged(row: Any, name: str, spec: str = "+.2f") -> str:
    """A value of a csv table with its interval."""
    if pd.isna(row[f"{name}_low"]):
        return show(row[name], spec)
    low, high = (show(row[f"{name}_{end}"], spec) for end in ("low", "high"))
    return f"{show(row[name], spec)} [{low}, {high}]"


def star(row: Any) -> str:
    """ " *" where Holm's correction leaves p < 0.05."""
    return " *" if pd.notna(row["holm_p"]) and row["holm_p"] < 0.05 else ""


def span(values: Iterable[float], spec: str = ",.0f") -> str:
    """ "0 to 2", the least and the greatest, or "2" if they are equal."""
    unrounded = list(values)
    least, greatest = show(min(unrounded), spec), show(max(unrounded), spec)
    return least if least == greatest else f"{least} to {greatest}"


def table(head: str, rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; `head` has its headings between bars."""
    lines = [head.split(" | "), ["---"] * (head.count(" | ") + 1), *rows]
    return "\n".join(
        "".join(f"| {cell} " if cell else "| " for cell in line) + "|" for line in lines
    )
