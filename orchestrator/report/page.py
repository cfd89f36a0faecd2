"""One HTML page that needs nothing but itself: no network, no fonts, no other file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.analysis import Environment, FlatResults, StudySummaryNumbers
from orchestrator.plan import is_paper_scale
from orchestrator.report import formats, sentences, tables
from orchestrator.report.figures import DrawnFigure
from orchestrator.report.glossary import terms
from orchestrator.report.prose import TEMPLATES, template
from orchestrator.report.questions import Answer
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import TextTable
from orchestrator.words import some_of
from search_spaces.study import Study

SEEDS_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Part:
    """A section with its figures drawn."""

    section: Section
    figures: tuple[DrawnFigure, ...]


@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything on the page, in words and ready tables; the template only places it."""

    title: str
    variant: str
    source: str
    question: str
    findings: Sequence[str]
    cautions: Sequence[str]
    run: Sequence[tuple[str, str]]
    """Name and value: scale, corpus, seeds, hardware, versions."""
    paper_command: str | None
    """What to type for the paper's scale; None where this is it."""
    trouble: TextTable
    parts: Sequence[Part]
    trials: TextTable
    trials_file: str
    terms: Sequence[tuple[str, str]]
    """Words of the page with their meaning."""
    deviations: Sequence[str]


def compose(
    study: Study,
    summary: StudySummaryNumbers,
    results: FlatResults,
    answers: Sequence[Answer],
    *,
    parts: Sequence[Part],
    environment: Environment,
    paper_command: str | None,
    trials_file: str,
) -> Page:
    """Put the page of a study variant together; `environment` is over the done trials."""
    key = summary.key
    corpus = f", corpus {formats.corpus_title(key.corpus)}" if study.reads_text else ""
    smaller = "not the paper's models" if study.reads_text else "less is computed than at scale paper"
    return Page(
        title=study.title or study.name,
        variant=f"Study {key.study}, scale {key.scale}{corpus}"
        + ("" if is_paper_scale(study, key.scale) else f": {smaller}"),
        source=study.source,
        question=study.question,
        findings=sentences.findings(summary, answers),
        cautions=sentences.cautions(study, summary, answers, environment),
        run=_run(study, summary, environment),
        paper_command=paper_command,
        trouble=tables.trouble_table(summary),
        parts=parts,
        trials=tables.trials_table(results, tables.group_metrics(study)),
        trials_file=trials_file,
        terms=terms(results),
        deviations=study.deviations,
    )


def render(page: Page) -> str:
    """The page as HTML. Every text is escaped; only the figures' SVG and the page's own style and script are not."""
    html: str = template("report.html.j2").render(
        page=page,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "sort.js").read_text(encoding="utf-8"),
    )
    return html


def _run(study: Study, summary: StudySummaryNumbers, environment: Environment) -> list[tuple[str, str]]:
    key = summary.key
    seeds = some_of(list(map(str, summary.seeds)), SEEDS_SHOWN)
    counts = ", ".join(f"{count} {state}" for state, count in summary.counts.items())
    lines = [("scale", key.scale), ("corpus", formats.corpus_title(key.corpus)), ("trials", counts)]
    if study.trains or len(summary.seeds) > 1:
        lines.append(("seeds", seeds))
    if key.overrides != "{}":
        lines.append(("settings", key.overrides))
    lines += [(name, formats.with_counts(values)) for name, values in environment.items()]
    return [(name, value) for name, value in lines if value]
