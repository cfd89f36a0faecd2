"""One trial of every output layer, as a study: time, memory, rank and perplexity side by side.

python sweep.py benchmarks/every_layer.py --corpus ptb --data-dir DIR
"""

from __future__ import annotations

from collections.abc import Iterator

from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from trainables.config import (
    CorpusConfig,
    GssConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MocConfig,
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
    TrialConfig,
)

LAYERS: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    MocConfig(),
    LmsPlifConfig(),
    LmsPlifFrozenConfig(),
    SigSoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    MonotoneNnConfig(),
    MosConfig(),
    MosPlifConfig(),
)


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """One of each, with the seed of the authors."""
    for layer in LAYERS:
        yield awd_lstm(corpus, layer)


STUDY = Study(
    name="every_layer",
    title="Every output layer once",
    question="What rank, perplexity, time and memory does each output layer come to?",
    trials=trials,
    label=lambda config: config.output_layer.name,
    corpora=("ptb", "wikitext-2"),
    corner=lambda trials: trials,
)
