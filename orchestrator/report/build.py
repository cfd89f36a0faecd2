"""Write a report from the store's results: the page, its figures and tables, in one folder."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_jsonable_python

from orchestrator.analysis import (
    Row,
    StudySummaryNumbers,
    count_values,
    flatten,
    summarise,
    values_of_done,
)
from orchestrator.report import sentences, tables
from orchestrator.report.configs import configs_table
from orchestrator.report.export import write_results
from orchestrator.report.figures import draw, inline_svg
from orchestrator.report.glossary import linked, terms
from orchestrator.report.index import CARD_FILE, Card
from orchestrator.report.prose import cautions, sorting, template
from orchestrator.report.questions import Answer, StudyResults, answer
from orchestrator.report.run_facts import run_facts
from orchestrator.report.sections.custom import failed_section
from orchestrator.store import StudyKey
from orchestrator.variants import Variant
from search_spaces.analyses import Analysis
from search_spaces.study import Study
from trainables.errors import UserError
from trainables.trial_folder import Epoch, write_file

TRIALS_FILE = "trials.csv"
DAY_DIGITS = len("2026-01-31")
POINTS_SHOWN = 4
"""Number of cautions at the top of a page; the others are below "The run"."""
BESIDE = ("spectra", "rank-over-training")
"""Kinds of sections whose figures are never the first on a page, because they do not answer the
study's question."""


@dataclass(frozen=True, kw_only=True)
class ReportResult:
    """A written report."""

    path: Path
    summary: StudySummaryNumbers
    answers: tuple[Answer, ...]


def build_report(
    study: Study,
    key: StudyKey,
    rows: Sequence[Row],
    *,
    spectra: Mapping[str, NDArray[np.float64]],
    epochs: Mapping[str, Sequence[Epoch]],
    run_command: str | None,
    paper_command: str | None,
    out: Path,
    pdf: bool,
) -> ReportResult:
    """Write report.html with its figures (SVG) and tables (CSV) into `out`.

    `rows` is the result of `Store.results`. `spectra` (singular values, descending) and `epochs`
    are by trial id. The page shows the two commands: for the study, and for the paper's scale.

    `pdf` adds PDF and PNG figures. The page links to the index page in the parent folder. Several
    processes may write the same folder at once. Raises UserError if `out` cannot be written to.
    """
    results = flatten(rows)
    frame = results.frame()
    summary = summarise(study, key, results, frame)

    def missing_metric(_: object) -> str:
        names = results.metric_columns
        return cautions("missing_metric", metric=study.goal.metric, names=names)[0]

    if study.is_own and values_of_done(frame, study.goal.metric).empty:
        study = replace(study, analyses=(missing_metric,))
    questioned = StudyResults(study=study, key=key, frame=frame, spectra=spectra, epochs=epochs)
    answers, documents = _draw_all(answer(questioned), out, pdf=pdf)
    environment = count_values(
        [row.get("environment") or {} for row in rows if row["state"] == "done"]
    )
    times = [
        (row["started_at"], row["ended_at"])
        for row in rows
        if row.get("started_at") and row.get("ended_at")
    ]
    run = run_facts(study, summary, results, times=times, environment=environment)
    sections, configs = [answer.section for answer in answers], configs_table(results)
    points = sentences.certainty(study, summary, answers, environment)
    variant = Variant.read(key.overrides)
    card = Card(
        study=key.study,
        corpus=run.get("corpus", ""),
        date=run.get("date", "")[:DAY_DIGITS],
        settings=", ".join(variant.typed),
        title=study.title or study.name,
        variant=cautions(
            "variant",
            study=study,
            key=key,
            model=variant.model,
            is_smaller=sentences.is_smaller(study, key),
        )[0],
        question=cautions("question", study=study)[0],
        goal=study.goal if study.is_own else None,
        scale=key.scale,
        trials=run.get("trials", "no trials"),
        answer=sentences.answer_sentence(summary, sections),
        certainty=points,
        findings=tuple(
            {
                "section": section.kind,
                "sentence": finding.sentence,
                "verdicts": finding.verdicts,
                "numbers": finding.numbers,
            }
            for section in sections
            for finding in section.findings
        ),
    )
    words = terms(results, own=study.is_own)
    # The template escapes every text except the figures' SVG and the page's own style and script.
    page = template("report.html.j2").render(
        **sorting(),
        card=card,
        study=study,
        certainty=points[:POINTS_SHOWN],
        limits=points[POINTS_SHOWN:],
        ranges=cautions("ranges", extremes=summary.extremes),
        run=run,
        run_command=run_command,
        paper_command=paper_command,
        trouble=tables.trouble_table(summary),
        sections=sections,
        lead=next(
            (one for one in sections if one.drawings and not one.kind.startswith(BESIDE)), None
        ),
        files=documents.keys(),
        svg=lambda drawing: inline_svg(documents[f"{drawing.name}.svg"].decode(), drawing),
        trials=tables.trials_table(results, tables.group_metrics(study)),
        trials_file=TRIALS_FILE,
        configs=configs,
        terms=words,
        linked=lambda sentence: linked(sentence, words),
    )
    trials = io.StringIO()
    write_results(results.of_variant(key), "csv", trials)
    frames = {configs.file: configs.frame}
    for section in sections:
        frames |= section.written
    texts = {
        name: frame.astype(object).to_csv(index=False, lineterminator="\n")
        for name, frame in frames.items()
    }
    texts |= {TRIALS_FILE: trials.getvalue(), "report.html": page}
    documents |= {name: text.encode(errors="backslashreplace") for name, text in texts.items()}
    plain_card = to_jsonable_python(card, inf_nan_mode="null", fallback=_plain)
    documents[CARD_FILE] = json.dumps(plain_card, indent=1).encode()
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in documents.items():
            write_file(out / name, content)
    except OSError as error:
        raise UserError(
            f"--storage: cannot write the report to {out} "
            f"({error.strerror or error}). Free space or name another folder with --storage."
        ) from error
    return ReportResult(path=out / "report.html", summary=summary, answers=answers)


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else str(value)


def _draw_all(
    answers: Sequence[Answer], out: Path, *, pdf: bool
) -> tuple[tuple[Answer, ...], dict[str, bytes]]:
    drawn_answers: list[Answer] = []
    documents: dict[str, bytes] = {}
    for drawn in answers:
        try:
            for drawing in drawn.section.drawings:
                documents |= draw(drawing, out, pdf=pdf)
            drawn_answers.append(drawn)
        except (Exception, SystemExit) as error:
            if isinstance(drawn.request, Analysis):
                raise
            drawn_answers.append(replace(drawn, section=failed_section(drawn.request, error)))
    return tuple(drawn_answers), documents
