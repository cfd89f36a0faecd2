"""Table 1 from SM Table 10 and the talk, and what the text says of SM Tables 4, 5, 3 and 10."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from orchestrator.analysis.audit.check import (
    CORPORA,
    FEW,
    MODELS,
    PERPLEXITY_ROUNDING,
    Check,
    Printed,
    decided,
    look,
    places,
    same,
)
from search_spaces.published import rows
from trainables.corpora.published_corpora import PUBLISHED_CORPORA

AVERAGING = "sm_table10_11_averaging"
COLUMNS = {"SS": "sigsoftmax", "LMS-PLIF": "lms_plif", "MoS": "mos"}
EXACT = 1e-9


def checks() -> Iterator[Check]:
    """Everything that a sum, a difference or a count decides."""
    for column, model in COLUMNS.items():
        yield _rank_of_table1(column, model)
        yield _difference_of_table1(column, model)
    yield _reported_by_the_talk()
    for corpus in CORPORA:
        yield _gap_widens(corpus)
        yield _benchmarks_won(corpus)
    yield from _text()


def _ptb(model: str, averaging: str, column: str = "test_ppl") -> Printed:
    return look(AVERAGING, column, corpus="ptb", model=model, averaging=averaging)


def _table1(metric: str, source: str, column: str) -> Printed:
    return look("table1_reproduction", column, metric=metric, source=source)


def _rank_of_table1(column: str, model: str) -> Check:
    printed = _table1("rank", "ours", column)
    both = {name: _ptb(model, name, "press_rank") for name in ("et_asgd", "nt_asgd")}
    name, other = next(
        ((name, number) for name, number in both.items() if number.value == printed.value), ("et_asgd", both["et_asgd"])
    )
    return same(
        f"Table 1, {column}",
        "Press rank, ours",
        printed,
        other,
        beside=f"SM Table 10, {name.upper().replace('_', '-')} (Table 1 does not say which rule of averaging it takes)",
    )


def _difference_of_table1(column: str, model: str) -> Check:
    printed = _table1("perplexity_difference", "ours", column)
    by_rule = {name: (_ptb("softmax", name), _ptb(model, name)) for name in ("et_asgd", "nt_asgd")}
    found = {name: softmax.value - other.value for name, (softmax, other) in by_rule.items()}
    fits = [name for name, value in found.items() if abs(value - printed.value) < EXACT]
    shown = ", ".join(f"{value:+.2f} ({name.upper().replace('_', '-')})" for name, value in found.items())
    crossed = [by_rule[one][0].value - by_rule[other][1].value for one in by_rule for other in by_rule if one != other]
    rule = "softmax' test perplexity less the model's in SM Table 10, both with one rule of averaging, digit by digit"
    if not fits:
        rule += f"; with two rules it would be {crossed[0]:+.2f} or {crossed[1]:+.2f}"
    return Check(
        source=f"Table 1, {column}",
        what="perplexity difference, ours",
        printed=f"{printed.value:+.2f}",
        recomputed=shown,
        rule=rule,
        verdict="agrees" if fits else "differs",
        covers=(printed.place,),
        uses=places([number for pair in by_rule.values() for number in pair]),
    )


def _reported_by_the_talk() -> Check:
    printed = _table1("perplexity_difference", "reported", "LMS-PLIF")
    one, other = (
        look("ganea_language_modelling", "test_ppl", corpus="ptb", model=m) for m in ("softmax", "lms_plif_1e5")
    )
    found = one.value - other.value
    return Check(
        source="Table 1, LMS-PLIF",
        what="perplexity difference, reported",
        printed=printed.text,
        recomputed=f"{found:.2f}",
        rule="softmax less LMS-PLIF in the talk's table, whose rounding allows 0.01 more or less",
        verdict="agrees" if abs(found - printed.value) <= 2 * PERPLEXITY_ROUNDING + EXACT else "differs",
        covers=(printed.place,),
        uses=(one.place, other.place),
    )


def _gap_widens(corpus: str) -> Check:
    lines = sorted(
        (row for row in rows("sm_table4_5_mos_k") if row["corpus"] == corpus), key=lambda r: int(r["mixtures"])
    )
    numbers = [
        look("sm_table4_5_mos_k", column, corpus=corpus, mixtures=row["mixtures"])
        for row in lines
        for column in ("train_ppl", "test_ppl")
    ]
    gaps = [test.value - train.value for train, test in zip(numbers[::2], numbers[1::2], strict=True)]
    widens, few = all(one < other for one, other in pairwise(gaps)), len(gaps) <= FEW
    return Check(
        source=f"text on Fig. 6, {CORPORA[corpus]}",
        what="generalisation gap over K",
        printed="wider with more capacity",
        recomputed=", ".join(f"{gap:.2f}" for gap in gaps),
        rule=f"test less train perplexity in SM Table {4 if corpus == 'ptb' else 5} grows with every step of K"
        + (f", as {len(gaps)} numbers do by chance one time in {math.factorial(len(gaps))}" if few else ""),
        verdict=decided(widens, weakly=few),
        uses=places(numbers),
    )


def _benchmarks_won(corpus: str) -> Check:
    scores: dict[str, dict[str, float]] = {}
    used = []
    for row in rows("sm_table3_word_similarity"):
        if row["corpus"] == corpus and row["model"] in ("mos", "moc"):
            key = {"corpus": corpus, "model": row["model"], "benchmark": row["benchmark"]}
            number = look("sm_table3_word_similarity", "spearman_rho", **key)
            scores.setdefault(row["benchmark"], {})[row["model"]] = number.value
            used.append(number)
    won = sum(both["moc"] > both["mos"] for both in scores.values())
    printed = {"ptb": 8, "wikitext-2": 12}[corpus]
    return Check(
        source=f"text on Fig. 4, {CORPORA[corpus]}",
        what="benchmarks on which MoC is better than MoS",
        printed=str(printed),
        recomputed=f"{won} of {len(scores)}",
        rule="count of the benchmarks of SM Table 3 where MoC's rho is greater",
        verdict="agrees" if won == printed else "differs",
        uses=places(used),
    )


def _text() -> Iterator[Check]:
    """Sizes and perplexities that only the running text prints."""
    for corpus, vocabulary, contexts in (("ptb", 10_000, 82_430), ("wikitext-2", 33_278, 245_370)):
        known = PUBLISHED_CORPORA[corpus]
        counts = (
            ("words in the vocabulary", vocabulary, known.vocabulary_size),
            ("contexts in the test set", contexts, known.files["test"].tokens),
        )
        for what, said, found in counts:
            yield _sentence(
                f"text, {CORPORA[corpus]}", what, f"{said:,}", f"{found:,}", "count of the published files (SHA-256)"
            )
    for model, averaging, printed in (
        ("moc", "et_asgd", "55.81"),
        ("mos", "nt_asgd", "56.07"),
        ("moc", "nt_asgd", "57.40"),
    ):
        number = _ptb(model, averaging)
        name = f"text on the qualitative analysis, PTB, {MODELS[model]}"
        rule = f"the same number in SM Table 10, {averaging.upper().replace('_', '-')}, digit by digit"
        yield _sentence(name, "test perplexity", printed, number.shown, rule, covers=[number])


def _sentence(source: str, what: str, printed: str, found: str, rule: str, covers: Sequence[Printed] = ()) -> Check:
    return Check(
        source=source,
        what=what,
        printed=printed,
        recomputed=found,
        rule=rule,
        verdict="agrees" if printed == found else "differs",
        covers=places(covers),
    )
