"""Press ranks that follow from widths, or are printed in more than one table, and how they go with
perplexity."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import (
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
from orchestrator.analysis.statistics.correlation import correlate
from search_spaces.models import FIVE

QUANTITIES = {
    "train_ppl": "train perplexity",
    "test_ppl": "test perplexity",
    "press_rank": "Press rank",
}
WIDTHS = {"softmax": "softmax_ss_gss_plif", "moc": "mos_moc", "mixture of one": "mos_moc"}
"""Models whose Press rank is d + 2 -> columns of SM Table 6."""
SIGNS = (
    ("sm_table4_5_mos_k", "ptb", "positive with performance"),
    ("sm_table4_5_mos_k", "wikitext-2", "positive with performance"),
    ("sm_table12_mos_dropout", "wikitext-2", "negative with performance"),
    ("sm_table12_mos_dropout", "ptb", "no sign"),
)
"""Of rank and test perplexity over K and over dropout: the paper prints no coefficient. Fig. 5
shows dropout on WikiText-2 alone, so that of SM Table 12's PTB no sign is said that could be
checked."""


def checks() -> Iterator[Check]:
    """d + 2 of softmax, MoC and a mixture of one; ranks that two tables print; the two of SM
    5.1."""
    for table, column in (
        ("table2_seeds", "rank_mean"),
        ("table6_rank_metrics", "press_rank"),
        ("sm_table10_11_averaging", "press_rank"),
    ):
        for printed in column_of(table, column):
            if printed.row["model"] in WIDTHS:
                yield _d_plus_2(printed, printed.source, printed.row["model"])
    for printed in column_of("sm_table4_5_mos_k", "press_rank"):
        if printed.row["mixtures"] == "1":
            yield _d_plus_2(
                printed, f"SM Table 4, K=1, {CORPORA[printed.corpus]}, MoS", "mixture of one"
            )
    for corpus in CORPORA:
        yield from _printed_again(corpus)
    few, every = column_of("sm_section5_press_rank", "press_rank")
    nt_asgd = look(
        "sm_table10_11_averaging", "press_rank", corpus="ptb", model="mos", averaging="nt_asgd"
    )
    yield same(every.source, "Press rank over all contexts", every, nt_asgd, beside=nt_asgd.title)
    yield Check(
        source=few.source,
        quantity="Press rank over the first 10,000 contexts",
        printed=few.text,
        recomputed=f"{every.text} over all 82,430",
        rule="the same model and text: the Press rank depends on the number of contexts, not on a model alone",
        verdict="explained",
        covers=(few,),
        uses=(every, few.beside("contexts"), every.beside("contexts")),
    )


def _d_plus_2(printed: PrintedNumber, source: str, model: str) -> Check:
    width = look(
        "sm_table6_hyperparameters",
        f"{WIDTHS[model]}_{printed.corpus}",
        hyperparameter="dim_embedding",
    )
    return Check(
        source=source,
        quantity="Press rank",
        printed=printed.text,
        recomputed=str(int(width.text) + 2),
        rule="d + 2 of SM Table 6's d: W h, the bias and the normaliser of each row",
        verdict=decided(int(printed.text) == int(width.text) + 2),
        covers=(printed,),
        uses=(width,),
    )


def _printed_again(corpus: str) -> Iterator[Check]:
    name = CORPORA[corpus]
    for model in FIVE:
        et_asgd = look(
            "sm_table10_11_averaging", "press_rank", corpus=corpus, model=model, averaging="et_asgd"
        )
        rank = look("table6_rank_metrics", "press_rank", corpus=corpus, model=model)
        yield same(
            f"Table 6, {name}, {MODELS[model]}", "Press rank", rank, et_asgd, beside=et_asgd.title
        )
    for column, quantity in QUANTITIES.items():
        nt_asgd = look(
            "sm_table10_11_averaging", column, corpus=corpus, model="mos", averaging="nt_asgd"
        )
        by_mixtures = look("sm_table4_5_mos_k", column, corpus=corpus, mixtures="15")
        by_dropout = look("sm_table12_mos_dropout", column, corpus=corpus, latent_dropout="0.29")
        yield same(
            f"{by_mixtures.source}, K=15", quantity, by_mixtures, nt_asgd, beside=nt_asgd.title
        )
        yield same(
            f"{by_dropout.source}, dropout 0.29",
            quantity,
            by_dropout,
            nt_asgd,
            beside=nt_asgd.title,
        )
    for quantity, printed, hyperparameter in (
        (
            "full dropout of the context vectors",
            by_dropout.beside("latent_dropout"),
            "mos_latent_dropout",
        ),
        ("number of mixtures", by_mixtures.beside("mixtures"), "mos_mixtures"),
    ):
        setting = look(
            "sm_table6_hyperparameters", f"mos_moc_{corpus}", hyperparameter=hyperparameter
        )
        yield same(printed.source, quantity, printed, setting, beside="SM Table 6")


def correlations() -> Iterator[Check]:
    """Three signs, a higher rank with a lower perplexity over K and with a higher one over dropout,
    and one without."""
    for table, corpus, sign in SIGNS:
        yield _correlation(
            [rank for rank in column_of(table, "press_rank") if rank.corpus == corpus], sign
        )


def _correlation(ranks: list[PrintedNumber], sign: str) -> Check:
    perplexities = [rank.beside("test_ppl") for rank in ranks]
    pairs = [number.value for number in ranks], [number.value for number in perplexities]
    linear, ordered = (correlate(*pairs, ranks=ranked) for ranked in (False, True))
    assert linear.value is not None and ordered.value is not None
    few = len(ranks) <= FEW
    if sign == "no sign":
        rule = "the paper says nothing that it could be held against"
    else:
        chance = f", which {len(ranks)} points give by chance half of the time" if few else ""
        rule = f"decided by the sign, as a lower perplexity is a better performance{chance}"
    interval = (
        f", 95% [{linear.interval.low:+.2f}, {linear.interval.high:+.2f}]"
        if linear.interval
        else ""
    )
    return Check(
        source=ranks[0].source,
        quantity="correlation of Press rank and test perplexity",
        printed=f"{sign}, no coefficient",
        recomputed=f"Pearson r = {linear.value:+.3f}{interval}, Spearman {ordered.value:+.2f}, n = {len(ranks)}",
        rule=f"computed here from the printed ranks and perplexities; {rule}",
        verdict=decided(
            sign == "no sign" or (linear.value < 0) == (sign == "positive with performance"),
            weakly=few or sign == "no sign",
        ),
        uses=(*ranks, *perplexities),
    )
