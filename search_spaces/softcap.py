"""Bounded logits: what a softcap does to the rank of log P and to the perplexity, cap by cap.

Many language models of today bound their logits: 30 tanh(x / 30) in Gemma 2 (arXiv 2408.00118), 15 tanh(x / 15) in
nanochat (Karpathy 2025), 23 sigmoid((x + 5) / 7.5) in modded-nanogpt. That is a bend like those of AAAI 2021, under
another name, and chosen for other reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Correlation, GroupTable, Lines, LossByRank, PairedComparison, RankOverTraining, Study
from trainables.config import (
    AnyConfig,
    CorpusConfig,
    OutputLayerConfig,
    SoftcapConfig,
    SoftmaxConfig,
    TrialConfig,
    output_layer_of,
)

CAPS = (5.0, 10.0, 15.0, 20.0, 30.0)
SIGMOID_CAPS = (*CAPS[:4], 23.0, CAPS[4])
"""With modded-nanogpt's own."""
SOFTCAPS = (
    *(SoftcapConfig(form="tanh", cap=cap) for cap in CAPS),
    *(SoftcapConfig(form="sigmoid", cap=cap) for cap in SIGMOID_CAPS),
)
SEEDS = 5
PLAIN = "softmax"


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Softmax and eleven softcaps, each with the settings that the papers give softmax: 12 trials, times the seeds."""
    layers: tuple[OutputLayerConfig, ...] = (SoftmaxConfig(), *SOFTCAPS)
    for layer in layers:
        yield awd_lstm(corpus, layer)


def label(config: AnyConfig) -> str:
    """ "softcap tanh 15"; "softmax"."""
    layer = output_layer_of(config)
    return _group(layer) if isinstance(layer, SoftcapConfig) else PLAIN


def _group(layer: SoftcapConfig) -> str:
    return f"softcap {layer.form} {layer.cap:g}"


def corner(configs: Sequence[AnyConfig]) -> list[AnyConfig]:
    """Softmax, and the smallest and the largest cap of either form, for scale smoke."""
    ends = {PLAIN, *(_group(layer) for layer in SOFTCAPS if layer.cap in (CAPS[0], CAPS[-1]))}
    return [config for config in configs if label(config) in ends]


BASELINES = {_group(layer): PLAIN for layer in SOFTCAPS}
METRICS = ("test_perplexity", "press_rank", "entropy_rank", "kl_rank_1e-1", "kl_rank_1e-2", "kl_rank_1e-3")
DRAWN = ("test_perplexity", "press_rank", "kl_rank_1e-2")

STUDY = Study(
    name="softcap",
    title="Softcaps, the bounded logits of today's models",
    question="Does bounding the logits change the rank of the log-P matrix, and the perplexity with it?",
    trials=trials,
    label=label,
    corner=corner,
    seeds={"quick": SEEDS, "small": SEEDS, "paper": SEEDS},
    measurements=("perplexity@1", "spectrum@1", "kl_rank@1"),
    analyses=(
        Lines(
            x="output_layer.cap",
            by="output_layer.form",
            metrics=DRAWN,
            reference=PLAIN,
            title="Over the cap",
            logarithmic_y=("test_perplexity", "press_rank"),
            note="tanh: cap tanh(x / cap), Gemma 2's at 30 and nanochat's at 15. sigmoid: modded-nanogpt's "
            "23 sigmoid((x + 5) / 7.5) at 23, at other caps with all three numbers in proportion. So the sigmoid form "
            "has half the range of the tanh form of the same cap, and a slope of 0.77 at most. No source printed a "
            "rank.",
        ),
        *(PairedComparison(baselines=BASELINES, metric=metric) for metric in DRAWN),
        Correlation(),
        Correlation(x="kl_rank_1e-2"),
        GroupTable(metrics=METRICS, title="Perplexity and ranks by cap"),
        LossByRank(),
        RankOverTraining(),
    ),
    deviations=(
        "The sources cap the logits of Transformers without an output bias; here they have one, and at scale quick it "
        "starts at the frequencies of the words, as far as the cap lets it.",
        "The sources tune a cap together with the rest of a model; here it alone changes.",
    ),
)
