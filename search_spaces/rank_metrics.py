"""Which rank? Press', epsilon-effective, entropy and stable rank of five models (AAAI 2021, Table 6, Fig. 7)."""

from __future__ import annotations

from collections.abc import Iterator

from search_spaces.models import FIVE, model_and_seed, trial
from search_spaces.published import by_group
from search_spaces.study import GroupSpectra, GroupTable, Study
from trainables.config import CorpusConfig, TrialConfig


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """The models of `averaging` that were trained with ET-ASGD: 5 trials a corpus."""
    for model in FIVE:
        yield trial(corpus, model)


STUDY = Study(
    name="rank_metrics",
    title="Four ways to count a rank",
    question="How high is the rank of the log-P matrix if directions without weight do not count?",
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), Table 6, Fig. 7 and SM Figs. 2 to 5",
    trials=trials,
    label=model_and_seed,
    corpora=("ptb", "wikitext-2"),
    analyses=(
        GroupTable(
            metrics=(
                "press_rank",
                "effective_rank_1e-3",
                "effective_rank_1e-4",
                "effective_rank_1e-5",
                "entropy_rank",
                "stable_rank",
            ),
            title="Ranks by model",
            source="Table 6",
            published=by_group("table6_rank_metrics"),
        ),
        GroupSpectra(),
    ),
)
