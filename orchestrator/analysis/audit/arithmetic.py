"""Table 1 from SM Table 10 and the talk, what the text says of SM Tables 4, 5, 3 and 10, and SM
Table 13 counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.audit.check import (
    AVERAGING,
    CORPORA,
    FEW,
    MODELS,
    Check,
    PrintedNumber,
    column_of,
    decided,
    look,
    same,
)
from orchestrator.analysis.statistics.samples import ROUNDING
from trainables.corpora import PUBLISHED_CORPORA

if TYPE_CHECKING:
    import pandas as pd

Trial = Mapping[Any, Any]
COLUMNS = {"SS": "sigsoftmax", "LMS-PLIF": "lms_plif", "MoS": "mos"}
EXACT = 1e-9
VOCABULARY = {"ptb": 10_000, "wikitext-2": 33_278}
TEST_CONTEXTS = {"ptb": 82_430, "wikitext-2": 245_370}
BENCHMARKS_WON = {"ptb": 8, "wikitext-2": 12}
PERPLEXITIES = {
    ("moc", "et_asgd"): "55.81",
    ("mos", "nt_asgd"): "56.07",
    ("moc", "nt_asgd"): "57.40",
}
"""What only the running text prints."""


def checks() -> Iterator[Check]:
    """Everything that a sum, a difference or a count decides."""
    for column, model in COLUMNS.items():
        yield _rank_of_table1(column, model)
        yield _difference_of_table1(column, model)
    yield _reported_by_the_talk()
    for corpus in CORPORA:
        yield _gap_widens(corpus)
        yield _benchmarks_won(corpus)
    for corpus in CORPORA:
        text = PUBLISHED_CORPORA[corpus]
        yield _count(corpus, "words in the vocabulary", VOCABULARY[corpus], text.vocabulary_size)
        yield _count(corpus, "contexts in the test set", TEST_CONTEXTS[corpus], text.test_tokens)
    for (model, averaging), printed in PERPLEXITIES.items():
        number = _ptb(model, averaging)
        yield Check(
            source=f"text on the qualitative analysis, PTB, {MODELS[model]}",
            quantity="test perplexity",
            printed=printed,
            recomputed=number.as_printed,
            rule=f"the same number in {number.title}, digit by digit",
            verdict=decided(printed == number.as_printed),
            covers=(number,),
        )


def _count(corpus: str, quantity: str, printed: int, counted: int) -> Check:
    return Check(
        source=f"text, {CORPORA[corpus]}",
        quantity=quantity,
        printed=f"{printed:,}",
        recomputed=f"{counted:,}",
        rule="count of the published files (SHA-256)",
        verdict=decided(printed == counted),
    )


def _ptb(model: str, averaging: str, column: str = "test_ppl") -> PrintedNumber:
    return look("sm_table10_11_averaging", column, corpus="ptb", model=model, averaging=averaging)


def _rank_of_table1(column: str, model: str) -> Check:
    printed = look("table1_reproduction", column, metric="rank", source="ours")
    ranks = [_ptb(model, averaging, "press_rank") for averaging in ("et_asgd", "nt_asgd")]
    rank = next((rank for rank in ranks if rank.value == printed.value), ranks[0])
    beside = f"{rank.title} (Table 1 does not say which rule of averaging it takes)"
    return same(f"Table 1, {column}", "Press rank, ours", printed, rank, beside=beside)


def _difference_of_table1(column: str, model: str) -> Check:
    printed = look("table1_reproduction", column, metric="perplexity_difference", source="ours")
    softmax, models = (
        [_ptb(name, averaging) for averaging in AVERAGING] for name in ("softmax", model)
    )
    differences = [one.value - less.value for one, less in zip(softmax, models, strict=True)]
    comes_out = any(abs(difference - printed.value) < EXACT for difference in differences)
    rule = "softmax' test perplexity less the model's in SM Table 10, both with one rule of averaging, digit by digit"
    if not comes_out:
        crossed = [
            one.value - less.value for one, less in zip(softmax, reversed(models), strict=True)
        ]
        rule += f"; with two rules it would be {crossed[0]:+.2f} or {crossed[1]:+.2f}"
    by_rule = zip(differences, AVERAGING.values(), strict=True)
    return Check(
        source=f"Table 1, {column}",
        quantity="perplexity difference, ours",
        printed=f"{printed.value:+.2f}",
        recomputed=", ".join(
            f"{difference:+.2f} ({averaging})" for difference, averaging in by_rule
        ),
        rule=rule,
        verdict=decided(comes_out),
        covers=(printed,),
        uses=(*softmax, *models),
    )


def _reported_by_the_talk() -> Check:
    printed = look(
        "table1_reproduction", "LMS-PLIF", metric="perplexity_difference", source="reported"
    )
    softmax, lms_plif = (
        look("ganea_language_modelling", "test_ppl", corpus="ptb", model=model)
        for model in ("softmax", "lms_plif_1e5")
    )
    difference = softmax.value - lms_plif.value
    return Check(
        source="Table 1, LMS-PLIF",
        quantity="perplexity difference, reported",
        printed=printed.text,
        recomputed=f"{difference:.2f}",
        rule="softmax less LMS-PLIF in the talk's table, whose rounding allows 0.01 more or less",
        verdict=decided(abs(difference - printed.value) <= 2 * ROUNDING + EXACT),
        covers=(printed,),
        uses=(softmax, lms_plif),
    )


def _gap_widens(corpus: str) -> Check:
    mixtures = [
        number for number in column_of("sm_table4_5_mos_k", "mixtures") if number.corpus == corpus
    ]
    pairs = [
        (k.beside("train_ppl"), k.beside("test_ppl"))
        for k in sorted(mixtures, key=lambda k: k.value)
    ]
    gaps = [test.value - train.value for train, test in pairs]
    few = len(gaps) <= FEW
    return Check(
        source=f"text on Fig. 6, {CORPORA[corpus]}",
        quantity="generalisation gap over K",
        printed="wider with more capacity",
        recomputed=", ".join(f"{gap:.2f}" for gap in gaps),
        rule=f"test less train perplexity in {mixtures[0].title} grows with every step of K"
        + (
            f", as {len(gaps)} numbers do by chance one time in {math.factorial(len(gaps))}"
            if few
            else ""
        ),
        verdict=decided(all(gap < wider for gap, wider in pairwise(gaps)), weakly=few),
        uses=tuple(number for pair in pairs for number in pair),
    )


def _benchmarks_won(corpus: str) -> Check:
    rhos = [
        rho
        for rho in column_of("sm_table3_word_similarity", "spearman_rho")
        if rho.corpus == corpus
    ]
    moc, mos = ([rho for rho in rhos if rho.row["model"] == model] for model in ("moc", "mos"))
    scores = {rho.row["benchmark"]: rho.value for rho in mos}
    won = sum(rho.value > scores[rho.row["benchmark"]] for rho in moc)
    return Check(
        source=f"text on Fig. 4, {CORPORA[corpus]}",
        quantity="benchmarks on which MoC is better than MoS",
        printed=str(BENCHMARKS_WON[corpus]),
        recomputed=f"{won} of {len(moc)}",
        rule="count of the benchmarks of SM Table 3 where MoC's rho is greater",
        verdict=decided(won == BENCHMARKS_WON[corpus]),
        uses=(*moc, *mos),
    )


def word_pairs(frame: pd.DataFrame) -> Iterator[Check]:
    """SM Table 13 from the benchmarks and corpora themselves, as trials of kind word_pairs counted:
    three numbers a benchmark; open, with what is missing, where a trial has no result."""
    trials: dict[str, Trial] = {}
    if "text" in frame.columns:
        trials = {row["text"]: row for row in frame.to_dict("records")}
    any_trial = next(
        (row for row in trials.values() if row["state"] == "done"),
        next(iter(trials.values()), None),
    )
    for total in column_of("sm_table13_word_pairs", "pairs"):
        name = total.row["benchmark"]
        yield _pairs(total, "pairs", any_trial, f"word_pairs {name}", "ptb")
        for text, title in CORPORA.items():
            unknown = total.beside(f"pairs_not_in_{text}")
            quantity = f"pairs with a word that {title} lacks"
            yield _pairs(unknown, quantity, trials.get(text), f"word_pairs unknown {name}", text)


def _pairs(
    printed: PrintedNumber, quantity: str, trial: Trial | None, metric: str, text: str
) -> Check:
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
