"""The AWD-LSTM trials of the papers with their hyper-parameters (AAAI 2021, SM Table 6)."""

from __future__ import annotations

from trainables.config import (
    AveragingConfig,
    CorpusConfig,
    EtAsgdConfig,
    EvaluationConfig,
    LanguageModelConfig,
    OutputLayerConfig,
    TrainingConfig,
    TrialConfig,
)

AUTHORS_SEED = {"ptb": 141, "wikitext-2": 1881}
WIKITEXT_2_RANK_CONTEXTS = 33_320
"""The paper stops there "due to time and space complexities"; on PTB it uses all contexts."""


def awd_lstm(
    corpus: CorpusConfig,
    output_layer: OutputLayerConfig,
    *,
    seed: int | None = None,
    averaging: AveragingConfig | None = None,
) -> TrialConfig:
    """One trial of softmax, SigSoftmax, GSS or LMS-PLIF at paper scale.

    Averaging is ET-ASGD unless given, the seed the authors'. A corpus that the papers did not use gets the settings of
    Penn Treebank.
    """
    wikitext = corpus.name == "wikitext-2"
    return TrialConfig(
        seed=AUTHORS_SEED.get(corpus.name, AUTHORS_SEED["ptb"]) if seed is None else seed,
        corpus=corpus,
        model=LanguageModelConfig(
            dropout_embedding=0.65 if wikitext else 0.4,
            dropout_hidden=0.2 if wikitext else 0.3,
        ),
        output_layer=output_layer,
        training=TrainingConfig(
            batch_size=80 if wikitext else 20,
            learning_rate=30.0 if wikitext else 20.0,
            averaging=averaging or EtAsgdConfig(),
        ),
        evaluation=EvaluationConfig(rank_contexts=WIKITEXT_2_RANK_CONTEXTS if wikitext else None),
    )
