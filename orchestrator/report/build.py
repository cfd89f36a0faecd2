"""From the store's results to the report: numbers, figures, tables and the page, all in one folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis import Row, StudySummaryNumbers, count_values, flatten, summarise
from orchestrator.report.export import write_results
from orchestrator.report.figures import save
from orchestrator.report.index import CARD_FILE, card_of
from orchestrator.report.page import Part, compose, render
from orchestrator.report.questions import Answer, StudyResults, answer
from orchestrator.report.sections.section import Section
from orchestrator.store import StudyKey
from search_spaces.study import Study
from trainables.errors import UserError
from trainables.trial_folder import write_file

TRIALS_FILE = "trials.csv"


@dataclass(frozen=True, kw_only=True)
class ReportResult:
    """Where the page is, and what it shows."""

    path: Path
    summary: StudySummaryNumbers
    answers: tuple[Answer, ...]
    """To the study's requests, in its order."""


def build_report(
    study: Study,
    key: StudyKey,
    rows: Sequence[Row],
    *,
    spectra: Mapping[str, NDArray[np.float64]],
    environments: Mapping[str, Mapping[str, str]],
    paper_command: str | None,
    out: Path,
) -> ReportResult:
    """Write report.html with its figures (SVG, PNG, PDF) and tables (CSV) into the folder `out`.

    `rows` are the trials as `Store.results` gives them; by trial id, `spectra` are their singular values, descending,
    and `environments` what they were computed with. `paper_command` is what to type for the paper's scale; None shows
    nothing. Several processes may write the same folder at the same time. Raises UserError where `out` cannot be
    written to.
    """
    results = flatten(rows)
    frame = results.frame()
    summary = summarise(study, key, results, frame)
    answers = answer(StudyResults(study=study, key=key, frame=frame, spectra=spectra))
    done = [row["trial_id"] for row in rows if row["state"] == "done"]
    environment = count_values([environments.get(trial_id, {}) for trial_id in done])
    try:
        out.mkdir(parents=True, exist_ok=True)
        parts = [_place(answer.section, out) for answer in answers]
        trials = io.StringIO()
        write_results(results, "csv", trials)
        write_file(out / TRIALS_FILE, trials.getvalue().encode())
        page = compose(
            study,
            summary,
            results,
            answers,
            parts=parts,
            environment=environment,
            paper_command=paper_command,
            trials_file=TRIALS_FILE,
        )
        path = out / "report.html"
        write_file(path, render(page).encode())
        write_file(out / CARD_FILE, card_of(page).model_dump_json(indent=1).encode())
    except OSError as error:
        raise UserError(
            f"the report needs a folder that can be written to, but {out} cannot ({error.strerror or error}); "
            "free space or name another one with --out"
        ) from error
    return ReportResult(path=path, summary=summary, answers=answers)


def _place(section: Section, out: Path) -> Part:
    """A section with its figures drawn and its files written."""
    for name, lines in section.files.items():
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows(lines)
        write_file(out / name, stream.getvalue().encode())
    return Part(section=section, figures=tuple(save(drawing, out) for drawing in section.drawings))
