"""The sentences claim what the numbers allow, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from orchestrator.analysis.correlations import ComparedCorrelation
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.statistics.estimates import Interval, Statistic
from orchestrator.analysis.summary import Environment, StudySummaryNumbers, summarise
from orchestrator.report import formats, sentences
from orchestrator.report.questions import Answer, StudyResults, answer
from orchestrator.report.run_facts import run_facts
from orchestrator.report.sections.correlation import comparison_sentence, correlation_sentence
from orchestrator.store.records import StudyKey
from search_spaces.study import Study
from tests.support.synthetic_results import KEY, STUDY, fail, make_results

MINUS = formats.MINUS


def make_line(value: float | None, *, low: float = 0.0, high: float = 0.0, missing: str = "") -> ComparedCorrelation:
    interval = Interval(low=low, high=high) if low < high else None
    pearson = Statistic(value=value, interval=interval, p_value=0.01 if interval else None, missing=missing)
    return ComparedCorrelation(
        x="press_rank", y="test_perplexity", window=None, n=72, pearson=pearson, spearman=pearson, published={}
    )


def make_summary(key: StudyKey = KEY, *, states: tuple[str, ...] = ()) -> StudySummaryNumbers:
    rows, _ = make_results(columns=200)
    for i, state in enumerate(states):
        rows[i] = fail(rows[i], state=state, cause="why")
    results = flatten(rows)
    return summarise(STUDY, key, results, results.frame())


def make_answers(key: StudyKey = KEY) -> Sequence[Answer]:
    frame = flatten(make_results(columns=200)[0]).frame()
    return answer(StudyResults(study=STUDY, key=key, frame=frame, spectra={}, epochs={}))


def cautions(key: StudyKey = KEY, environment: Environment | None = None, study: Study = STUDY) -> list[str]:
    return sentences.cautions(study, make_summary(key), make_answers(key), environment or {})


def test_an_interval_without_zero_gives_a_direction_and_the_variance() -> None:
    text = correlation_sentence(make_line(0.5, low=0.3, high=0.66))
    assert "Pearson r = +0.50, 95% interval [+0.30, +0.66], p = 0.010" in text
    assert "a higher Press rank went with a higher test perplexity" in text
    assert "25% of the variance" in text
    unsettled = correlation_sentence(make_line(0.1, low=-0.13, high=0.32))
    assert "includes zero" in unsettled and "went with" not in unsettled
    missing = correlation_sentence(make_line(None, missing="press_rank had the same value at all 72 points"))
    assert missing.endswith("there is no correlation to report: Press rank had the same value at all 72 points.")


def test_only_the_published_values_of_this_corpus_and_these_cells_are_held_against_ours() -> None:
    on_ptb = make_answers(replace(KEY, corpus="ptb", scale="paper"))[0].section.remarks
    assert len(on_ptb) == 2 and all("PTB" in text for text in on_ptb)
    better_half = make_answers()[0].section.remarks
    assert len(better_half) == 2 and not any("+0.24" in text or "+0.21" in text for text in better_half)


@pytest.mark.parametrize(
    ("published", "words"), [(0.48, "inside our interval"), (0.1, "below our interval"), (0.9, "above our interval")]
)
def test_a_published_value_is_placed_beside_our_interval(published: float, words: str) -> None:
    line = replace(make_line(0.4, low=0.2, high=0.6), published={"ptb": Statistic(value=published)})
    text = comparison_sentence(line, "ptb")
    assert words in text and "(PTB)" in text
    assert "significant" not in text
    assert ("does not show that the two are equal" in text) == (words == "inside our interval")


def test_a_quick_run_is_never_taken_for_the_papers() -> None:
    texts = " ".join(cautions())
    assert "neither confirm nor contradict the published ones" in texts
    assert "The corpus is pydocs; the paper used PTB and WikiText-2." in texts
    at_paper_scale = cautions(replace(KEY, corpus="ptb", scale="paper"))
    assert not any("neither confirm" in text or "the paper used" in text for text in at_paper_scale)


def test_changed_settings_are_named_and_single_seeds_where_a_study_trains() -> None:
    computing, once = replace(STUDY, trains=False), "Each setting was trained once"
    texts = " ".join(cautions(replace(KEY, overrides='{"training.epochs":2}')))
    assert "command line: training.epochs=2." in texts and once in texts
    assert once not in " ".join(cautions(study=computing))
    assert run_facts(STUDY, make_summary(), flatten([]))["seeds"] == "1111"
    assert "seeds" not in run_facts(computing, make_summary(), flatten([]))


def test_trials_computed_with_different_versions_are_named() -> None:
    alike = {"code": {"abc": 72}, "torch": {"2.13.0": 72}, "hardware": {"one CPU": 72}, "host": {"a": 60, "b": 12}}
    assert not any("computed alike" in text for text in cautions(KEY, alike))
    for name in ("code", "torch", "hardware"):
        different = alike | {name: {"new": 60, "": 12}}
        texts = [text for text in cautions(KEY, different) if "computed alike" in text]
        assert len(texts) == 1 and "new (60), not recorded (12)" in texts[0] and "abc (" not in texts[0]


def test_coverage_counts_every_state() -> None:
    assert sentences.coverage(make_summary()) == "All 72 trials are done."
    text = sentences.coverage(make_summary(states=("failed", "failed", "diverged", "planned")))
    assert text.startswith("68 of 72 trials are done (1 planned, 1 diverged, 2 failed)")
