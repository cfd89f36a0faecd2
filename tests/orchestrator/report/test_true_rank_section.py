from __future__ import annotations

from typing import Any

import pytest

from orchestrator.analysis import TrueRankNumbers, flatten, true_rank_numbers
from orchestrator.report.sections.true_rank import true_rank_section
from orchestrator.store.records import StudyKey
from search_spaces.rank_metrics import METRICS, STUDY, trials
from search_spaces.study import TrueRank
from tests.support.synthetic_results import trial_row
from trainables.config import CorpusConfig

KEY = StudyKey(study="rank_metrics", scale="quick", corpus="markov-20")
REQUEST = TrueRank(metrics=METRICS)


def truth(press64: int, press32: int, **changes: Any) -> dict[str, Any]:
    language: dict[str, Any] = {"language_rank": 20, "true_rank": 20, "different_contexts": 900}
    language |= {"entropy_perplexity": 101.0, "shares_perplexity": 140.0}
    presses = {"press_rank": press32, "press_rank_float64": press64, "press_rank_float32": press32}
    return {**ranks(press32, 20, 19.6), "test_perplexity": 100.0, **language, **presses, **changes}


def ranks(press: int, effective: int, entropy: float) -> dict[str, Any]:
    effectives = {f"effective_rank_1e-{i}": effective for i in (3, 4, 5)}
    return {
        "press_rank": press,
        **effectives,
        "entropy_rank": entropy,
        "stable_rank": 1.1,
        "rank_rows": 2000,
    }


METRICS_BY_NAME: dict[str, dict[str, Any]] = {
    "truth float64 seed=1": truth(20, 19),
    "truth float32 seed=1": truth(900, 20),
    "truth noise seed=1": truth(1000, 21),
    "softmax seed=141": {**ranks(26, 3, 1.5), "test_perplexity": 150.0},
    "gss seed=141": {**ranks(20, 3, 1.5), "test_perplexity": 125.0},
    "mos seed=28": {**ranks(7, 3, 1.5), "test_perplexity": 110.0, "rank_rows": 500},
}


def rows(metrics: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    configs = {
        STUDY.label(config): config
        for config in trials(CorpusConfig(name="markov-20", sha256="0" * 64))
    }
    return [
        trial_row(
            name, "done" if name in metrics else "planned", config=config.model_dump(mode="json")
        )
        | {"trial_id": config.trial_id, "metrics": metrics.get(name, {})}
        for name, config in configs.items()
    ]


def numbers(metrics: dict[str, dict[str, Any]]) -> TrueRankNumbers:
    answer = true_rank_numbers(flatten(rows(metrics)).frame(), REQUEST)
    assert answer is not None
    return answer


def test_models_on_other_rows_are_excluded() -> None:
    results = numbers(METRICS_BY_NAME)
    assert results.true_rank == 20 and results.exact["test_perplexity"] == 100.0
    measured = results.matrices[results.matrices["trials"] > 0]
    assert list(measured["variant"]) == ["float64", "float32", "noise", "learned", "learned"]
    learned = measured[measured["variant"] == "learned"]
    assert list(learned["matrix"]) == ["softmax", "gss"], "mos was measured on other rows"
    assert list(learned["over_floor"]) == pytest.approx([1.5, 1.25])


def test_correct_metrics_are_named() -> None:
    findings = true_rank_section(numbers(METRICS_BY_NAME)).sentences
    exact, rounded, noisy = findings[1:4]
    assert "Press rank (float64), effective" in exact and "find the true rank, 20" in exact
    assert "Other metrics: Press rank (float32) 19 and stable rank 1.1" in exact
    assert "Other metrics: Press rank (float64) 900 and stable rank" in rounded
    assert "Press rank (float64) 1,000, Press rank (float32) 21 and stable rank" in noisy
    press = next(text for text in findings if text.startswith("Press rank of the learned"))
    assert "gss 20, softmax 26. gss has" in press
    assert "gss 1.25, softmax 1.5" in findings[-1]
