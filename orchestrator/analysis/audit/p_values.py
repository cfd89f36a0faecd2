"""The papers' p-values from the means and deviations that they print: Student's unpaired t-test, n = 10."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import (
    CORPORA,
    MODELS,
    PERPLEXITY_ROUNDING,
    Check,
    Place,
    Printed,
    look,
    same,
)
from orchestrator.analysis.statistics.samples import SampleSummary
from orchestrator.analysis.statistics.significance import PValueRange, students_t, students_t_range
from search_spaces.published import rows

SEEDS = 10
Pair = tuple[Printed, Printed]
"""A printed mean and its deviation."""


def checks() -> Iterator[Check]:
    """SM Table 1, Table 2 twice, Table 4, Table 5."""
    for row in rows("sm_table1_significance"):
        if row["p_value_vs_softmax"]:
            yield from _of_model(row["corpus"], row["model"])
    for corpus in CORPORA:
        yield _table4(corpus)
    yield _table5()


def _of_model(corpus: str, model: str) -> Iterator[Check]:
    name = f"{CORPORA[corpus]}, {MODELS[model]}"
    own = look("sm_table1_significance", "p_value_vs_softmax", corpus=corpus, model=model)
    beside = look("table2_seeds", "p_value_vs_softmax", corpus=corpus, model=model)
    pairs = _pairs("sm_table1_significance", corpus, model)
    sizes = tuple(look("sm_table1_significance", "n", corpus=corpus, model=each).place for each in (model, "softmax"))
    yield _three_digits(f"SM Table 1, {name}", "p-value against softmax", own, pairs, sizes)
    yield same(f"Table 2, {name}", "p-value against softmax", beside, own, beside="SM Table 1")
    yield _from_table2(f"Table 2, {name}", beside, _pairs("table2_seeds", corpus, model))


def _pairs(table: str, corpus: str, model: str) -> tuple[Pair, Pair]:
    one, other = (
        (
            look(table, "test_ppl_mean", corpus=corpus, model=name),
            look(table, "test_ppl_sd", corpus=corpus, model=name),
        )
        for name in (model, "softmax")
    )
    return one, other


def _summary(pair: Pair) -> SampleSummary:
    return SampleSummary(n=SEEDS, mean=pair[0].value, sd=pair[1].value)


def _three_digits(
    source: str, what: str, printed: Printed, pairs: tuple[Pair, Pair], sizes: tuple[Place, ...]
) -> Check:
    """`sizes` are the cells that say n."""
    found = students_t(_summary(pairs[0]), _summary(pairs[1])).p_value
    assert found is not None
    return Check(
        source=source,
        what=what,
        printed=printed.text,
        recomputed=f"{found:.3g}",
        rule=f"Student's t-test of the printed means and deviations, n = {SEEDS}: to the three digits printed",
        verdict="agrees" if f"{found:.2e}" == f"{printed.value:.2e}" else "differs",
        covers=(printed.place,),
        uses=_used(pairs) + sizes,
    )


def _from_table2(source: str, printed: Printed, pairs: tuple[Pair, Pair]) -> Check:
    """Its means are over other seeds than its p-value, so that this decides nothing: SM Table 1 does, exactly."""
    found, allowed = students_t(*map(_summary, pairs)).p_value, _allowed(pairs)
    rule = (
        f"Student's t-test of Table 2's own means and deviations, n = {SEEDS}: their rounding allows {_span(allowed)}; "
        "its caption says that p is over 10 of the 11 seeds that the means are over, so it need not follow"
    )
    return Check(
        source=source,
        what="p-value from Table 2's own means",
        printed=printed.text,
        recomputed=f"{found:.3g}",
        rule=rule,
        verdict="compatible" if printed.value in allowed else "explained",
        covers=(printed.place,),
        uses=_used(pairs),
    )


def _table4(corpus: str) -> Check:
    def cell(column: str) -> Printed:
        return look("table4_plif_vs_frozen", column, corpus=corpus)

    pairs = (
        (cell("lms_plif_test_mean"), cell("lms_plif_test_sd")),
        (cell("frozen_test_mean"), cell("frozen_test_sd")),
    )
    what, sizes = "p-value of learned against frozen", (cell("n_per_sample").place,)
    return _three_digits(f"Table 4, {CORPORA[corpus]}", what, cell("p_value"), pairs, sizes)


def _table5() -> Check:
    one, other = (
        (
            look("table5_fair_capacity", "test_ppl_mean", model=model),
            look("table5_fair_capacity", "test_ppl_sd", model=model),
        )
        for model in ("mos_dagger", "softmax_double_dagger")
    )
    printed = [look("table5_fair_capacity", "p_value", model=side) for side in ("mos_dagger", "softmax_double_dagger")]
    found, allowed = students_t(_summary(one), _summary(other)).p_value, _allowed((one, other))
    return Check(
        source="Table 5, PTB",
        what="p-value of MoS\N{DAGGER} against Softmax\N{DOUBLE DAGGER}",
        printed=printed[0].text,
        recomputed=f"{found:.3f}",
        rule=f"Student's t-test of the printed means and deviations, n = {SEEDS}: their rounding allows "
        f"{_span(allowed)}",
        verdict="agrees" if printed[0].value in allowed else "differs",
        covers=tuple(number.place for number in printed),
        uses=_used((one, other)),
    )


def _allowed(pairs: tuple[Pair, Pair]) -> PValueRange:
    return students_t_range(_summary(pairs[0]), _summary(pairs[1]), PERPLEXITY_ROUNDING)


def _span(allowed: PValueRange) -> str:
    assert allowed.low is not None and allowed.high is not None
    return f"{allowed.low:#.2g} to {allowed.high:#.2g}"


def _used(pairs: tuple[Pair, Pair]) -> tuple[Place, ...]:
    return tuple(number.place for pair in pairs for number in pair)
