"""The sentences claim what the numbers allow, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from orchestrator.analysis.correlations import ComparedCorrelation, PublishedValue, Window
from orchestrator.analysis.environments import Environment
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.statistics.correlation import Coefficient, Interval
from orchestrator.analysis.summary import StudySummaryNumbers, summarise
from orchestrator.report import formats, sentences
from orchestrator.report.page import Page, compose
from orchestrator.report.questions import Answer, StudyResults, answer
from orchestrator.report.sections.correlation import comparison_sentence, correlation_sentence
from orchestrator.store.records import StudyKey
from search_spaces.study import Study
from tests.support.synthetic_results import KEY, STUDY, fail, make_results

MINUS = formats.MINUS


def make_line(
    value: float | None,
    *,
    low: float = 0.0,
    high: float = 0.0,
    missing: str = "",
    window: Window | None = None,
    published: tuple[PublishedValue, ...] = (),
) -> ComparedCorrelation:
    interval = Interval(low=low, high=high) if low < high else None
    found = Coefficient(n=72, value=value, interval=interval, p_value=0.01 if interval else None, missing=missing)
    return ComparedCorrelation(
        x="press_rank", y="test_perplexity", window=window, pearson=found, spearman=found, published=published
    )


def make_summary(key: StudyKey = KEY, *, states: tuple[str, ...] = ()) -> StudySummaryNumbers:
    rows, _ = make_results(columns=200)
    for i, state in enumerate(states):
        rows[i] = fail(rows[i], state=state, cause="why")
    results = flatten(rows)
    return summarise(STUDY, key, results, results.frame())


def make_answers(key: StudyKey = KEY) -> Sequence[Answer]:
    frame = flatten(make_results(columns=200)[0]).frame()
    return answer(StudyResults(study=STUDY, key=key, frame=frame, spectra={}))


def cautions(key: StudyKey = KEY, environment: Environment | None = None) -> list[str]:
    return sentences.cautions(STUDY, make_summary(key), make_answers(key), environment or {})


def test_an_interval_without_zero_gives_a_direction_and_the_variance() -> None:
    text = correlation_sentence(make_line(0.5, low=0.3, high=0.66))
    assert "Pearson r = +0.50, 95% interval [+0.30, +0.66], p = 0.010" in text
    assert "a higher Press rank went with a higher test perplexity" in text
    assert "25% of the variance" in text


def test_an_interval_with_zero_settles_nothing() -> None:
    text = correlation_sentence(make_line(0.1, low=-0.13, high=0.32))
    assert "includes zero" in text and "went with" not in text


def test_what_is_missing_is_said_in_words() -> None:
    text = correlation_sentence(make_line(None, missing="press_rank had the same value in all 72 trials"))
    assert text.endswith("there is no correlation to report: Press rank had the same value in all 72 trials.")


@pytest.mark.parametrize(
    ("published", "words"), [(0.48, "inside our interval"), (0.1, "below our interval"), (0.9, "above our interval")]
)
def test_a_published_value_is_placed_beside_our_interval(published: float, words: str) -> None:
    value = PublishedValue(corpus="ptb", value=published, interval=None)
    text = comparison_sentence(make_line(0.4, low=0.2, high=0.6), value)
    assert words in text and "(PTB)" in text
    assert "significant" not in text
    assert ("does not show that the two are equal" in text) == (words == "inside our interval")


def test_only_the_own_corpus_is_compared_where_the_paper_used_it() -> None:
    on_ptb = make_answers(replace(KEY, corpus="ptb", scale="paper"))[0].section.remarks
    assert len(on_ptb) == 2 and all("PTB" in text for text in on_ptb)


def test_the_better_half_is_not_held_against_the_published_window() -> None:
    texts = make_answers()[0].section.remarks
    assert len(texts) == 2
    assert not any("+0.24" in text or "+0.21" in text for text in texts)


def test_a_quick_run_is_never_taken_for_the_papers() -> None:
    texts = " ".join(cautions())
    assert "neither confirm nor contradict the published ones" in texts
    assert "The corpus is pydocs; the paper used PTB and WikiText-2." in texts
    at_paper_scale = cautions(replace(KEY, corpus="ptb", scale="paper"))
    assert not any("neither confirm" in text or "the paper used" in text for text in at_paper_scale)


def test_changed_settings_and_single_seeds_are_named() -> None:
    texts = cautions(replace(KEY, overrides='{"training.epochs":2}'))
    assert any('{"training.epochs":2}' in text for text in texts)
    assert any("Each setting was trained once" in text for text in texts)


def test_a_study_that_trains_nothing_says_nothing_of_training_and_of_one_seed() -> None:
    def page(study: Study) -> Page:
        rows, _ = make_results(columns=200)
        results = flatten(rows)
        summary = summarise(study, KEY, results, results.frame())
        return compose(
            study,
            summary,
            results,
            (),
            parts=(),
            environment={},
            paper_command=None,
            trials_file="trials.csv",
        )

    trained, computed = page(STUDY), page(replace(STUDY, trains=False))
    assert any("trained once" in text for text in trained.cautions) and dict(trained.run)["seeds"] == "1111"
    assert not any("trained once" in text for text in computed.cautions) and "seeds" not in dict(computed.run)


def test_trials_computed_with_different_versions_are_named() -> None:
    alike = {"code": {"abc": 72}, "torch": {"2.13.0": 72}, "hardware": {"one CPU": 72}, "host": {"a": 60, "b": 12}}
    assert not any("computed alike" in text for text in cautions(KEY, alike))
    for name in ("code", "torch", "hardware"):
        different = alike | {name: {"new": 60, "": 12}}
        texts = [text for text in cautions(KEY, different) if "computed alike" in text]
        assert len(texts) == 1 and "new (60), not recorded (12)" in texts[0] and "abc (" not in texts[0]


def test_values_are_counted_only_where_they_differ() -> None:
    assert formats.with_counts({"2.13.0": 72}) == "2.13.0"
    many = formats.with_counts({f"host {i}": 1 for i in range(40)})
    assert many.startswith("host 0 (1), host 1 (1)") and many.endswith("host 11 (1) and 28 more")


def test_coverage_counts_every_state() -> None:
    assert sentences.coverage(make_summary()) == "All 72 trials are done."
    text = sentences.coverage(make_summary(states=("failed", "failed", "diverged", "planned")))
    assert text.startswith("68 of 72 trials are done (1 planned, 1 diverged, 2 failed)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"),
        (float("nan"), "\N{EN DASH}"),
        (402, "402"),
        (24_220_000, "24,220,000"),
        (12.34567, "12.346"),
        (-0.5, f"{MINUS}0.50000"),
        (1.19e-7, f"1.19e{MINUS}07"),
        ("gram", "gram"),
    ],
)
def test_numbers_are_written_one_way(value: object, text: str) -> None:
    assert formats.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(-1.5, f"{MINUS}1.5"), (2.0, "2"), (1111, "1111"), (None, "\N{EN DASH}"), ("et-asgd", "et-asgd")],
)
def test_settings_are_written_as_typed(value: object, text: str) -> None:
    assert formats.setting(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "\N{EN DASH}"), (0.0312, "0.031"), (3e-5, "3.0e-05"), (0, "< 1e-15")]
)
def test_small_p_values_keep_their_size(value: float | None, text: str) -> None:
    assert formats.p_value(value) == text
