"""Word similarity from six models' embeddings (AAAI 2021, Fig. 4, SM Tables 3 and 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from search_spaces.models import SIX, model_and_seed, trial
from search_spaces.published import rows
from search_spaces.study import GroupTable, Similarity, Study
from trainables.config import CorpusConfig, TrialConfig


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield the ET-ASGD models of `averaging`."""
    for model in SIX:
        yield trial(corpus, model)


def published() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Return SM Table 3: Spearman's rho by corpus, benchmark and model."""
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows("sm_table3_word_similarity"):
        benchmarks = scores.setdefault(row["corpus"], {})
        benchmarks.setdefault(row["benchmark"], {})[row["model"]] = float(row["spearman_rho"])
    return scores


STUDY = Study(
    name="word_similarity",
    title="Word similarity from the embeddings",
    question=(
        "Are the embeddings of high-rank models closer to human judgements of word similarity?"
    ),
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), Fig. 4 and SM "
    "Tables 3 and 13",
    trials=trials,
    label=model_and_seed,
    corpora=("ptb", "wikitext-2"),
    measurements=("perplexity@1", "spectrum@1", "word_similarity@1"),
    analyses=(
        Similarity(published=published()),
        GroupTable(metrics=("valid_perplexity", "test_perplexity", "press_rank")),
    ),
)
