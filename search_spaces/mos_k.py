"""Number of mixtures in MoS (AAAI 2021, SM Tables 4 and 5, Fig. 5 left, Fig. 6)."""

from __future__ import annotations

from collections.abc import Iterator

from search_spaces.awd_lstm import awd_lstm
from search_spaces.published import by_group
from search_spaces.study import Correlation, Curves, GroupTable, RankOverTraining, Study
from trainables.config import (
    CorpusConfig,
    LanguageTrialConfig,
    MosConfig,
    NtAsgdConfig,
    TrialConfig,
)

MIXTURES = (1, 3, 5, 10, 15, 20)
WIKITEXT_2_MIXTURES = (10, 15, 20)
PUBLISHED = by_group("sm_table4_5_mos_k", lambda row: f"mos K={row['mixtures']}")


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield a trial per number of mixtures, with NT-ASGD (SM Tables 10 and 12)."""
    for mixtures in WIKITEXT_2_MIXTURES if corpus.name == "wikitext-2" else MIXTURES:
        yield awd_lstm(corpus, MosConfig(mixtures=mixtures), averaging=NtAsgdConfig())


def label(config: LanguageTrialConfig) -> str:
    """Return a name: "mos K=15"."""
    assert isinstance(config.output_layer, MosConfig)
    return f"mos K={config.output_layer.mixtures}"


STUDY = Study(
    name="mos_k",
    title="Number of softmaxes in a mixture",
    question=(
        "Do more mixtures lower the perplexity through a higher rank, or through more parameters?"
    ),
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), SM Tables 4 and 5, "
    "Figs. 5 and 6",
    trials=trials,
    label=label,
    corpora=("ptb", "wikitext-2"),
    analyses=(
        GroupTable(
            metrics=(
                "parameters",
                "train_perplexity",
                "valid_perplexity",
                "test_perplexity",
                "generalisation_gap",
                "press_rank",
            ),
            title="Results by number of mixtures",
            source="SM Tables 4 and 5",
            published=PUBLISHED,
        ),
        Correlation(),
        Curves(
            x="output_layer.mixtures",
            metrics=("parameters", "press_rank", "test_perplexity", "generalisation_gap"),
            caption="Capacity, rank, perplexity and generalisation gap over the number of "
            "mixtures, after Fig. 6",
            published=PUBLISHED,
        ),
        RankOverTraining(),
    ),
)
