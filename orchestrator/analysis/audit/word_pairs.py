"""SM Table 13 from the benchmarks and corpora themselves: what the trials of kind word_pairs counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.audit.check import CORPORA, Check, PrintedNumber, column_of, decided

if TYPE_CHECKING:
    import pandas as pd

Trial = Mapping[Any, Any]


def checks(frame: pd.DataFrame) -> Iterator[Check]:
    """Three numbers a benchmark; open, with what is missing, where a trial has no result."""
    trials: dict[str, Trial] = {}
    if "text" in frame.columns:
        trials = {row["text"]: row for row in frame.to_dict("records")}
    any_trial = next((row for row in trials.values() if row["state"] == "done"), next(iter(trials.values()), None))
    for total in column_of("sm_table13_word_pairs", "pairs"):
        name = total.row["benchmark"]
        yield _check(total, "pairs", any_trial, f"word_pairs {name}", "ptb")
        for text, title in CORPORA.items():
            unknown, quantity = total.beside(f"pairs_not_in_{text}"), f"pairs with a word that {title} lacks"
            yield _check(unknown, quantity, trials.get(text), f"word_pairs unknown {name}", text)


def _check(printed: PrintedNumber, quantity: str, trial: Trial | None, metric: str, text: str) -> Check:
    counted = str(int(trial[metric])) if trial is not None and trial["state"] == "done" else None
    return Check(
        source=f"SM Table 13, {printed.row['benchmark']}",
        quantity=quantity,
        printed=printed.text,
        recomputed=counted or "\N{EN DASH}",
        rule="count of the published files (SHA-256), lower-cased words, vocabulary of all three splits: digit by digit"
        if counted
        else _missing(trial, text),
        verdict=decided(counted == printed.text) if counted else "open",
        covers=(printed,),
    )


def _missing(trial: Trial | None, text: str) -> str:
    """Why there is no count."""
    if trial is None:
        return f"no trial of this run counts {text}"
    if trial["state"] in ("failed", "diverged"):
        return str(trial["cause"])
    return f"the trial that counts {text} has not run: it needs that corpus and the 13 benchmarks (--data-dir)"
