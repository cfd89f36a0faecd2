"""Five models over eleven seeds (AAAI 2021, Table 2, SM Table 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.models import FIVE, RANDOM_SEEDS, model_and_seed, trial
from search_spaces.published import by_group, p_values
from search_spaces.study import Comparison, GroupTable, RankOverTraining, Study
from trainables.config import CorpusConfig, LanguageTrialConfig, TrialConfig


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield 55 trials per corpus."""
    for model in FIVE:
        for seed in (None, *RANDOM_SEEDS):
            yield trial(corpus, model, seed=seed)


def corner(trials: Sequence[LanguageTrialConfig]) -> list[LanguageTrialConfig]:
    """Return two models with two seeds."""
    return [
        config
        for config in trials
        if config.seed in RANDOM_SEEDS[:2] and config.output_layer.name in ("softmax", "sigsoftmax")
    ]


STUDY = Study(
    name="seeds",
    title="Output layers over many seeds",
    question=(
        "Do the output layers that raise the rank lower the perplexity by more than the seed "
        "changes it?"
    ),
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), Table 2 and SM "
    "Table 1",
    trials=trials,
    label=model_and_seed,
    corner=corner,
    corpora=("ptb", "wikitext-2"),
    analyses=(
        Comparison(
            baselines=dict.fromkeys(FIVE[1:], "softmax"),
            seeds=RANDOM_SEEDS,
            source="SM Table 1",
            published=p_values("sm_table1_significance"),
        ),
        GroupTable(
            metrics=(
                "parameters",
                "seconds_per_epoch",
                "train_perplexity",
                "valid_perplexity",
                "test_perplexity",
                "press_rank",
            ),
            source="Table 2",
            published=by_group("table2_seeds"),
        ),
        RankOverTraining(),
    ),
    deviations=(
        "The paper does not print its ten random seeds; these are ten others. As in the paper, "
        "the tests exclude the authors' seed and the table of means includes it.",
    ),
)
