"""Press', epsilon-effective, entropy and stable rank of models (AAAI 2021, Table 6, Fig. 7).

A generated language adds the ranks of the true log-P matrix, as the paper's reviewers asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.models import FIVE, SIX, model_and_seed, output_layer, trial
from search_spaces.published import by_group
from search_spaces.scales import smoke_corner
from search_spaces.study import GroupSpectra, GroupTable, RankOverTraining, Study, TrueRank
from trainables.config import (
    AnyConfig,
    CorpusConfig,
    LanguageTrialConfig,
    TrueRankConfig,
    markov_rank,
)

METRICS = (
    "press_rank",
    "effective_rank_1e-3",
    "effective_rank_1e-4",
    "effective_rank_1e-5",
    "entropy_rank",
    "stable_rank",
)
SEED = 1
"""Seed of the noise on the true matrix."""


def trials(corpus: CorpusConfig) -> Iterator[AnyConfig]:
    """Yield five ET-ASGD models; for a generated language, the true matrix and six layers."""
    if markov_rank(corpus.name) is not None:
        return _truth_and_models(corpus)
    return (trial(corpus, model) for model in FIVE)


def _truth_and_models(corpus: CorpusConfig) -> Iterator[AnyConfig]:
    yield TrueRankConfig(seed=SEED, corpus=corpus, variant="float64")
    yield TrueRankConfig(seed=SEED, corpus=corpus, variant="float32")
    yield TrueRankConfig(seed=SEED, corpus=corpus, variant="noise")
    model = trial(corpus, "softmax")
    for name in SIX:
        yield model.model_copy(update={"output_layer": output_layer(name, corpus.name)})


def label(config: AnyConfig) -> str:
    """Return a name such as "truth float32 seed=1"."""
    if isinstance(config, TrueRankConfig):
        return f"truth {config.variant} seed={config.seed}"
    assert isinstance(config, LanguageTrialConfig)
    return model_and_seed(config)


def corner(configs: Sequence[AnyConfig]) -> list[AnyConfig]:
    """Return the trials of the true matrix, and four models."""
    truth = [config for config in configs if isinstance(config, TrueRankConfig)]
    return truth + smoke_corner(
        [config for config in configs if not isinstance(config, TrueRankConfig)]
    )


STUDY = Study(
    name="rank_metrics",
    title="Four ways to count a rank",
    question="How high is the rank of the log-P matrix if negligible directions do not count?",
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), Table 6, Fig. 7 "
    "and SM Figs. 2 to 5",
    trials=trials,
    label=label,
    corner=corner,
    corpora=("ptb", "wikitext-2"),
    analyses=(
        TrueRank(metrics=METRICS),
        GroupTable(
            metrics=METRICS,
            title="Ranks by model",
            source="Table 6",
            published=by_group("table6_rank_metrics"),
        ),
        RankOverTraining(),
        GroupSpectra(),
    ),
    deviations=(
        "On a generated language (markov, markov-R), which the paper does not have, the true log-P "
        "matrix is measured too. The true matrix's singular values come from a QR decomposition in "
        "float64, the models' from the Gram matrix.",
        "On a generated language, all output layers have the backbone that the paper gives "
        "softmax. At scale quick they train for 30 epochs, because in the first epochs a model "
        "learns only word frequencies.",
    ),
)
