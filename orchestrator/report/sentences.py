"""The answer of a report, and how sure it is. The words are in templates."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis import Environment, StudySummaryNumbers
from orchestrator.plan import is_paper_scale
from orchestrator.report import formats
from orchestrator.report.prose import cautions
from orchestrator.report.questions import Answer
from orchestrator.report.sections.section import Section
from orchestrator.store import StudyKey
from orchestrator.variants import Variant
from search_spaces.analyses import Analysis
from search_spaces.study import Study

DECISIVE = {"code": "code version", "torch": "torch", "hardware": "hardware"}
"""Entries of a trial's environment that affect its numbers, with their titles."""


def answer_sentence(summary: StudySummaryNumbers, sections: Sequence[Section]) -> str:
    """Return the first finding, or the coverage if no trial is done."""
    answered = sections if summary.done else ()
    return next((text for section in answered for text in section.sentences), coverage(summary))


def coverage(summary: StudySummaryNumbers) -> str:
    """Return the numbers of trials by state, and names of models worse than a uniform guess."""
    return cautions("coverage", summary=summary)[0]


def certainty(
    study: Study, summary: StudySummaryNumbers, answers: Sequence[Answer], environment: Environment
) -> tuple[str, ...]:
    """Return the limits of the numbers, the most important first.

    `environment` counts the values in the done trials, such as versions of torch.
    """
    requests = (answer.request for answer in answers)
    limits = (answer.section.cautions for answer in answers if answer.section.findings)
    return cautions(
        "certainty",
        study=study,
        summary=summary,
        variant=Variant.read(summary.key.overrides),
        limits=next(limits, ()),
        is_smaller=is_smaller(study, summary.key),
        has_published=any(isinstance(one, Analysis) and one.has_published for one in requests),
        differing=[
            f"{words} {formats.with_counts(environment[name])}"
            for name, words in DECISIVE.items()
            if len(environment.get(name, {})) > 1
        ],
    )


def is_smaller(study: Study, key: StudyKey) -> bool:
    """Return whether the scale reduces the models or the work of the full study."""
    return study.scaled and not is_paper_scale(study, key.scale)
