"""Transformer trials at paper scale: a recipe, and the ladder of sizes by one rule.

Nothing was published for this model on these corpora: the recipe is ours, put together from what is
printed of others. At width 768 it has the shape of GPT-2 small (Radford et al. 2019) and the
learning rate of GPT-3 Small, 0.0006 (Brown et al. 2020, Table 2.1); AdamW with beta2 = 0.95, weight
decay 0.1, clipping at 1, a linear warm-up and a cosine down to a tenth are of GPT-3, too (Appendix
B). That the learning rate of Adam goes as 1 / width is the rule for hidden matrices of Yang et al.
2021 (Tensor Programs V); it was tried at scale quick: of rates a factor of 2 apart, the best at
widths from 16 to 192 is that of the rule or its neighbour. Dropout and epochs are chosen for texts
of one or two million tokens, over which a model of 25 million parameters passes many times; they
were not tuned."""

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
"""Of the recipe."""
GPT_WIDTH, GPT_LEARNING_RATE = 768, 0.0006
HEAD_WIDTH = 64
LAYERS = (2, 12)
"""At least and at most."""
SEED = 1
WINDOW = 256
DROPOUT = 0.3
BATCH_SIZE = 32
EPOCHS = {"ptb": 60, "wikitext-2": 40}
"""About 55 and 85 million tokens; any other corpus gets Penn Treebank's."""
WARM_UP_TOKENS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A size of the ladder: what follows from the width."""

    width: int
    layers: int
    heads: int
    learning_rate: float


def ladder(width: int) -> Rung:
    """The size of that width: a layer and a head for every 64, two at least and 12 layers at most;
    learning rate as 1 / width.

    Heads are as wide as each other and their width is even, so that a width which 64 does not
    divide may get fewer. Raises ValueError for a width that is odd or less than 2."""
    if width < 2 or width % 2:
        raise ValueError(
            f"the width of a Transformer is an even number, at least 2; got {width}: choose another"
        )
    least, most = LAYERS
    units = max(least, round(width / HEAD_WIDTH))
    return Rung(
        width=width,
        layers=min(units, most),
        heads=next(heads for heads in range(units, 0, -1) if width % (2 * heads) == 0),
        learning_rate=GPT_LEARNING_RATE * GPT_WIDTH / width,
    )


def recipe_epochs(corpus: CorpusConfig) -> int:
    """Passes over the train text at paper scale."""
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
    """One trial of any output layer at paper scale; layers, heads and learning rate follow from the
    width.

    `head_rank` is for an untied head. Ranks are over as many contexts as those of the AWD-LSTM's
    trials."""
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
