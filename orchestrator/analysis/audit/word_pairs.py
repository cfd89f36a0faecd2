"""SM Table 13 from the benchmarks and corpora themselves: what the trials of kind word_pairs counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.audit.check import CORPORA, Check, Printed, look
from orchestrator.store.records import LOST
from search_spaces.published import rows

if TYPE_CHECKING:
    import pandas as pd

TABLE = "sm_table13_word_pairs"
RULE = "count of the published files (SHA-256), lower-cased words, vocabulary of all three splits: digit by digit"


def checks(frame: pd.DataFrame) -> Iterator[Check]:
    """Three numbers a benchmark; open, with what is missing, where a trial has no result."""
    trials: dict[str, Mapping[Any, Any]] = {}
    if "text" in frame.columns:
        trials = {row["text"]: row for row in frame.to_dict("records")}
    done = [row for row in trials.values() if row["state"] == "done"]
    for line in rows(TABLE):
        name = line["benchmark"]
        total = look(TABLE, "pairs", benchmark=name)
        anywhere = done[0] if done else next(iter(trials.values()), None)
        yield _check(f"SM Table 13, {name}", "pairs", total, anywhere, f"word_pairs {name}", "ptb")
        for text, title in CORPORA.items():
            unknown = look(TABLE, f"pairs_not_in_{text}", benchmark=name)
            what = f"pairs with a word that {title} lacks"
            yield _check(f"SM Table 13, {name}", what, unknown, trials.get(text), f"word_pairs unknown {name}", text)


def _check(source: str, what: str, printed: Printed, trial: Mapping[Any, Any] | None, metric: str, text: str) -> Check:
    if trial is None or trial["state"] != "done":
        return Check(
            source=source,
            what=what,
            printed=printed.text,
            recomputed="\N{EN DASH}",
            rule=_missing(trial, text),
            verdict="open",
            covers=(printed.place,),
        )
    found = int(trial[metric])
    return Check(
        source=source,
        what=what,
        printed=printed.text,
        recomputed=str(found),
        rule=RULE,
        verdict="agrees" if found == int(printed.text) else "differs",
        covers=(printed.place,),
    )


def _missing(trial: Mapping[Any, Any] | None, text: str) -> str:
    """Why there is no count."""
    if trial is None:
        return f"no trial of this run counts {text}"
    if trial["state"] in LOST:
        return str(trial["cause"])
    return f"the trial that counts {text} has not run: it needs that corpus and the 13 benchmarks (--data-dir)"
