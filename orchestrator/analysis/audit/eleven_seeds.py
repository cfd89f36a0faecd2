"""Table 2 is over 11 seeds: the 10 of SM Table 1 and the authors' own, whose results are in SM Tables 10 and 11."""

from __future__ import annotations

import math
from collections.abc import Iterator

from orchestrator.analysis.audit.check import CORPORA, MODELS, PERPLEXITY_ROUNDING, Check, Printed, look, same
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


def _authors(corpus: str, model: str, column: str) -> Printed:
    """The result of the authors' seed."""
    return look("sm_table10_11_averaging", column, corpus=corpus, model=model, averaging="et_asgd")


def _test_perplexity(corpus: str, model: str) -> Iterator[Check]:
    row = {"corpus": corpus, "model": model}
    mean, sd = (look("table2_seeds", f"test_ppl_{what}", **row) for what in ("mean", "sd"))
    mean_10, sd_10 = (look("sm_table1_significance", f"test_ppl_{what}", **row) for what in ("mean", "sd"))
    authors = _authors(corpus, model, "test_ppl")
    covers = (mean.place, mean_10.place, authors.place)
    joined = (10 * mean_10.value + authors.value) / SEEDS
    source = f"Table 2, {CORPORA[corpus]}, {MODELS[model]}"
    yield Check(
        source=source,
        what="mean test perplexity",
        printed=mean.shown,
        recomputed=f"{joined:.3f}",
        rule="mean of SM Table 1's 10 seeds and the authors' in SM Tables 10 and 11 (ET-ASGD): within 0.01, the "
        "rounding of both sides",
        verdict="agrees" if abs(joined - mean.value) <= 2 * PERPLEXITY_ROUNDING + 1e-9 else "differs",
        covers=covers,
    )
    distance = abs(authors.value - mean_10.value)
    low, high = spread_of_eleven(sd_10.value, distance - 2 * PERPLEXITY_ROUNDING, distance + 2 * PERPLEXITY_ROUNDING)
    yield Check(
        source=source,
        what="deviation of the test perplexity",
        printed=sd.shown,
        recomputed=f"{low:.3f} to {high:.3f}",
        rule="deviation of the 10 seeds and the eleventh, over what the rounding of all of them allows",
        verdict="agrees" if _allows(low, high, sd) else "differs",
        covers=(sd.place, sd_10.place),
    )


def spread_of_eleven(sd_10: float, nearest: float, furthest: float) -> tuple[float, float]:
    """The deviations of 11 values that are possible: 10 have the deviation `sd_10` as printed, and the eleventh lies
    between `nearest` and `furthest` from their mean."""

    def joined(sd: float, distance: float) -> float:
        return math.sqrt((9 * max(sd, 0.0) ** 2 + 10 / SEEDS * max(distance, 0.0) ** 2) / 10)

    return joined(sd_10 - PERPLEXITY_ROUNDING, nearest), joined(sd_10 + PERPLEXITY_ROUNDING, furthest)


def _allows(low: float, high: float, printed: Printed) -> bool:
    """Whether the printed deviation, rounded, can stand for one from low to high."""
    return low - PERPLEXITY_ROUNDING - 1e-9 <= printed.value <= high + PERPLEXITY_ROUNDING + 1e-9


def _one_of_eleven(corpus: str, model: str, quantity: str) -> Check:
    row = {"corpus": corpus, "model": model}
    mean, sd = (look("table2_seeds", f"{quantity}_{what}", **row) for what in ("mean", "sd"))
    authors = _authors(corpus, model, "press_rank" if quantity == "rank" else quantity)
    rounding = 0.5 if quantity == "rank" else PERPLEXITY_ROUNDING
    distance = abs(authors.value - mean.value)
    allowed = SAMUELSON * (sd.value + rounding) + 2 * rounding
    return Check(
        source=f"Table 2, {CORPORA[corpus]}, {MODELS[model]}",
        what=f"{BOUNDED[quantity]}: mean and deviation",
        printed=f"{mean.shown} \N{PLUS-MINUS SIGN} {sd.shown}",
        recomputed=f"{authors.shown} is {distance:.4g} away",
        rule=f"the authors' seed in SM Tables 10 and 11 is one of the 11, and none can be further than 10/"
        f"\N{SQUARE ROOT}11 deviations from their mean (Samuelson 1968), with rounding {allowed:.4g}",
        verdict="compatible" if distance <= allowed else "differs",
        covers=(mean.place, sd.place, authors.place),
    )


def _frozen(corpus: str) -> Iterator[Check]:
    """Table 4's LMS-PLIF is SM Table 1's; its frozen one and Table 3's fit as 10 and 11 seeds of one model."""
    name = CORPORA[corpus]
    for what in ("mean", "sd"):
        yield same(
            f"Table 4, {name}, LMS-PLIF",
            {"mean": "mean test perplexity", "sd": "deviation of the test perplexity"}[what],
            look("table4_plif_vs_frozen", f"lms_plif_test_{what}", corpus=corpus),
            look("sm_table1_significance", f"test_ppl_{what}", corpus=corpus, model="lms_plif"),
            beside="SM Table 1",
        )
    mean, sd = (look("table3_plif_frozen", f"test_ppl_{what}", corpus=corpus) for what in ("mean", "sd"))
    mean_10, sd_10 = (look("table4_plif_vs_frozen", f"frozen_test_{what}", corpus=corpus) for what in ("mean", "sd"))
    apart = SEEDS * (mean.value - mean_10.value)
    room = 2 * SEEDS * PERPLEXITY_ROUNDING
    nearest, furthest = max(abs(apart) - room, 0.0), abs(apart) + room
    low, high = spread_of_eleven(sd_10.value, nearest, furthest)
    yield Check(
        source=f"Table 3, {name}",
        what="test perplexity, frozen PLIF",
        printed=f"{mean.shown} \N{PLUS-MINUS SIGN} {sd.shown}",
        recomputed=f"{mean_10.shown} \N{PLUS-MINUS SIGN} {sd_10.shown}",
        rule="Table 4 has 10 seeds of the same model; an eleventh that moves the mean to Table 3's gives a deviation "
        f"of {low:.3f} to {high:.3f}, rounding included",
        verdict="compatible" if _allows(low, high, sd) else "differs",
        covers=(mean.place, sd.place, mean_10.place, sd_10.place),
    )
