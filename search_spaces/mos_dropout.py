"""MoS with less dropout: more rank, worse perplexity (AAAI 2021, SM Table 12, Fig. 5 right)."""

from __future__ import annotations

from collections.abc import Iterator

from search_spaces.awd_lstm import awd_lstm
from search_spaces.published import by_group
from search_spaces.study import Correlation, Curves, GroupTable, Study
from trainables.config import (
    CorpusConfig,
    LanguageTrialConfig,
    MosConfig,
    NtAsgdConfig,
    TrialConfig,
)

LATENT_DROPOUTS = (0.29, 0.145, 0.0)
PUBLISHED = by_group(
    "sm_table12_mos_dropout", lambda row: f"mos dropout={float(row['latent_dropout']):g}"
)


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield trials with three dropout rates of context vectors, and NT-ASGD (SM Table 10)."""
    for rate in LATENT_DROPOUTS:
        yield awd_lstm(corpus, MosConfig(latent_dropout=rate), averaging=NtAsgdConfig())


def label(config: LanguageTrialConfig) -> str:
    """Return a name such as "mos dropout=0.145"."""
    assert isinstance(config.output_layer, MosConfig)
    return f"mos dropout={config.output_layer.latent_dropout:g}"


STUDY = Study(
    name="mos_dropout",
    title="Less dropout in a mixture of softmaxes",
    question="If less dropout raises the rank of a mixture, does it also lower the perplexity?",
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), SM Table 12 and "
    "Fig. 5",
    trials=trials,
    label=label,
    corpora=("ptb", "wikitext-2"),
    analyses=(
        GroupTable(
            metrics=(
                "train_perplexity",
                "valid_perplexity",
                "test_perplexity",
                "generalisation_gap",
                "press_rank",
            ),
            title="Results by dropout of the context vectors",
            source="SM Table 12",
            published=PUBLISHED,
        ),
        Correlation(),
        Curves(
            x="press_rank",
            metrics=("test_perplexity", "train_perplexity"),
            caption="Perplexity over rank, after Fig. 5 (right)",
            published=PUBLISHED,
        ),
    ),
    deviations=(
        "For WikiText-2 at full dropout, SM Table 12 prints a train perplexity of 39.11; SM "
        "Tables 5 and 11 print 35.92 for the same model.",
    ),
)
