"""Sentences that report the numbers and claim no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.analysis import Environment, Extremes, StudySummaryNumbers
from orchestrator.plan import is_paper_scale
from orchestrator.report import formats
from orchestrator.report.questions import Answer
from orchestrator.report.sections.section import Section
from orchestrator.variants import Variant
from orchestrator.words import some_of
from search_spaces.analyses import Analysis
from search_spaces.study import Study

NAMES_SHOWN = 5
DECISIVE = {"code": "code version", "torch": "torch", "hardware": "hardware"}
"""Entries of a trial's environment that affect its numbers, with their titles."""


def answer_sentence(summary: StudySummaryNumbers, sections: Sequence[Section]) -> str:
    """Return the first finding, or the coverage if no trial is done."""
    answered = sections if summary.done else ()
    return next((text for section in answered for text in section.sentences), coverage(summary))


def ranges(summary: StudySummaryNumbers) -> list[str]:
    """Return the range of each main metric over the trials."""
    return [_range(extremes) for extremes in summary.extremes]


def coverage(summary: StudySummaryNumbers) -> str:
    """Return how many trials have a result, the states of the others, and models that blew up."""
    if not (names := summary.worse_than_uniform):
        return _done(summary)
    return (
        f"{_done(summary)} Worse than a uniform guess (perplexity above the vocabulary's size), "
        f"but counted: {some_of(names, NAMES_SHOWN)}."
    )


def _done(summary: StudySummaryNumbers) -> str:
    if summary.done == summary.trials:
        several = summary.trials > 1
        return f"All {summary.trials} trials are done." if several else "The one trial is done."
    states = summary.counts.items()
    others = ", ".join(f"{count} {state}" for state, count in states if state != "done")
    verb, subject = ("is", "that one") if summary.done == 1 else ("are", "the done ones")
    return (
        f"{summary.done} of {summary.trials} trials {verb} done ({others}). All numbers are over "
        f"{subject}."
    )


def _range(extremes: Extremes) -> str:
    name = formats.capital(formats.title(extremes.metric))
    least, greatest = (
        formats.cell(extremes.metric, value) for value in (extremes.least, extremes.greatest)
    )
    if extremes.least == extremes.greatest:
        return f"{name} is {least} in every trial."
    spread = (
        f"{name} runs from {least} ({extremes.least_name}) to {greatest} ({extremes.greatest_name})"
    )
    if extremes.least <= 0:
        return f"{spread}."
    return f"{spread}, a factor of {formats.number(extremes.greatest / extremes.least, digits=3)}."


def certainty(
    study: Study, summary: StudySummaryNumbers, answers: Sequence[Answer], environment: Environment
) -> list[str]:
    """Return how sure the numbers are: coverage first, then their limits.

    `environment` is that of the done trials.
    """
    requests = (answer.request for answer in answers)
    published = any(isinstance(one, Analysis) and one.has_published for one in requests)
    once = study.trains and summary.trials_per_setting == 1 and summary.trials > 1
    return [
        coverage(summary),
        *[f"Scale {summary.key.scale} has {summary.extent}."] * bool(summary.extent),
        *["Each setting has one seed, so the effect of the seed is unknown."] * once,
        *next((answer.section.cautions[:1] for answer in answers if answer.section.findings), ()),
        *_not_the_paper(study, summary, published=published),
        *_not_alike(environment),
    ]


def _not_alike(environment: Environment) -> Iterator[str]:
    differing = [
        f"{words} {formats.with_counts(environment[name])}"
        for name, words in DECISIVE.items()
        if len(environment.get(name, {})) > 1
    ]
    if differing:
        yield (
            f"The trials were not all computed alike: {'; '.join(differing)}. This can cause "
            "differences, too."
        )


def _not_the_paper(study: Study, summary: StudySummaryNumbers, *, published: bool) -> Iterator[str]:
    key, variant = summary.key, Variant.read(summary.key.overrides)
    if study.source and study.scaled and not is_paper_scale(study, key.scale):
        less = "computes less than scale paper: fewer inputs, examples or steps, or smaller arrays"
        if study.reads_text:
            less = "trains smaller models on less text than the paper"
        end = (
            ": its numbers neither confirm nor contradict the published ones." if published else "."
        )
        yield f"Scale {key.scale} {less}{end}"
    if study.source and study.corpora and key.corpus not in study.corpora:
        used = " and ".join(formats.corpus_title(corpus) for corpus in study.corpora)
        yield f"The corpus is {formats.corpus_title(key.corpus)}; the paper used {used}."
    if study.source and variant.model:
        yield (
            "Transformers replace the source's AWD-LSTMs, by this project's recipe: no published "
            "number is of such models."
        )
    if changed := variant.typed:
        yield f"Changed on the command line: {', '.join(changed)}."
