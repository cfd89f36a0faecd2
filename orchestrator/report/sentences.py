"""What the numbers say, in sentences, and no more than they say."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.comparison import ComparedCorrelation, PublishedValue
from orchestrator.analysis.environments import Environment
from orchestrator.analysis.summary import Extremes, StudySummaryNumbers
from orchestrator.plan.paper_scale import is_paper_scale
from orchestrator.report import formats
from orchestrator.words import counted
from search_spaces.study import Study

DECISIVE = {"code": "code version", "torch": "torch", "hardware": "hardware"}
"""Entries of a trial's environment that its numbers depend on, and what they are called."""


def findings(summary: StudySummaryNumbers, answers: Sequence[str] = ()) -> list[str]:
    """What the data say about the study's question, as far as they allow: coverage, answers and correlations, ranges.

    `answers` are the sentences of the report's sections.
    """
    return [
        coverage(summary),
        *(correlation(line) for line in summary.correlations),
        *answers,
        *(_range(extremes) for extremes in summary.extremes),
    ]


def coverage(summary: StudySummaryNumbers) -> str:
    """How many trials there are results of, and what became of the others."""
    if summary.done == summary.trials:
        return f"All {summary.trials} trials are done." if summary.trials > 1 else "The one trial is done."
    others = ", ".join(f"{count} {state}" for state, count in summary.counts.items() if state != "done")
    is_or_are = "is" if summary.done == 1 else "are"
    return (
        f"{summary.done} of {summary.trials} trials {is_or_are} done ({others}); everything below is over "
        f"{'that one' if summary.done == 1 else 'the done ones'}."
    )


def _range(extremes: Extremes) -> str:
    name = formats.capital(formats.title(extremes.metric))
    least, greatest = (formats.cell(extremes.metric, value) for value in (extremes.least, extremes.greatest))
    if extremes.least == extremes.greatest:
        return f"{name} is {least} in every trial."
    spread = f"{name} runs from {least} ({extremes.least_name}) to {greatest} ({extremes.greatest_name})"
    if extremes.least <= 0:
        return f"{spread}."
    return f"{spread}, a factor of {formats.number(extremes.greatest / extremes.least, digits=3)}."


def correlation(line: ComparedCorrelation) -> str:
    """One correlation, what its sign and interval allow to say, or what is missing."""
    found, where = line.pearson, _where(line)
    x, y = formats.title(line.x), formats.title(line.y)
    if found.value is None:
        return f"{where}, there is no correlation to report: {_spelled(found.missing, line)}."
    text = f"{where}, {x} and {y} have Pearson r = {formats.coefficient(found.value)}"
    if found.interval is None:
        return f"{text}, without an interval: {_spelled(found.missing, line)}."
    text += f", 95% interval {formats.interval(found.interval)}, p {formats.equals(formats.p_value(found.p_value))}"
    if 0.0 in found.interval:
        return f"{text}: the interval includes zero, so these trials leave open whether there is one and its sign."
    direction = "higher" if found.value > 0 else "lower"
    share = f"{found.value**2:.0%}"
    return f"{text}: a higher {x} went with a {direction} {y}; a straight line accounts for {share} of the variance."


def comparison(line: ComparedCorrelation, published: PublishedValue) -> str:
    """Where a published value lies beside our interval. Inside is not equal, and says so."""
    name = f"The published {formats.coefficient(published.value)} ({formats.corpus_title(published.corpus)})"
    if line.pearson.interval is None:
        return f"{name} has no interval of ours to be held against."
    ours = formats.interval(line.pearson.interval)
    if published.value in line.pearson.interval:
        return f"{name} lies inside our interval {ours}, which does not show that the two are equal."
    side = "below" if published.value < line.pearson.interval.low else "above"
    return f"{name} lies {side} our interval {ours}."


def comparisons(summary: StudySummaryNumbers) -> list[str]:
    """A sentence for each published value: those of this corpus, or all of them where the paper did not use it.

    Nothing about a window that is not the published one: it selects other cells.
    """
    sentences = []
    for line in summary.correlations:
        if line.window is not None and line.window.origin != "published":
            continue
        own = [value for value in line.published if value.corpus == summary.key.corpus]
        for value in own or line.published:
            sentences.append(f"{_where(line)}: {_decapital(comparison(line, value))}")
    return sentences


def cautions(study: Study, summary: StudySummaryNumbers, environment: Environment) -> list[str]:
    """What keeps the numbers from saying more; `environment` is what the done trials were computed with."""
    return [*_not_the_paper(study, summary), *_not_alike(environment), *_limits(study, summary)]


def _not_alike(environment: Environment) -> list[str]:
    differing = [
        f"{words} {formats.counted(environment[name])}"
        for name, words in DECISIVE.items()
        if len(environment.get(name, {})) > 1
    ]
    if not differing:
        return []
    return [
        f"The trials were not all computed alike: {'; '.join(differing)}. What differs between two trials can come "
        "from that too."
    ]


def _not_the_paper(study: Study, summary: StudySummaryNumbers) -> list[str]:
    key, published = summary.key, summary.has_published
    sentences = []
    if not is_paper_scale(study, key.scale):
        smaller = (
            "trains other, smaller models on less text than the paper"
            if study.reads_text
            else ("computes less than scale paper: fewer inputs, examples or steps, or smaller arrays")
        )
        sentences.append(
            f"Scale {key.scale} {smaller}"
            + (": its numbers neither confirm nor contradict the published ones." if published else ".")
        )
    if study.corpora and key.corpus not in study.corpora:
        used = " and ".join(formats.corpus_title(corpus) for corpus in study.corpora)
        sentences.append(f"The corpus is {formats.corpus_title(key.corpus)}; the paper used {used}.")
    if key.overrides != "{}":
        sentences.append(f"Settings were changed on the command line: {key.overrides}.")
    return sentences


def _limits(study: Study, summary: StudySummaryNumbers) -> list[str]:
    sentences = []
    if study.trains and summary.trials_per_setting == 1 and summary.trials > 1:
        sentences.append("Each setting was trained once: how much a number moves with the seed is not measured here.")
    windows = [line.window for line in summary.correlations if line.window is not None]
    if windows:
        sentences.append("A window on one of two quantities narrows its range, which by itself weakens a correlation.")
    if any(window.origin == "better half" for window in windows) and any(
        line.published for line in summary.correlations
    ):
        sentences.append(
            "The published window holds for the paper's models; here it is the better half of the trials, up to the "
            "median."
        )
    return sentences


def _where(line: ComparedCorrelation) -> str:
    if line.window is None:
        return f"Over all {line.pearson.n} trials with a result" if line.pearson.n != 1 else "Over the one trial"
    inside = formats.window(line.window, line.y)
    return f"Inside {inside} ({counted(line.pearson.n, 'trial')})"


def _spelled(missing: str, line: ComparedCorrelation) -> str:
    for name in (line.x, line.y):
        missing = missing.replace(name, formats.title(name))
    return missing


def _decapital(text: str) -> str:
    return text[:1].lower() + text[1:]
