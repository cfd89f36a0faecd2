"""Table 2 is over 11 seeds: the 10 of SM Table 1 and the authors' own, whose results are in SM Tables 10 and 11."""

from __future__ import annotations

import math
from collections.abc import Iterator

from orchestrator.analysis.audit.check import (
    CORPORA,
    PERPLEXITY_ROUNDING,
    Check,
    MeanAndDeviation,
    PrintedNumber,
    decided,
    look,
    look_at_mean,
    same,
)
from search_spaces.models import FIVE

SEEDS = 11
SAMUELSON = (SEEDS - 1) / math.sqrt(SEEDS)
"""No value of n lies further than (n - 1) / sqrt(n) deviations (ddof 1) from their mean (Samuelson 1968)."""
BOUNDED = {"train_ppl": "train perplexity", "valid_ppl": "validation perplexity", "rank": "Press rank"}
"""Quantities of which Table 2 has 11 values, and only the authors' seed is printed besides."""


def checks() -> Iterator[Check]:
    """Test perplexities exactly, all others by the bound, and Table 3 against Table 4."""
    for corpus in CORPORA:
        for model in FIVE:
            yield from _test_perplexity(corpus, model)
            for quantity in BOUNDED:
                yield _one_of_eleven(corpus, model, quantity)
        yield from _frozen(corpus)


def _authors(corpus: str, model: str, column: str) -> PrintedNumber:
    """The result of the authors' seed."""
    return look("sm_table10_11_averaging", column, corpus=corpus, model=model, averaging="et_asgd")


def _test_perplexity(corpus: str, model: str) -> Iterator[Check]:
    eleven, ten = (
        look_at_mean(table, "test_ppl", corpus=corpus, model=model)
        for table in ("table2_seeds", "sm_table1_significance")
    )
    authors = _authors(corpus, model, "test_ppl")
    joined = (10 * ten.mean.value + authors.value) / SEEDS
    yield Check(
        source=eleven.mean.source,
        quantity="mean test perplexity",
        printed=eleven.mean.as_printed,
        recomputed=f"{joined:.3f}",
        rule="mean of SM Table 1's 10 seeds and the authors' in SM Tables 10 and 11 (ET-ASGD): within 0.01, the "
        "rounding of both sides",
        verdict=decided(abs(joined - eleven.mean.value) <= 2 * PERPLEXITY_ROUNDING + 1e-9),
        covers=(eleven.mean, ten.mean, authors),
    )
    distance = abs(authors.value - ten.mean.value)
    low, high = spread_of_eleven(ten.sd.value, distance - 2 * PERPLEXITY_ROUNDING, distance + 2 * PERPLEXITY_ROUNDING)
    yield Check(
        source=eleven.mean.source,
        quantity="deviation of the test perplexity",
        printed=eleven.sd.as_printed,
        recomputed=f"{low:.3f} to {high:.3f}",
        rule="deviation of the 10 seeds and the eleventh, over what the rounding of all of them allows",
        verdict=decided(_allows(low, high, eleven.sd)),
        covers=(eleven.sd, ten.sd),
    )


def spread_of_eleven(sd_10: float, nearest: float, furthest: float) -> tuple[float, float]:
    """The deviations of 11 values that are possible: 10 have the deviation `sd_10` as printed, and the eleventh lies
    between `nearest` and `furthest` from their mean."""

    def joined(sd: float, distance: float) -> float:
        return math.sqrt((9 * max(sd, 0.0) ** 2 + 10 / SEEDS * max(distance, 0.0) ** 2) / 10)

    return joined(sd_10 - PERPLEXITY_ROUNDING, nearest), joined(sd_10 + PERPLEXITY_ROUNDING, furthest)


def _allows(low: float, high: float, printed: PrintedNumber) -> bool:
    """Whether the printed deviation, rounded, can stand for one from low to high."""
    return low - PERPLEXITY_ROUNDING - 1e-9 <= printed.value <= high + PERPLEXITY_ROUNDING + 1e-9


def _one_of_eleven(corpus: str, model: str, quantity: str) -> Check:
    eleven = look_at_mean("table2_seeds", quantity, corpus=corpus, model=model)
    authors = _authors(corpus, model, "press_rank" if quantity == "rank" else quantity)
    rounding = 0.5 if quantity == "rank" else PERPLEXITY_ROUNDING
    distance = abs(authors.value - eleven.mean.value)
    allowed = SAMUELSON * (eleven.sd.value + rounding) + 2 * rounding
    return Check(
        source=eleven.mean.source,
        quantity=f"{BOUNDED[quantity]}: mean and deviation",
        printed=eleven.as_printed,
        recomputed=f"{authors.as_printed} is {distance:.4g} away",
        rule=f"the authors' seed in SM Tables 10 and 11 is one of the 11, and none can be further than 10/"
        f"\N{SQUARE ROOT}11 deviations from their mean (Samuelson 1968), with rounding {allowed:.4g}",
        verdict=decided(distance <= allowed, weakly=True),
        covers=(*eleven.numbers, authors),
    )


def _frozen(corpus: str) -> Iterator[Check]:
    """Table 4's LMS-PLIF is SM Table 1's; its frozen one and Table 3's fit as 10 and 11 seeds of one model."""
    for moment, quantity in (("mean", "mean test perplexity"), ("sd", "deviation of the test perplexity")):
        yield same(
            f"Table 4, {CORPORA[corpus]}, LMS-PLIF",
            quantity,
            look("table4_plif_vs_frozen", f"lms_plif_test_{moment}", corpus=corpus),
            look("sm_table1_significance", f"test_ppl_{moment}", corpus=corpus, model="lms_plif"),
            beside="SM Table 1",
        )
    eleven = look_at_mean("table3_plif_frozen", "test_ppl", corpus=corpus)
    ten = look_at_mean("table4_plif_vs_frozen", "frozen_test", corpus=corpus)
    yield _joined_with_an_eleventh(f"Table 3, {CORPORA[corpus]}", eleven, ten)


def _joined_with_an_eleventh(source: str, eleven: MeanAndDeviation, ten: MeanAndDeviation) -> Check:
    distance = abs(SEEDS * (eleven.mean.value - ten.mean.value))
    room = 2 * SEEDS * PERPLEXITY_ROUNDING
    low, high = spread_of_eleven(ten.sd.value, distance - room, distance + room)
    return Check(
        source=source,
        quantity="test perplexity, frozen PLIF",
        printed=eleven.as_printed,
        recomputed=ten.as_printed,
        rule="Table 4 has 10 seeds of the same model; an eleventh that moves the mean to Table 3's gives a deviation "
        f"of {low:.3f} to {high:.3f}, rounding included",
        verdict=decided(_allows(low, high, eleven.sd), weakly=True),
        covers=(*eleven.numbers, *ten.numbers),
    )
