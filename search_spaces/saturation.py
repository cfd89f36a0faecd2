"""Loss and ranks of small Transformers by width (Godey, de la Clergerie and Sagot 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.study import Extrapolation, Lines, LossByRank, RankOverTraining, Study
from search_spaces.transformer import transformer
from trainables.config import CorpusConfig, SoftmaxConfig, TransformerTrialConfig

WIDTHS = (64, 96, 128, 192, 256, 320, 384, 512, 640, 768)
SMOKE_WIDTHS = (64, 128, 192, 256, 384)
SEED, SEEDS = 1, 3
EPOCH_RANK_CONTEXTS = 512
CLAIM = (
    "Godey, de la Clergerie and Sagot (2024, arXiv 2404.07647) find that "
    "\N{LEFT DOUBLE QUOTATION MARK}models based on less than 1000 hidden dimensions tend to adopt "
    "degenerate latent representations in late pretraining, which leads to reduced evaluation "
    "performance\N{RIGHT DOUBLE QUOTATION MARK} (abstract). The distance of its small models from "
    "the law of larger ones is missing here: only the paper's abstract could be read. Kulkarni et "
    "al. (2026, arXiv 2602.20433) find \N{LEFT DOUBLE QUOTATION MARK}that low effective rank does "
    "not cause late-stage performance degradation in small models, but instead co-occurs with "
    "it\N{RIGHT DOUBLE QUOTATION MARK}."
)

LOST = (
    "Godey and Artzi (2026, arXiv 2603.10145) write that \N{LEFT DOUBLE QUOTATION MARK}95-99% of "
    "the gradient norm is suppressed by the output layer\N{RIGHT DOUBLE QUOTATION MARK} "
    "(abstract). The paper itself could not be read, so its widths and vocabularies are missing "
    "here. The metric gradient_norm_lost is this share of the norm, pooled over contexts. The "
    "metric next to it is the share that is lost by chance: the mean leverage of V rows in d "
    "dimensions is d/V, regardless of what was learned, so a random direction loses "
    "\N{SQUARE ROOT}(1 \N{MINUS SIGN} d/V) of its norm, in the root mean square."
)


def trials(corpus: CorpusConfig) -> Iterator[TransformerTrialConfig]:
    """Yield Transformers of ten sizes."""
    for width in WIDTHS:
        trial = transformer(corpus, SoftmaxConfig(), seed=SEED, width=width, head="untied")
        yield trial.with_values({"evaluation.epoch_rank_contexts": EPOCH_RANK_CONTEXTS})


def label(config: TransformerTrialConfig) -> str:
    """Return a name: "d=256 seed=1"."""
    return f"d={config.model.width} seed={config.seed}"


def corner(trials: Sequence[TransformerTrialConfig]) -> list[TransformerTrialConfig]:
    """Return trials of five widths: four to fit a law, and one to compare with it."""
    return [trial for trial in trials if trial.model.width in SMOKE_WIDTHS]


STUDY = Study(
    name="saturation",
    title="Deviation of small Transformers from the law of larger ones",
    question="Does the loss of narrow models deviate from the law fitted to wider ones?",
    source="Godey, de la Clergerie and Sagot (2024), Why do small language models underperform? "
    "Studying Language Model Saturation via the Softmax Bottleneck, arXiv 2404.07647",
    trials=trials,
    label=label,
    corner=corner,
    seeds={"quick": SEEDS, "small": SEEDS, "paper": SEEDS},
    corpora=("ptb", "wikitext-2"),
    measurements=(
        "perplexity@1",
        "spectrum@1",
        "kl_rank@1",
        "gradient_bottleneck@1",
        "spectrum_by_epoch@1",
    ),
    analyses=(
        Extrapolation(
            x="model.width", claim=CLAIM, title="Loss compared with the law of wider models"
        ),
        Extrapolation(x="parameters", title="Loss compared with the law of larger models"),
        Lines(
            x="model.width",
            by="output_layer.name",
            metrics=("kl_rank_1e-1", "kl_rank_1e-2", "press_rank", "entropy_rank"),
            title="Ranks of log P by width",
            logarithmic_x=True,
        ),
        Lines(
            x="model.width",
            by="output_layer.name",
            metrics=(
                "gradient_norm_lost",
                "gradient_norm_lost_null",
                "gradient_lost_share",
                "gradient_angle_degrees",
            ),
            title="Part of the gradient that the head does not pass on",
            logarithmic_x=True,
            note=LOST,
        ),
        LossByRank(),
        RankOverTraining(ranks=("kl_rank", "entropy_rank")),
    ),
    deviations=(
        "The paper studies late training of Pythia models. Here models pass over a small text "
        "several times, so the question is at which size they deviate from the law, not when in "
        "training.",
        "All sizes see equally many tokens, so the law depends on size alone. Depth, heads and "
        "learning rate follow the width by the ladder; no size was tuned.",
        "Ranks are of log P, as everywhere in this project, not of the head's weights. The command "
        "rank measures the head's weights of open checkpoints, such as Pythia's.",
    ),
)
