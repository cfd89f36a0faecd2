from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.analysis import CELLS, Environment, StudySummaryNumbers, flatten, summarise
from orchestrator.report import formats, sentences
from orchestrator.report.questions import Answer, StudyResults, answer
from orchestrator.report.run_facts import run_facts
from orchestrator.report.sections.correlation import comparison, line_finding
from orchestrator.store.records import StudyKey
from search_spaces.study import Study
from tests.support.synthetic_results import KEY, STUDY, fail, make_results

MINUS = formats.MINUS


def make_line(
    value: float | None, low: float | None = None, high: float | None = None, **more: Any
) -> Any:
    metrics = {"x": "press_rank", "y": "test_perplexity"}
    cells = {"over": CELLS, "n": 72, "seeds_least": 1, "seeds_most": 1, "window_low": None}
    pearson = {"pearson": value, "pearson_low": low, "pearson_high": high, "pearson_p": 0.01}
    return SimpleNamespace(**{**metrics, **cells, **pearson, "missing": "", **more})


def make_summary(key: StudyKey = KEY, *, states: tuple[str, ...] = ()) -> StudySummaryNumbers:
    rows, _ = make_results()
    for i, state in enumerate(states):
        rows[i] = fail(rows[i], state=state, cause="why")
    results = flatten(rows)
    return summarise(STUDY, key, results, results.frame())


@cache
def make_answers(key: StudyKey = KEY) -> Sequence[Answer]:
    frame = flatten(make_results(columns=200)[0]).frame()
    return answer(StudyResults(study=STUDY, key=key, frame=frame, spectra={}, epochs={}))


def certainty(
    key: StudyKey = KEY, environment: Environment | None = None, study: Study = STUDY
) -> list[str]:
    return list(sentences.certainty(study, make_summary(key), make_answers(key), environment or {}))


def test_significant_interval_gives_direction() -> None:
    text = line_finding("correlation", make_line(0.5, 0.3, 0.66)).sentence
    assert "Pearson r = +0.50, 95% interval [+0.30, +0.66], p = 0.010" in text
    assert text.startswith("A higher Press rank went with a higher (worse) test perplexity")
    assert "25% of the variance" in text
    unsettled = line_finding("correlation", make_line(0.1, -0.13, 0.32)).sentence
    assert unsettled.startswith("No correlation") and "went with" not in unsettled
    missing = line_finding(
        "correlation", make_line(None, missing="press_rank had the same value at all 72 points")
    ).sentence
    assert "cannot be correlated" in missing and "Press rank had the same value" in missing


def test_other_cells_have_no_published_value() -> None:
    findings = make_answers()[0].section.findings
    published = [one.sentence for one in findings if one.template == "published_correlation"]
    assert len(published) == 2
    assert not any("+0.24" in text or "+0.21" in text for text in published)


@pytest.mark.parametrize(
    ("published", "words"),
    [(0.48, "inside our interval"), (0.1, "below our interval"), (0.9, "above our interval")],
)
def test_published_value_is_next_to_interval(published: float, words: str) -> None:
    text = comparison(make_line(0.4, 0.2, 0.6, published_ptb=published), "ptb").sentence
    assert words in text and "(PTB)" in text
    assert "significant" not in text
    assert ("does not show that they are equal" in text) == (words == "inside our interval")


def test_quick_run_is_distinguished_from_the_papers() -> None:
    texts = " ".join(certainty())
    assert "neither confirm nor contradict the published ones" in texts
    assert "The corpus is pydocs; the paper used PTB and WikiText-2." in texts
    at_paper_scale = certainty(replace(KEY, corpus="ptb", scale="paper"))
    assert not any("neither confirm" in text or "the paper used" in text for text in at_paper_scale)


def test_own_study_has_no_paper() -> None:
    study = replace(STUDY, source="")
    texts = " ".join(certainty(replace(KEY, overrides='{"model":"transformer"}'), study=study))
    assert "paper" not in texts and "source" not in texts and "--model transformer" in texts
    arrays = " ".join(certainty(study=replace(study, reads_text=False)))
    assert "paper" not in arrays


def test_left_out_settings_are_counted() -> None:
    rows, _ = make_results()
    results = flatten(rows[:4])
    summary = summarise(STUDY, KEY, results, results.frame())
    texts = sentences.certainty(STUDY, summary, make_answers(), {})
    assert any("4 of 72 settings" in text for text in texts)
    assert run_facts(STUDY, summary, results)["settings"] == "4 of 72 settings"
    assert not any(" settings." in text for text in certainty())


def test_changed_settings_and_single_seeds_are_named() -> None:
    computing, once = replace(STUDY, trains=False), "Each setting has one seed"
    texts = " ".join(certainty(replace(KEY, overrides='{"settings":{"training.epochs":[2]}}')))
    assert "--set training.epochs=2." in texts and once in texts
    assert once not in " ".join(certainty(study=computing))
    assert run_facts(STUDY, make_summary(), flatten([]))["seeds"] == "1111"
    assert "seeds" not in run_facts(computing, make_summary(), flatten([]))


def test_mixed_versions_are_named() -> None:
    versions = {
        "code": {"abc": 72},
        "torch": {"2.13.0": 72},
        "hardware": {"one CPU": 72},
        "host": {"a": 60, "b": 12},
    }
    assert not any("computed versions" in text for text in certainty(KEY, versions))
    for name in ("code", "torch", "hardware"):
        different = versions | {name: {"new": 60, "": 12}}
        texts = [text for text in certainty(KEY, different) if "computed in the same way" in text]
        assert (
            len(texts) == 1
            and "new (60), not recorded (12)" in texts[0]
            and "abc (" not in texts[0]
        )


def test_coverage_counts_every_state() -> None:
    assert sentences.coverage(make_summary()) == "All 72 trials are done."
    text = sentences.coverage(make_summary(states=("failed", "failed", "diverged", "planned")))
    assert text.startswith("68 of 72 trials are done (1 planned, 1 diverged, 2 failed)")
    assert "uniform" not in text


def test_diverged_models_are_named() -> None:
    """A uniform distribution over V words has perplexity V."""
    words = 200
    uniform = math.exp(-sum(math.log(1 / words) for _ in range(words)) / words)
    rows = make_results(columns=words)[0][:4]
    for row, factor in zip(rows, (1.01, 1e18, 0.99, 1e18), strict=True):
        row["metrics"]["test_perplexity"] = factor * uniform
    rows[3]["state"] = "pruned"
    results = flatten(rows)
    coverage_sentence = sentences.coverage(summarise(STUDY, KEY, results, results.frame()))
    assert coverage_sentence.endswith(f"but counted: “{rows[0]['name']}”, “{rows[1]['name']}”.")
