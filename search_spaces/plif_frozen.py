"""LMS-PLIF with trained and with frozen slopes (AAAI 2021, Tables 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.models import RANDOM_SEEDS, model_and_seed, trial
from search_spaces.published import PublishedNumber, PublishedTable, by_group, rows
from search_spaces.study import Comparison, GroupTable, Study
from trainables.config import CorpusConfig, LanguageTrialConfig, TrialConfig


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield 20 trials per corpus."""
    for model in ("lms_plif", "lms_plif_frozen"):
        for seed in RANDOM_SEEDS:
            yield trial(corpus, model, seed=seed)


def corner(trials: Sequence[LanguageTrialConfig]) -> list[LanguageTrialConfig]:
    """Return both models with two seeds."""
    return [config for config in trials if config.seed in RANDOM_SEEDS[:2]]


def published() -> PublishedTable:
    """Return Table 3 (frozen slopes) and Table 4's test perplexities (trained slopes)."""
    frozen_groups = by_group("table3_plif_frozen", lambda _: "lms_plif_frozen")
    trained_numbers = {
        row["corpus"]: PublishedNumber(
            value=float(row["lms_plif_test_mean"]), deviation=float(row["lms_plif_test_sd"])
        )
        for row in rows("table4_plif_vs_frozen")
    }
    return {
        corpus: {"lms_plif": {"test_perplexity": trained_numbers[corpus]}, **groups}
        for corpus, groups in frozen_groups.items()
    }


STUDY = Study(
    name="plif_frozen",
    title="LMS-PLIF with untrained slopes",
    question="Is LMS-PLIF better than the same model with random slopes that are never trained?",
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), Tables 3 and 4",
    trials=trials,
    label=model_and_seed,
    corner=corner,
    corpora=("ptb", "wikitext-2"),
    analyses=(
        Comparison(
            baselines={"lms_plif_frozen": "lms_plif"},
            seeds=RANDOM_SEEDS,
            source="Table 4",
            published={
                row["corpus"]: {"lms_plif_frozen": float(row["p_value"])}
                for row in rows("table4_plif_vs_frozen")
            },
        ),
        GroupTable(
            metrics=("train_perplexity", "valid_perplexity", "test_perplexity", "press_rank"),
            source="Tables 3 and 4",
            published=published(),
        ),
    ),
)
