"""The rank, turned by hand: does it change the loss if the function of the logits hardly changes?

Two families of functions are near the identity but raise the Press rank of log P: cap tanh(x / cap)
and (x + eps softplus(x)) / (1 + eps), which is GSS with c = 0 and k = 1 / (1 + eps). The settings
were calibrated without training. A trained softmax (Penn Treebank, quick, one seed) was bent
afterwards. KL, in nats, is from the unbent softmax; the Press rank of the LSTM (Transformer) was 26
(66) before:

    function        KL              Press rank     near
    tanh 1000       2e-9            26 (66)        yes
    softplus 0.01   5e-6            56 (119)       yes
    tanh 60         1e-4            43 (93)        yes
    softplus 0.1    4e-4            212 (392)      yes
    tanh 30         2e-3            86 (182)       no
    softplus 1      1.4e-2          456 (675)      no
    tanh 15         2.6e-2          196 (362)      no

What follows was written before the first trial of the study ran, and is not to be changed. Each
text and each kind of model is analysed alone, at scale quick, with 30 seeds. All functions share
the seeds.

(a) Equivalence, the primary question. For each function, ln(perplexity) minus that of the softmax
    of the same seed: two one-sided t-tests against a margin of 0.004 (0.4% of the perplexity).
    Holm's correction is over the tests of a text, both kinds of model together. "A higher rank
    changes nothing" is reported for a model and text only if all four near functions are
    equivalent. The other three change the function by more than the margin, so they may change the
    loss by what they do to the function.
(b) Dose response. Slope of ln(perplexity) on ln(Press rank), and on ln(KL rank for 0.01 nats), over
    the eight functions. Each seed has a slope of its own, and the interval of their mean is over
    seeds, so it holds for these eight functions. A second interval is that of the line through the
    eight means, with 6 degrees of freedom, and holds for functions of which these are a sample.
(c) Bend or training? Press rank of the model trained with a function, divided by that of the
    softmax of the same seed, bent after training. About 1: the function makes the rank.
(d) Between seeds. Slope of ln(perplexity) on the logarithms of both ranks, over the seeds within a
    function, all functions together. The interval is a jackknife over seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Comparison, GroupTable, Study
from search_spaces.transformer import transformer
from search_spaces.turned_ranks import (
    MODELS,
    PLAIN,
    bent_after_training,
    between_seeds,
    dose_response,
    equivalence,
)
from trainables.config import (
    TURNS,
    AnyConfig,
    CorpusConfig,
    LanguageTrialConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
    output_layer_of,
)

LAYERS: dict[str, OutputLayerConfig] = {PLAIN: SoftmaxConfig(), **TURNS}
CORNER = (PLAIN, "tanh 15", "softplus 1")


def trials(corpus: CorpusConfig) -> Iterator[LanguageTrialConfig]:
    """Yield an LSTM and a Transformer for each of the eight functions."""
    for layer in LAYERS.values():
        yield awd_lstm(corpus, layer)
    for layer in LAYERS.values():
        yield transformer(corpus, layer)


def label(config: AnyConfig) -> str:
    """Return a name such as "LSTM softplus 0.1 seed=1"."""
    model = MODELS[isinstance(config, TransformerTrialConfig)]
    layer = output_layer_of(config)
    function = next((name for name in LAYERS if LAYERS[name] == layer), "other function")
    return f"{model} {function} seed={config.seed}"


def corner(configs: Sequence[AnyConfig]) -> list[AnyConfig]:
    """Return LSTMs with softmax and the strongest bend of each family."""
    layers = [LAYERS[name] for name in CORNER]
    return [
        config
        for config in configs
        if output_layer_of(config) in layers and not isinstance(config, TransformerTrialConfig)
    ]


STUDY = Study(
    name="turn_the_rank",
    title="The rank, turned by hand",
    question="Does a higher rank of the log-P matrix change the perplexity, if the function of the "
    "logits hardly changes?",
    trials=trials,
    label=label,
    corner=corner,
    seeds={"smoke": 3, "quick": 30, "small": 5, "paper": 5},
    measurements=("perplexity@1", "spectrum@1", "kl_rank@1", "turned_softmax@1"),
    analyses=(
        equivalence,
        dose_response,
        bent_after_training,
        between_seeds,
        Comparison(
            baselines={f"{model} {name}": f"{model} {PLAIN}" for model in MODELS for name in TURNS}
        ),
        GroupTable(
            metrics=(
                "test_perplexity",
                "press_rank",
                "kl_rank_1e-1",
                "kl_rank_1e-2",
                "kl_rank_1e-3",
            )
        ),
    ),
)
