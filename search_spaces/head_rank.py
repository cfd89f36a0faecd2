"""Bends and mixtures on a head of rank r, compared with plain heads of higher rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Lines, PowerLaw, Study
from search_spaces.transformer import transformer
from trainables.config import (
    CorpusConfig,
    GssConfig,
    LanguageTrialConfig,
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
    TransformerTrialConfig,
    TrialConfig,
)

LSTM_WIDTH, TRANSFORMER_WIDTH = 1024, 512
LEAST_RANK = 4
# Scaled to quick, the smallest rank is 2, at widths 61 and 64.
QUICK_SHARE = 1 / 32
# Scaled to smoke, the smallest rank is 2, at width 16.
SMOKE_SHARE = 1 / 8
SEED = 1
# Two components already exceed the head's rank; more only cost time.
MIXTURES = 3
# The cap is nanochat's. MoC, a mixture of bounded rank, is a control for MoS.
SEVEN: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    SigSoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    SoftcapConfig(form="tanh", cap=15.0),
    LmsPlifConfig(),
    MosConfig(mixtures=MIXTURES),
    MocConfig(mixtures=MIXTURES),
)
# The sigmoid softcap has modded-nanogpt's cap.
LAYERS = (
    *SEVEN,
    SoftcapConfig(form="sigmoid", cap=23.0),
    LmsPlifFrozenConfig(),
    MonotoneNnConfig(),
    MosPlifConfig(mixtures=MIXTURES),
)


def ranks(width: int) -> tuple[int, ...]:
    """Return the head ranks 4, 8, 16 ... up to the width."""
    powers = [LEAST_RANK]
    while powers[-1] * 2 <= width:
        powers.append(powers[-1] * 2)
    return tuple(powers)


def lstm(corpus: CorpusConfig, layer: OutputLayerConfig, rank: int) -> TrialConfig:
    """Return softmax's AWD-LSTM at this study's width, with an untied head W = A B."""
    trial = awd_lstm(corpus, SoftmaxConfig(), seed=SEED)
    widths = {"embedding_width": LSTM_WIDTH, "context_width": LSTM_WIDTH}
    model = trial.model.model_copy(update={**widths, "head_rank": rank})
    return trial.model_copy(update={"output_layer": layer, "model": model})


def trials(corpus: CorpusConfig) -> Iterator[LanguageTrialConfig]:
    """Yield 187 trials."""
    for layer in LAYERS:
        for rank in ranks(LSTM_WIDTH):
            yield lstm(corpus, layer, rank)
    for layer in LAYERS:
        for rank in ranks(TRANSFORMER_WIDTH):
            yield transformer(
                corpus, layer, seed=SEED, width=TRANSFORMER_WIDTH, head="untied", head_rank=rank
            )


def width(config: LanguageTrialConfig) -> int:
    """Return the width d."""
    return config.model.embedding_width


def label(config: LanguageTrialConfig) -> str:
    """Return a name such as "LSTM softcap tanh r=64 seed=1"."""
    kind = "Transformer" if isinstance(config, TransformerTrialConfig) else "LSTM"
    layer = config.output_layer
    form = f" {layer.form}" if isinstance(layer, SoftcapConfig) else ""
    return f"{kind} {layer.name}{form} r={config.model.head_rank} seed={config.seed}"


def quick_trials(trials: Sequence[LanguageTrialConfig]) -> list[LanguageTrialConfig]:
    """Return the trials of seven layers at the six highest ranks.

    At scale quick, lower ranks would shrink to 1, or to the same rank as others.
    """
    return [
        trial
        for trial in trials
        if trial.output_layer in SEVEN
        and (trial.model.head_rank or 0) >= QUICK_SHARE * width(trial)
    ]


def corner(trials: Sequence[LanguageTrialConfig]) -> list[LanguageTrialConfig]:
    """Return plain and mixed heads: LSTMs of full rank, Transformers of enough ranks for a law."""
    return [
        trial
        for trial in trials
        if trial.output_layer.name in ("softmax", "mos")
        and (trial.model.head_rank or 0)
        >= width(trial) * (1 if isinstance(trial, TrialConfig) else SMOKE_SHARE)
    ]


STUDY = Study(
    name="head_rank",
    title="Head rank, and what bends and mixtures add to it",
    question="Does a bent or mixed head of rank r behave like a plain one of a higher rank?",
    source=(
        "Claims about bends and mixtures (Yang et al. 2018; Kanai et al. 2018; AAAI 2021), tested "
        "on heads of a given rank, as Godey and Artzi (2026, arXiv 2603.10145) test plain ones"
    ),
    trials=trials,
    label=label,
    quick=quick_trials,
    corner=corner,
    seeds={"smoke": 2, "quick": 2, "small": 2, "paper": 2},
    corpora=("ptb",),
    measurements=("perplexity@1", "spectrum@1", "kl_rank@1"),
    analyses=(
        PowerLaw(
            x="model.head_rank",
            by="output_layer",
            baseline="softmax",
            panel="kind",
            title="How much head rank a bend or mixture is worth",
            claim=(
                "No printed factor was found to compare with. Godey, de la Clergerie and Sagot "
                "(2024, arXiv 2404.07647) and Godey and Artzi (2026, arXiv 2603.10145) report that "
                "plain heads of lower rank train worse; only their abstracts could be read."
            ),
        ),
        Lines(
            x="model.head_rank",
            by="output_layer",
            metrics=("kl_rank_1e-1", "kl_rank_1e-2", "press_rank"),
            panel="kind",
            title="Ranks of log P by head rank",
            logarithmic_x=True,
            logarithmic_y=("kl_rank_1e-1", "kl_rank_1e-2", "press_rank"),
        ),
    ),
    deviations=(
        "All heads are untied and factored as A B. At r = d the factors do not bound the rank; "
        "they only change training.",
        "All layers have softmax's backbone, although the papers gave mixtures another one. All "
        "layers also have softmax's learning rate, which was not tuned for any head rank.",
        "Scale quick has seven layers, so that its whole command takes less than 25 minutes. "
        "monotone_nn, mos_plif, frozen PLIF and the sigmoid softcap run only at scales small and "
        "paper.",
        f"Mixtures have {MIXTURES} components here and 15 in the papers.",
    ),
)
