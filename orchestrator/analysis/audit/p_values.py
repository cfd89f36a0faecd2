"""The papers' p-values from the means and deviations that they print: Student's unpaired t-test, n = 10."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import (
    CORPORA,
    MODELS,
    PERPLEXITY_ROUNDING,
    Check,
    MeanAndDeviation,
    PrintedNumber,
    all_numbers,
    column_of,
    decided,
    look,
    look_at_mean,
    same,
)
from orchestrator.analysis.statistics.samples import SampleSummary
from orchestrator.analysis.statistics.significance import students_t, students_t_range

SEEDS = 10
SM_TABLE_1, TABLE_2 = "sm_table1_significance", "table2_seeds"
TABLE_4, TABLE_5 = "table4_plif_vs_frozen", "table5_fair_capacity"


def checks() -> Iterator[Check]:
    """SM Table 1, Table 2 twice, Table 4, Table 5."""
    for printed in column_of(SM_TABLE_1, "p_value_vs_softmax"):
        yield from _against_softmax(printed)
    for corpus in CORPORA:
        pairs = [look_at_mean(TABLE_4, f"{side}_test", corpus=corpus) for side in ("lms_plif", "frozen")]
        p_value, size = look(TABLE_4, "p_value", corpus=corpus), look(TABLE_4, "n_per_sample", corpus=corpus)
        yield _to_three_digits("p-value of learned against frozen", p_value, pairs, (size,))
    yield _table5()


def _against_softmax(printed: PrintedNumber) -> Iterator[Check]:
    corpus, model = printed.corpus, printed.row["model"]
    sizes = tuple(look(SM_TABLE_1, "n", corpus=corpus, model=name) for name in (model, "softmax"))
    in_table2 = look(TABLE_2, "p_value_vs_softmax", corpus=corpus, model=model)
    ten, eleven = (
        [look_at_mean(table, "test_ppl", corpus=corpus, model=name) for name in (model, "softmax")]
        for table in (SM_TABLE_1, TABLE_2)
    )
    yield _to_three_digits("p-value against softmax", printed, ten, sizes)
    yield same(in_table2.source, "p-value against softmax", in_table2, printed, beside="SM Table 1")
    yield _from_means_of_eleven(in_table2, eleven)


def _to_three_digits(
    quantity: str, printed: PrintedNumber, pairs: list[MeanAndDeviation], sizes: tuple[PrintedNumber, ...]
) -> Check:
    """`sizes` are the cells that say n."""
    p_value = _p_value(pairs)
    return Check(
        source=printed.source,
        quantity=quantity,
        printed=printed.text,
        recomputed=f"{p_value:.3g}",
        rule=f"Student's t-test of the printed means and deviations, n = {SEEDS}: to the three digits printed",
        verdict=decided(f"{p_value:.2e}" == f"{printed.value:.2e}"),
        covers=(printed,),
        uses=all_numbers(pairs) + sizes,
    )


def _from_means_of_eleven(printed: PrintedNumber, pairs: list[MeanAndDeviation]) -> Check:
    """Table 2's means are over other seeds than its p-value, so that this decides nothing: SM Table 1 does, exactly."""
    inside, span = _inside(printed, pairs)
    return Check(
        source=printed.source,
        quantity="p-value from Table 2's own means",
        printed=printed.text,
        recomputed=f"{_p_value(pairs):.3g}",
        rule=f"Student's t-test of Table 2's own means and deviations, n = {SEEDS}: their rounding allows {span}; "
        "its caption says that p is over 10 of the 11 seeds that the means are over, so it need not follow",
        verdict="compatible" if inside else "explained",
        covers=(printed,),
        uses=all_numbers(pairs),
    )


def _table5() -> Check:
    models = ("mos_dagger", "softmax_double_dagger")
    pairs = [look_at_mean(TABLE_5, "test_ppl", model=model) for model in models]
    printed = tuple(look(TABLE_5, "p_value", model=model) for model in models)
    inside, span = _inside(printed[0], pairs)
    return Check(
        source=f"{printed[0].title}, PTB",
        quantity=f"p-value of {MODELS[models[0]]} against {MODELS[models[1]]}",
        printed=printed[0].text,
        recomputed=f"{_p_value(pairs):.3f}",
        rule=f"Student's t-test of the printed means and deviations, n = {SEEDS}: their rounding allows {span}",
        verdict=decided(inside),
        covers=printed,
        uses=all_numbers(pairs),
    )


def _p_value(pairs: list[MeanAndDeviation]) -> float:
    p_value = students_t(*_samples(pairs)).p_value
    assert p_value is not None
    return p_value


def _samples(pairs: list[MeanAndDeviation]) -> tuple[SampleSummary, SampleSummary]:
    one, second = (SampleSummary(n=SEEDS, mean=pair.mean.value, sd=pair.sd.value) for pair in pairs)
    return one, second


def _inside(printed: PrintedNumber, pairs: list[MeanAndDeviation]) -> tuple[bool, str]:
    """Whether the p-value is one that the rounding of means and deviations allows, and which those are."""
    allowed = students_t_range(*_samples(pairs), PERPLEXITY_ROUNDING)
    return printed.value in allowed, f"{allowed.low:#.2g} to {allowed.high:#.2g}"
