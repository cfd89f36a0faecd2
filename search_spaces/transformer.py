"""Transformer trials at paper scale: a recipe, and a ladder of sizes.

No values are published for this model on these corpora. The recipe combines published parts. Width
768 has the shape of GPT-2 small (Radford et al. 2019) and the learning rate of GPT-3 Small, 0.0006
(Brown et al. 2020, Table 2.1). AdamW with beta2 = 0.95, weight decay 0.1, clipping at 1, linear
warm-up and cosine decay to a tenth are GPT-3's (Appendix B).

The learning rate is proportional to 1 / width, the rule for hidden matrices of Yang et al. 2021
(Tensor Programs V). It was tested at scale quick for widths 16 to 192: the best rate was within a
factor of 2 of the rule's. Dropout and epochs suit many passes over a small text; they were not
tuned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from search_spaces.awd_lstm import WIKITEXT_2_RANK_CONTEXTS
from trainables.config import (
    CorpusConfig,
    EvaluationConfig,
    OutputLayerConfig,
    TransformerConfig,
    TransformerTrainingConfig,
    TransformerTrialConfig,
)

WIDTH = 512
GPT_WIDTH, GPT_LEARNING_RATE = 768, 0.0006
HEAD_WIDTH = 64
LAYERS = (2, 12)
SEED = 1
WINDOW = 256
DROPOUT = 0.3
BATCH_SIZE = 32
EPOCHS = {"ptb": 60, "wikitext-2": 40}
"""Epochs by corpus: about 55 and 85 million tokens. Other corpora get Penn Treebank's."""
WARM_UP_TOKENS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Rung:
    """Size and learning rate of a Transformer, one step of the ladder."""

    width: int
    layers: int
    heads: int
    learning_rate: float


def ladder(width: int) -> Rung:
    """Return the size for a width: per 64 units, a layer (2 to 12) and a head (at least two).

    Heads have equal, even widths, so there may be fewer if 64 does not divide the width. Raises
    ValueError if the width is odd or less than 2.
    """
    if width < 2 or width % 2:
        raise ValueError(f"a Transformer's width must be an even number of at least 2; got {width}")
    minimum, maximum = LAYERS
    units = max(minimum, round(width / HEAD_WIDTH))
    return Rung(
        width=width,
        layers=min(units, maximum),
        heads=next(heads for heads in range(units, 0, -1) if width % (2 * heads) == 0),
        learning_rate=GPT_LEARNING_RATE * GPT_WIDTH / width,
    )


def recipe_epochs(corpus: CorpusConfig) -> int:
    """Return the number of passes over the train text."""
    return EPOCHS.get(corpus.name, EPOCHS["ptb"])


def transformer(
    corpus: CorpusConfig,
    output_layer: OutputLayerConfig,
    *,
    seed: int = SEED,
    width: int = WIDTH,
    head: Literal["tied", "untied"] = "tied",
    head_rank: int | None = None,
) -> TransformerTrialConfig:
    """Return a trial at paper scale; `head_rank` needs an untied head."""
    rung = ladder(width)
    return TransformerTrialConfig(
        seed=seed,
        corpus=corpus,
        model=TransformerConfig(
            width=width,
            layers=rung.layers,
            heads=rung.heads,
            dropout=DROPOUT,
            head=head,
            head_rank=head_rank,
        ),
        output_layer=output_layer,
        training=TransformerTrainingConfig(
            batch_size=BATCH_SIZE,
            window=WINDOW,
            learning_rate=rung.learning_rate,
            warm_up_tokens=WARM_UP_TOKENS,
            epochs=recipe_epochs(corpus),
        ),
        evaluation=EvaluationConfig(
            window=WINDOW,
            rank_contexts=WIKITEXT_2_RANK_CONTEXTS if corpus.name == "wikitext-2" else None,
        ),
    )
