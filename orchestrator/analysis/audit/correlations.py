"""Rank against test perplexity over K (SM Tables 4 and 5) and over dropout (SM Table 12): computed here, as the paper
prints no coefficient, only the sign.

Fig. 5 shows dropout on WikiText-2 alone, so that of SM Table 12's PTB no sign is said that could be checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from orchestrator.analysis.audit.check import FEW, Check, column_of, decided
from orchestrator.analysis.statistics.correlation import pearson, spearman

Sign = Literal["positive with performance", "negative with performance", "no sign"]
SIGNS: tuple[tuple[str, str, Sign], ...] = (
    ("sm_table4_5_mos_k", "ptb", "positive with performance"),
    ("sm_table4_5_mos_k", "wikitext-2", "positive with performance"),
    ("sm_table12_mos_dropout", "wikitext-2", "negative with performance"),
    ("sm_table12_mos_dropout", "ptb", "no sign"),
)


def checks() -> Iterator[Check]:
    """Three signs, a higher rank with a lower perplexity over K and with a higher one over dropout, and one without."""
    for table, corpus, sign in SIGNS:
        yield _sign(table, corpus, sign)


def _sign(table: str, corpus: str, sign: Sign) -> Check:
    ranks = [rank for rank in column_of(table, "press_rank") if rank.corpus == corpus]
    perplexities = [rank.beside("test_ppl") for rank in ranks]
    pairs = [number.value for number in ranks], [number.value for number in perplexities]
    linear, ordered = pearson(*pairs), spearman(*pairs)
    assert linear.value is not None and ordered.value is not None
    few = len(ranks) <= FEW
    if sign == "no sign":
        rule = "the paper says nothing that it could be held against"
    else:
        chance = f", which {len(ranks)} points give by chance half of the time" if few else ""
        rule = f"decided by the sign, as a lower perplexity is a better performance{chance}"
    interval = f", 95% [{linear.interval.low:+.2f}, {linear.interval.high:+.2f}]" if linear.interval else ""
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
