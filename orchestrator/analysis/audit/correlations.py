"""Rank against test perplexity over K (SM Tables 4 and 5) and over dropout (SM Table 12): computed here, as the paper
prints no coefficient, only the sign.

Fig. 5 shows dropout on WikiText-2 alone, so that of SM Table 12's PTB no sign is said that could be checked."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import CORPORA, FEW, Check, Place, decided
from orchestrator.analysis.statistics.correlation import pearson, spearman
from search_spaces.published import rows


def checks() -> Iterator[Check]:
    """Three signs, a higher rank with a lower perplexity over K and with a higher one over dropout, and one without."""
    yield _sign("SM Table 4", "sm_table4_5_mos_k", "ptb", positive_with_performance=True)
    yield _sign("SM Table 5", "sm_table4_5_mos_k", "wikitext-2", positive_with_performance=True)
    yield _sign("SM Table 12", "sm_table12_mos_dropout", "wikitext-2", positive_with_performance=False)
    yield _sign("SM Table 12", "sm_table12_mos_dropout", "ptb", positive_with_performance=None)


def _sign(source: str, table: str, corpus: str, *, positive_with_performance: bool | None) -> Check:
    lines = [(line, row) for line, row in enumerate(rows(table)) if row["corpus"] == corpus]
    ranks = [float(row["press_rank"]) for _, row in lines]
    perplexities = [float(row["test_ppl"]) for _, row in lines]
    linear, ordered = pearson(ranks, perplexities), spearman(ranks, perplexities)
    assert linear.value is not None and ordered.value is not None
    comes_out = positive_with_performance in (None, linear.value < 0)
    weakly = len(lines) <= FEW or positive_with_performance is None
    words = {True: "positive with performance", False: "negative with performance", None: "no sign"}
    interval = f", 95% [{linear.interval.low:+.2f}, {linear.interval.high:+.2f}]" if linear.interval else ""
    return Check(
        source=f"{source}, {CORPORA[corpus]}",
        what="correlation of Press rank and test perplexity",
        printed=f"{words[positive_with_performance]}, no coefficient",
        recomputed=f"Pearson r = {linear.value:+.3f}{interval}, Spearman {ordered.value:+.2f}, n = {len(lines)}",
        rule="computed here from the printed ranks and perplexities; " + _rule(positive_with_performance, len(lines)),
        verdict=decided(comes_out, weakly=weakly),
        uses=tuple(Place(table, line, column) for line, _ in lines for column in ("press_rank", "test_ppl")),
    )


def _rule(positive_with_performance: bool | None, points: int) -> str:
    if positive_with_performance is None:
        return "the paper says nothing that it could be held against"
    chance = f", which {points} points give by chance half of the time" if points <= FEW else ""
    return f"decided by the sign, as a lower perplexity is a better performance{chance}"
