"""Every output layer and every cell of the whole grid, as a study: does each learn, under each of
three seeds?

python sweep.py benchmarks/every_layer.py --corpus ptb --data-dir DIR
python -m benchmarks.who_learns results/results.db
"""

from __future__ import annotations

from collections.abc import Iterator

from search_spaces import gss_grid
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
    SoftcapConfig,
    SoftmaxConfig,
    TrialConfig,
)

LAYERS: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    MocConfig(),
    LmsPlifConfig(),
    LmsPlifFrozenConfig(),
    SigSoftmaxConfig(),
    SoftcapConfig(cap=15.0),
    SoftcapConfig(form="sigmoid", cap=23.0),
    MonotoneNnConfig(),
    MosConfig(),
    MosPlifConfig(),
)


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """One of each, with the seed of the authors; softcap in both forms, and GSS in all its
    cells."""
    for layer in LAYERS:
        yield awd_lstm(corpus, layer)
    yield from gss_grid.trials(corpus)


def label(config: TrialConfig) -> str:
    """The name of the layer, of GSS with its cell."""
    return (
        gss_grid.label(config)
        if isinstance(config.output_layer, GssConfig)
        else config.output_layer.name
    )


STUDY = Study(
    name="every_layer",
    title="Every output layer and every cell of the grid",
    question="Does every output layer learn at scale quick, under every seed?",
    trials=trials,
    label=label,
    seeds={"quick": 3},
    corpora=("ptb", "wikitext-2"),
)
