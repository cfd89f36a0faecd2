"""Means and deviations over seeds: the p-values that they give (Student's unpaired t-test, n = 10),
and Table 2.

Table 2 is over 11 seeds: the 10 of SM Table 1 and the authors' own, whose results are in SM Tables
10 and 11."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from orchestrator.analysis.audit.check import (
    CORPORA,
    MODELS,
    PLUS_MINUS,
    Check,
    PrintedNumber,
    column_of,
    decided,
    look,
    same,
    with_deviations,
)
from orchestrator.analysis.statistics.samples import (
    ROUNDING,
    SampleSummary,
    students_t_range,
    t_test,
)
from search_spaces.models import FIVE

TESTED, SEEDS = 10, 11
"""Seeds that a p-value is over, and a mean of Table 2."""
SM_TABLE_1, TABLE_2 = "sm_table1_significance", "table2_seeds"
TABLE_4, TABLE_5 = "table4_plif_vs_frozen", "table5_fair_capacity"
SAMUELSON = (SEEDS - 1) / math.sqrt(SEEDS)
"""No value of n lies further than (n - 1) / sqrt(n) deviations (ddof 1) from their mean (Samuelson
1968)."""
BOUNDED = {
    "train_ppl": "train perplexity",
    "valid_ppl": "validation perplexity",
    "rank": "Press rank",
}
"""Quantities of which Table 2 has 11 values, and only the authors' seed is printed besides."""


def checks() -> Iterator[Check]:
    """The p-values of SM Table 1, Table 2 twice, Tables 4 and 5; then Table 2's test perplexities
    exactly, the rest by the bound, and Table 3 against Table 4."""
    for printed in column_of(SM_TABLE_1, "p_value_vs_softmax"):
        yield from _against_softmax(printed)
    for corpus in CORPORA:
        pair = [
            look(TABLE_4, f"{side}_test_mean", corpus=corpus) for side in ("lms_plif", "frozen")
        ]
        p_value = look(TABLE_4, "p_value", corpus=corpus)
        size = look(TABLE_4, "n_per_sample", corpus=corpus)
        yield _to_three_digits("p-value of learned against frozen", p_value, pair, size)
    yield _table5()
    for corpus in CORPORA:
        for model in FIVE:
            yield from _test_perplexity(corpus, model)
            for quantity in BOUNDED:
                yield _one_of_eleven(corpus, model, quantity)
        yield from _frozen(corpus)


def _against_softmax(printed: PrintedNumber) -> Iterator[Check]:
    corpus, models = printed.corpus, (printed.row["model"], "softmax")
    sizes = [look(SM_TABLE_1, "n", corpus=corpus, model=model) for model in models]
    in_table2 = look(TABLE_2, "p_value_vs_softmax", corpus=corpus, model=models[0])
    ten, eleven = (
        [look(table, "test_ppl_mean", corpus=corpus, model=model) for model in models]
        for table in (SM_TABLE_1, TABLE_2)
    )
    yield _to_three_digits("p-value against softmax", printed, ten, *sizes)
    yield same(in_table2.source, "p-value against softmax", in_table2, printed, beside="SM Table 1")
    yield _from_means_of_eleven(in_table2, eleven)


def _to_three_digits(
    quantity: str, printed: PrintedNumber, means: Sequence[PrintedNumber], *sizes: PrintedNumber
) -> Check:
    """`sizes` are the cells that say n."""
    p_value = _p_value(means)
    return Check(
        source=printed.source,
        quantity=quantity,
        printed=printed.text,
        recomputed=f"{p_value:.3g}",
        rule=f"Student's t-test of the printed means and deviations, n = {TESTED}: to the three digits printed",
        verdict=decided(f"{p_value:.2e}" == f"{printed.value:.2e}"),
        covers=(printed,),
        uses=(*with_deviations(means), *sizes),
    )


def _from_means_of_eleven(printed: PrintedNumber, means: Sequence[PrintedNumber]) -> Check:
    """Table 2's means are over other seeds than its p-value, so that this decides nothing: SM Table
    1 does, exactly."""
    inside, span = _inside(printed, means)
    return Check(
        source=printed.source,
        quantity="p-value from Table 2's own means",
        printed=printed.text,
        recomputed=f"{_p_value(means):.3g}",
        rule=f"Student's t-test of Table 2's own means and deviations, n = {TESTED}: their rounding allows {span}; "
        "its caption says that p is over 10 of the 11 seeds that the means are over, so it need "
        "not follow",
        verdict="compatible" if inside else "explained",
        covers=(printed,),
        uses=with_deviations(means),
    )


def _table5() -> Check:
    models = ("mos_dagger", "softmax_double_dagger")
    means = [look(TABLE_5, "test_ppl_mean", model=model) for model in models]
    printed = tuple(look(TABLE_5, "p_value", model=model) for model in models)
    inside, span = _inside(printed[0], means)
    return Check(
        source=f"{printed[0].title}, PTB",
        quantity=f"p-value of {MODELS[models[0]]} against {MODELS[models[1]]}",
        printed=printed[0].text,
        recomputed=f"{_p_value(means):.3f}",
        rule=f"Student's t-test of the printed means and deviations, n = {TESTED}: their rounding allows {span}",
        verdict=decided(inside),
        covers=printed,
        uses=with_deviations(means),
    )


def _p_value(means: Sequence[PrintedNumber]) -> float:
    p_value = t_test(*_samples(means), equal_variances=True).p_value
    assert p_value is not None
    return p_value


def _samples(means: Sequence[PrintedNumber]) -> tuple[SampleSummary, SampleSummary]:
    one, second = (
        SampleSummary(n=TESTED, mean=mean.value, sd=mean.deviation.value) for mean in means
    )
    return one, second


def _inside(printed: PrintedNumber, means: Sequence[PrintedNumber]) -> tuple[bool, str]:
    """Whether the p-value is one that the rounding of means and deviations allows, and which those
    are."""
    allowed = students_t_range(*_samples(means))
    return printed.value in allowed, f"{allowed.low:#.2g} to {allowed.high:#.2g}"


def _authors(corpus: str, model: str, column: str) -> PrintedNumber:
    """The result of the authors' seed."""
    return look("sm_table10_11_averaging", column, corpus=corpus, model=model, averaging="et_asgd")


def _test_perplexity(corpus: str, model: str) -> Iterator[Check]:
    eleven, ten = (
        look(table, "test_ppl_mean", corpus=corpus, model=model) for table in (TABLE_2, SM_TABLE_1)
    )
    authors = _authors(corpus, model, "test_ppl")
    joined = (10 * ten.value + authors.value) / SEEDS
    yield Check(
        source=eleven.source,
        quantity="mean test perplexity",
        printed=eleven.as_printed,
        recomputed=f"{joined:.3f}",
        rule="mean of SM Table 1's 10 seeds and the authors' in SM Tables 10 and 11 (ET-ASGD): within 0.01, the "
        "rounding of both sides",
        verdict=decided(abs(joined - eleven.value) <= 2 * ROUNDING + 1e-9),
        covers=(eleven, ten, authors),
    )
    low, high = spread_of_eleven(ten.deviation.value, abs(authors.value - ten.value), 2 * ROUNDING)
    yield Check(
        source=eleven.source,
        quantity="deviation of the test perplexity",
        printed=eleven.deviation.as_printed,
        recomputed=f"{low:.3f} to {high:.3f}",
        rule="deviation of the 10 seeds and the eleventh, over what the rounding of all of them allows",
        verdict=decided(_allows(low, high, eleven.deviation)),
        covers=(eleven.deviation, ten.deviation),
    )


def spread_of_eleven(sd_10: float, distance: float, room: float) -> tuple[float, float]:
    """The deviations of 11 values that are possible: 10 have the deviation `sd_10` as printed, and
    the eleventh lies `distance` from their mean, give or take `room`."""

    def joined(sd: float, distance: float) -> float:
        return math.sqrt((9 * max(sd, 0.0) ** 2 + 10 / SEEDS * max(distance, 0.0) ** 2) / 10)

    return joined(sd_10 - ROUNDING, distance - room), joined(sd_10 + ROUNDING, distance + room)


def _allows(low: float, high: float, printed: PrintedNumber) -> bool:
    """Whether the printed deviation, rounded, can stand for one from low to high."""
    return low - ROUNDING - 1e-9 <= printed.value <= high + ROUNDING + 1e-9


def _one_of_eleven(corpus: str, model: str, quantity: str) -> Check:
    eleven = look(TABLE_2, f"{quantity}_mean", corpus=corpus, model=model)
    authors = _authors(corpus, model, "press_rank" if quantity == "rank" else quantity)
    rounding = 0.5 if quantity == "rank" else ROUNDING
    distance = abs(authors.value - eleven.value)
    allowed = SAMUELSON * (eleven.deviation.value + rounding) + 2 * rounding
    return Check(
        source=eleven.source,
        quantity=f"{BOUNDED[quantity]}: mean and deviation",
        printed=_joined(eleven),
        recomputed=f"{authors.as_printed} is {distance:.4g} away",
        rule=f"the authors' seed in SM Tables 10 and 11 is one of the 11, and none can be further than 10/"
        f"\N{SQUARE ROOT}11 deviations from their mean (Samuelson 1968), with rounding "
        f"{allowed:.4g}",
        verdict=decided(distance <= allowed, weakly=True),
        covers=(*with_deviations([eleven]), authors),
    )


def _frozen(corpus: str) -> Iterator[Check]:
    """Table 4's LMS-PLIF is SM Table 1's; its frozen one and Table 3's fit as 10 and 11 seeds of
    one model."""
    for moment, quantity in (
        ("mean", "mean test perplexity"),
        ("sd", "deviation of the test perplexity"),
    ):
        yield same(
            f"Table 4, {CORPORA[corpus]}, LMS-PLIF",
            quantity,
            look(TABLE_4, f"lms_plif_test_{moment}", corpus=corpus),
            look(SM_TABLE_1, f"test_ppl_{moment}", corpus=corpus, model="lms_plif"),
            beside="SM Table 1",
        )
    eleven = look("table3_plif_frozen", "test_ppl_mean", corpus=corpus)
    ten = look(TABLE_4, "frozen_test_mean", corpus=corpus)
    distance, room = abs(SEEDS * (eleven.value - ten.value)), 2 * SEEDS * ROUNDING
    low, high = spread_of_eleven(ten.deviation.value, distance, room)
    yield Check(
        source=f"Table 3, {CORPORA[corpus]}",
        quantity="test perplexity, frozen PLIF",
        printed=_joined(eleven),
        recomputed=_joined(ten),
        rule="Table 4 has 10 seeds of the same model; an eleventh that moves the mean to Table 3's gives a deviation "
        f"of {low:.3f} to {high:.3f}, rounding included",
        verdict=decided(_allows(low, high, eleven.deviation), weakly=True),
        covers=with_deviations([eleven, ten]),
    )


def _joined(mean: PrintedNumber) -> str:
    """With its deviation, as the paper joins them."""
    return f"{mean.as_printed} {PLUS_MINUS} {mean.deviation.as_printed}"
