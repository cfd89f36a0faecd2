"""Press ranks that follow from widths, or are printed in more than one table."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import AVERAGING, CORPORA, MODELS, Check, Place, look, same
from search_spaces.models import FIVE
from search_spaces.published import rows

D_PLUS_2 = "d + 2 of SM Table 6's d: W h, the bias and the normaliser of each row"


def checks() -> Iterator[Check]:
    """d + 2 of softmax, MoC and a mixture of one; Table 6 against SM Tables 10 and 11; K = 15 and full dropout."""
    for table, name in (("table2_seeds", "Table 2"), ("table6_rank_metrics", "Table 6")):
        for line, row in enumerate(rows(table)):
            if row["model"] == "softmax":
                column = "rank_mean" if table == "table2_seeds" else "press_rank"
                yield _d_plus_2(name, Place(table, line, column), "softmax_ss_gss_plif")
    for line, row in enumerate(rows("sm_table10_11_averaging")):
        if row["model"] in ("softmax", "moc"):
            kind = "softmax_ss_gss_plif" if row["model"] == "softmax" else "mos_moc"
            name = f"SM Table {10 if row['corpus'] == 'ptb' else 11}, {AVERAGING[row['averaging']]}"
            yield _d_plus_2(name, Place("sm_table10_11_averaging", line, "press_rank"), kind)
    for line, row in enumerate(rows("sm_table4_5_mos_k")):
        if row["mixtures"] == "1":
            yield _d_plus_2("SM Table 4, K=1", Place("sm_table4_5_mos_k", line, "press_rank"), "mos_moc")
    for corpus in CORPORA:
        yield from _printed_again(corpus)


def _d_plus_2(source: str, place: Place, kind: str) -> Check:
    cells = rows(place.table)[place.line]
    corpus, printed = cells["corpus"], cells[place.column]
    width = look("sm_table6_hyperparameters", f"{kind}_{corpus}", hyperparameter="dim_embedding")
    found = int(width.text) + 2
    model = cells.get("model", "mos")
    return Check(
        source=f"{source}, {CORPORA[corpus]}, {MODELS[model]}",
        what="Press rank",
        printed=printed,
        recomputed=str(found),
        rule=D_PLUS_2,
        verdict="agrees" if int(printed) == found else "differs",
        covers=(place,),
        uses=(width.place,),
    )


def _printed_again(corpus: str) -> Iterator[Check]:
    name, averaging = CORPORA[corpus], "sm_table10_11_averaging"
    number = 10 if corpus == "ptb" else 11
    for model in FIVE:
        yield same(
            f"Table 6, {name}, {MODELS[model]}",
            "Press rank",
            look("table6_rank_metrics", "press_rank", corpus=corpus, model=model),
            look(averaging, "press_rank", corpus=corpus, model=model, averaging="et_asgd"),
            beside=f"SM Table {number}, ET-ASGD",
        )
    quantities = {"train_ppl": "train perplexity", "test_ppl": "test perplexity", "press_rank": "Press rank"}
    for column, what in quantities.items():
        nt_asgd = look(averaging, column, corpus=corpus, model="mos", averaging="nt_asgd")
        by_mixtures = look("sm_table4_5_mos_k", column, corpus=corpus, mixtures="15")
        by_dropout = look("sm_table12_mos_dropout", column, corpus=corpus, latent_dropout="0.29")
        beside = f"SM Table {number}, NT-ASGD"
        source = f"SM Table {4 if corpus == 'ptb' else 5}, {name}, K=15"
        yield same(source, what, by_mixtures, nt_asgd, beside=beside)
        yield same(f"SM Table 12, {name}, dropout 0.29", what, by_dropout, nt_asgd, beside=beside)
    rate = look("sm_table6_hyperparameters", f"mos_moc_{corpus}", hyperparameter="mos_latent_dropout")
    full = look("sm_table12_mos_dropout", "latent_dropout", corpus=corpus, latent_dropout="0.29")
    yield same(f"SM Table 12, {name}", "full dropout of the context vectors", full, rate, beside="SM Table 6")
    mixtures = look("sm_table6_hyperparameters", f"mos_moc_{corpus}", hyperparameter="mos_mixtures")
    k = look("sm_table4_5_mos_k", "mixtures", corpus=corpus, mixtures="15")
    yield same(
        f"SM Table {4 if corpus == 'ptb' else 5}, {name}", "number of mixtures", k, mixtures, beside="SM Table 6"
    )
