"""Ranks and loss of 108 Transformers, with the settings' effect removed (Kulkarni et al. 2026)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from search_spaces.study import Lines, PartialCorrelations, Study
from search_spaces.transformer import BATCH_SIZE, ladder, recipe_epochs, transformer
from trainables.config import CorpusConfig, SoftmaxConfig, TransformerTrialConfig

WIDTH, SEED = 256, 1
BATCH_FACTORS = (0.5, 1.0, 2.0)
WEIGHT_DECAYS = (0.01, 0.1, 0.5)
RATE_FACTORS = (0.3, 1.0, 3.0)
TOKEN_FACTORS = (0.25, 0.5, 1.0, 2.0)


def trials(corpus: CorpusConfig) -> Iterator[TransformerTrialConfig]:
    """Yield 108 trials."""
    base = transformer(corpus, SoftmaxConfig(), seed=SEED, width=WIDTH, head="untied")
    for batch, decay, rate, tokens in product(
        BATCH_FACTORS, WEIGHT_DECAYS, RATE_FACTORS, TOKEN_FACTORS
    ):
        training = {
            "batch_size": round(batch * BATCH_SIZE),
            "weight_decay": decay,
            "learning_rate": rate * ladder(WIDTH).learning_rate,
            "epochs": round(tokens * recipe_epochs(corpus)),
        }
        yield base.model_copy(update={"training": base.training.model_copy(update=training)})


def label(config: TransformerTrialConfig) -> str:
    """Return a trial's name: its settings and seed."""
    training = config.training
    return (
        f"B={training.batch_size} wd={training.weight_decay:g} lr={training.learning_rate:.2g} "
        f"epochs={training.epochs} seed={config.seed}"
    )


STUDY = Study(
    name="confounders",
    title="Ranks and loss without the effects of training settings",
    question=(
        "Does any rank correlate with the loss once the effects of batch size, weight decay, "
        "learning rate and tokens are removed?"
    ),
    source="Kulkarni et al. (2026), Disentangling Geometry, Performance, and Training in Language "
    "Models, arXiv 2602.20433",
    trials=trials,
    label=label,
    corpora=("ptb", "wikitext-2"),
    measurements=("perplexity@1", "spectrum@1", "kl_rank@1", "gradient_bottleneck@1"),
    analyses=(
        PartialCorrelations(
            metrics=(
                "kl_rank_1e-1",
                "kl_rank_1e-2",
                "kl_rank_1e-3",
                "press_rank",
                "effective_rank_1e-3",
                "effective_rank_1e-4",
                "effective_rank_1e-5",
                "entropy_rank",
                "stable_rank",
                "gradient_lost_share",
            ),
            settings=(
                "training.batch_size",
                "training.weight_decay",
                "training.learning_rate",
                "training.epochs",
            ),
            claim=(
                "Kulkarni et al. (2026, arXiv 2602.20433), on 108 OLMo-style models: geometric "
                "metrics of the unembedding matrix and the last layer "
                "\N{LEFT DOUBLE QUOTATION MARK}are largely aligned, but none can reliably predict "
                "downstream performance\N{RIGHT DOUBLE QUOTATION MARK} (abstract). Their "
                "coefficients could not be read, so none are shown."
            ),
        ),
        Lines(
            x="training.learning_rate",
            by="output_layer.name",
            metrics=("gradient_norm_lost", "gradient_norm_lost_null"),
            title="Gradient norm that the head loses, and would lose by chance",
            logarithmic_x=True,
            note=(
                "By chance: the mean leverage of V rows in d dimensions is d/V, regardless of what "
                "was learned, so a random direction loses \N{SQUARE ROOT}(1 \N{MINUS SIGN} d/V) of "
                "its norm, in the root mean square."
            ),
        ),
    ),
    deviations=(
        "The paper also varies the model's size and trains on far more text. Here all models have "
        "one size and pass over a small text several times.",
        "The paper's metrics describe weights and representations. The metrics here describe log "
        "P, from which the loss is computed.",
        "The settings' effects are removed by least squares in four ways, all shown on the page. "
        "The paper's own way could not be read.",
        "One seed per setting: a seed's effect remains in the residuals of both rank and loss.",
    ),
)
