"""PLIF in language models: cost and benefit (Ganea et al., ICML 2019)."""

from __future__ import annotations

from collections.abc import Iterator

from search_spaces.models import model_and_seed, trial
from search_spaces.published import by_group
from search_spaces.study import GroupTable, Study
from trainables.config import CorpusConfig, TrialConfig

MODELS = {
    "softmax": "softmax",
    "lms_plif_1e5": "lms_plif",
    "mos_15": "mos",
    "mos_15_plif_1e6": "mos_plif",
}
"""Our group name for each model name in the talk."""


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield four models with AAAI-2021 settings; on WikiText-2 the talk's three."""
    for model in MODELS.values():
        if model != "mos_plif" or corpus.name != "wikitext-2":
            yield trial(corpus, model)


STUDY = Study(
    name="plif_lm",
    title="Piecewise linear output functions in language models",
    question="Does a learned piecewise linear function lower the perplexity, and what does it "
    "cost?",
    source="Breaking the Softmax Bottleneck via Learnable Monotonic Pointwise Non-linearities "
    "(ICML 2019)",
    trials=trials,
    label=model_and_seed,
    corpora=("ptb", "wikitext-2"),
    analyses=(
        GroupTable(
            metrics=(
                "parameters",
                "valid_perplexity",
                "test_perplexity",
                "seconds_per_epoch",
                "peak_memory_mib",
                "press_rank",
            ),
            source="the talk's table of language models",
            published=by_group("ganea_language_modelling", lambda row: MODELS[row["model"]]),
        ),
    ),
    deviations=(
        "On Penn Treebank the talk's mixtures have 26.6 and 28.6 million parameters. These have "
        "21.5 and 22.5 million, from the AAAI-2021 settings.",
        "The talk takes its rows of softmax and mixtures from the literature, trained with "
        "NT-ASGD. Here every model is trained with ET-ASGD.",
    ),
)
